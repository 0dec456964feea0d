import type { Counts, Series } from '../api/generated.ts'

export const COUNTS = ['allowed', 'refused', 'waited', 'shadowRefused'] as const satisfies readonly (keyof Counts)[]
export type Count = (typeof COUNTS)[number]

/** How many seconds the page remembers. */
export const SECONDS = 300

/** The last seconds of one rule's counts, in place: writing a second moves nothing. */
export class Ring {
  readonly #numbers: Record<Count, Float64Array>
  /** Of all seconds that are remembered, kept as they come and go: a thousand rules are summed every second. */
  readonly #sums: Record<Count, number> = { allowed: 0, refused: 0, waited: 0, shadowRefused: 0 }
  /** The second, since 1970, that was written last. */
  #last = Number.NEGATIVE_INFINITY

  constructor() {
    this.#numbers = Object.fromEntries(COUNTS.map(name => [name, new Float64Array(SECONDS)])) as Record<
      Count,
      Float64Array
    >
  }

  /** Writes what was counted in a second; seconds between it and the last one were silent. */
  write(second: number, counts: Counts): void {
    if (second <= this.#last - SECONDS) return
    this.moveTo(second)
    for (const name of COUNTS) this.#put(second, name, counts[name] ?? 0)
  }

  /** Silence up to and with a second. */
  moveTo(second: number): void {
    const from = Math.max(this.#last + 1, second - SECONDS + 1)
    for (let silent = from; silent <= second; silent++) {
      for (const name of COUNTS) this.#put(silent, name, 0)
    }
    this.#last = Math.max(this.#last, second)
  }

  /** Takes a history whose newest number belongs to a second; what is known already stays, as after a gateway's restart. */
  fill(second: number, series: Series): void {
    const known = this.#last
    const length = Math.min(series.allowed.length, SECONDS)
    for (let back = length - 1; back >= 0; back--) {
      if (second - back <= known) continue
      const at = series.allowed.length - 1 - back
      this.write(second - back, {
        allowed: series.allowed[at] ?? 0,
        refused: series.refused[at] ?? 0,
        waited: series.waited[at] ?? 0,
        shadowRefused: series.shadowRefused[at] ?? 0,
      })
    }
  }

  at(second: number, name: Count): number {
    if (second > this.#last || second <= this.#last - SECONDS) return 0
    return this.#numbers[name][((second % SECONDS) + SECONDS) % SECONDS]!
  }

  /** The numbers of the seconds up to and with one, oldest first. */
  window(second: number, length: number, name: Count): number[] {
    return Array.from({ length }, (_, index) => this.at(second - length + 1 + index, name))
  }

  /** Of the seconds up to and with one; the last one and all that is remembered takes no adding up. */
  sum(second: number, length: number, name: Count): number {
    this.moveTo(second)
    if (second === this.#last && length === SECONDS) return this.#sums[name]
    let sum = 0
    for (let back = 0; back < length; back++) sum += this.at(second - back, name)
    return sum
  }

  #put(second: number, name: Count, count: number): void {
    const numbers = this.#numbers[name]
    this.#sums[name] += count - numbers[second % SECONDS]!
    numbers[second % SECONDS] = count
  }
}
