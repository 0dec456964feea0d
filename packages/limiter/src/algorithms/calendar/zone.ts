const HOUR_MS = 3_600_000
/** No zone was ever further from UTC. */
const FURTHEST_MS = 16 * HOUR_MS
const STEP_MS = 2 * HOUR_MS

/** A stretch of time with one offset from UTC. */
interface Stretch {
  readonly from: number
  readonly to: number
  readonly offsetMs: number
}

/** A time zone, by the data of this machine. Reading it is slow: nothing of it belongs on the path of a call. */
export class Zone {
  readonly #format: Intl.DateTimeFormat

  /** Throws a RangeError if the zone is not known. */
  constructor(name: string) {
    this.#format = new Intl.DateTimeFormat('en-US', {
      ...{ timeZone: name, calendar: 'gregory', numberingSystem: 'latn', hourCycle: 'h23', era: 'short' },
      ...{ year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric', second: 'numeric' },
    })
  }

  /** What clocks of the zone show at a moment is so many milliseconds ahead of UTC. */
  offsetMs(atMs: number): number {
    const wholeSecond = Math.floor(atMs / 1000) * 1000
    const part: Record<string, string> = {}
    for (const { type, value } of this.#format.formatToParts(wholeSecond)) part[type] = value
    const year = part.era === 'BC' ? 1 - Number(part.year) : Number(part.year)
    const [month, day, hour] = [Number(part.month), Number(part.day), Number(part.hour)]
    return Date.UTC(year, month - 1, day, hour, Number(part.minute), Number(part.second)) - wholeSecond
  }

  /** The day of a moment, counted from 1970-01-01, as a calendar in the zone shows it. */
  dayAt(atMs: number): number {
    return Math.floor((atMs + this.offsetMs(atMs)) / (24 * HOUR_MS))
  }

  /**
   * The first moment of a day. If midnight is skipped, the day begins later; if the whole day is skipped, where the next one does; if
   * midnight comes twice, the first time.
   */
  startOfDay(day: number): number {
    const midnight = day * 24 * HOUR_MS
    for (const { from, to, offsetMs } of this.#stretches(midnight - FURTHEST_MS, midnight + FURTHEST_MS)) {
      const start = Math.max(from, midnight - offsetMs)
      if (start < to) return start
    }
    return midnight + FURTHEST_MS
  }

  #stretches(fromMs: number, toMs: number): Stretch[] {
    const stretches: Stretch[] = []
    let from = fromMs
    let offsetMs = this.offsetMs(fromMs)
    for (let at = fromMs + STEP_MS; at <= toMs; at += STEP_MS) {
      const next = this.offsetMs(at)
      if (next === offsetMs) continue
      const change = this.#changeWithin(at - STEP_MS, at, next)
      stretches.push({ from, to: change, offsetMs })
      from = change
      offsetMs = next
    }
    return [...stretches, { from, to: toMs, offsetMs }]
  }

  /** The second from which on the offset is `offsetMs`, as it is at `untilMs` and not at `sinceMs`. */
  #changeWithin(sinceMs: number, untilMs: number, offsetMs: number): number {
    let [before, after] = [sinceMs / 1000, untilMs / 1000]
    while (after - before > 1) {
      const middle = Math.floor((before + after) / 2)
      if (this.offsetMs(middle * 1000) === offsetMs) after = middle
      else before = middle
    }
    return after * 1000
  }
}
