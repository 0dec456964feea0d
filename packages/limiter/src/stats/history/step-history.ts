import { historyNames, type SecondCounts } from './count-deltas.ts'

export interface StepHistoryOptions {
  readonly stepMs: number
  /** The number of steps that are kept. */
  readonly frames: number
  /** The number of rows that a step may have; of more, the busiest are kept. */
  readonly maxRows?: number | undefined
  /** The number of rows that all steps may have; if there are more, the oldest steps are dropped. */
  readonly maxTotalRows?: number | undefined
}

/** Counts by name: those of a rule or a process, or of all calls. */
export type HistoryRows = Iterable<readonly [name: string, counts: SecondCounts]>

interface Frame {
  readonly at: number
  readonly names: readonly string[]
  /** Four numbers for each name. */
  readonly numbers: Uint32Array | Float64Array
}

const width = historyNames.length
const maxKnownNames = 20_000

/** Counts by name in steps of one length, in bounded memory: a name takes room only in steps in which it was counted. */
export class StepHistory {
  readonly stepMs: number
  readonly frames: number
  readonly #maxRows: number
  readonly #maxTotalRows: number
  readonly #ring: (Frame | undefined)[]
  /** One text for each name, however many steps have it. */
  readonly #known = new Map<string, string>()
  #open: { readonly at: number; readonly rows: Map<string, number[]> } | undefined
  #rows = 0

  constructor({ stepMs, frames, maxRows = 500, maxTotalRows = Number.POSITIVE_INFINITY }: StepHistoryOptions) {
    this.stepMs = stepMs
    this.frames = frames
    this.#maxRows = maxRows
    this.#maxTotalRows = maxTotalRows
    this.#ring = new Array(frames).fill(undefined)
  }

  /** Returns the beginning of the step that a moment is in. */
  beginningOf(at: number): number {
    return Math.floor(at / this.stepMs) * this.stepMs
  }

  /** Adds to the step that a moment is in. */
  add(at: number, rows: HistoryRows): void {
    const began = this.beginningOf(at)
    if (this.#open?.at !== began) {
      this.#seal()
      this.#open = { at: began, rows: this.#rowsFrom(began) }
      this.#drop(this.#slotOf(began))
    }
    for (const [name, counts] of rows) {
      const known = this.#open.rows.get(name)
      if (known) for (const [i, count] of historyNames.entries()) known[i]! += counts[count]
      else
        this.#open.rows.set(
          this.#named(name),
          historyNames.map(count => counts[count]),
        )
    }
  }

  /** Replaces a whole step. */
  put(at: number, rows: HistoryRows): void {
    const list = new Map<string, number[]>()
    for (const [name, counts] of rows)
      list.set(
        this.#named(name),
        historyNames.map(count => counts[count]),
      )
    this.#keep(this.#compact(this.beginningOf(at), list))
  }

  /** Returns the numbers of one name in the steps from one moment to before another; null if nothing is known of a step. */
  series(name: string, from: number, to: number): (SecondCounts | null)[] {
    const series: (SecondCounts | null)[] = []
    for (let at = this.beginningOf(from); at < to; at += this.stepMs) {
      const frame = this.#frameAt(at)
      series.push(frame ? countsAt(frame, frame.names.indexOf(name)) : null)
    }
    return series
  }

  /** Sums up what was counted for each name from one moment to before another. */
  sums(from: number, to: number): Map<string, Record<keyof SecondCounts, number>> {
    const sums = new Map<string, Record<keyof SecondCounts, number>>()
    for (let at = this.beginningOf(from); at < to; at += this.stepMs) {
      const frame = this.#frameAt(at)
      frame?.names.forEach((name, row) => {
        const counts = countsAt(frame, row)
        const known = sums.get(name)
        if (known) for (const count of historyNames) known[count] += counts[count]
        else sums.set(name, counts)
      })
    }
    return sums
  }

  /** Returns the numbers of every name in the steps from one moment to before another; zeros if nothing is known of a step. */
  seriesByName(from: number, to: number): Map<string, Record<keyof SecondCounts, number[]>> {
    const length = Math.ceil((to - this.beginningOf(from)) / this.stepMs)
    const series = new Map<string, Record<keyof SecondCounts, number[]>>()
    for (let step = 0; step < length; step++) {
      const frame = this.#frameAt(this.beginningOf(from) + step * this.stepMs)
      frame?.names.forEach((name, row) => {
        const known = series.get(name) ?? zeros(length)
        series.set(name, known)
        historyNames.forEach((count, i) => {
          known[count][step] = frame.numbers[row * width + i]!
        })
      })
    }
    return series
  }

  #seal(): void {
    if (this.#open) this.#keep(this.#compact(this.#open.at, this.#open.rows))
    this.#open = undefined
  }

  #keep(frame: Frame): void {
    const slot = this.#slotOf(frame.at)
    this.#rows += frame.names.length - (this.#ring[slot]?.names.length ?? 0)
    this.#ring[slot] = frame
    // the oldest follow the newest in the ring
    for (let i = 1; i < this.frames && this.#rows > this.#maxTotalRows; i++) this.#drop((slot + i) % this.frames)
  }

  #drop(slot: number): void {
    this.#rows -= this.#ring[slot]?.names.length ?? 0
    this.#ring[slot] = undefined
  }

  #frameAt(at: number): Frame | undefined {
    if (this.#open?.at === at) return this.#compact(at, this.#open.rows)
    const frame = this.#ring[this.#slotOf(at)]
    return frame?.at === at ? frame : undefined
  }

  #slotOf(at: number): number {
    const index = Math.round(at / this.stepMs) % this.frames
    return index < 0 ? index + this.frames : index
  }

  #rowsFrom(at: number): Map<string, number[]> {
    const frame = this.#frameAt(at)
    const rows = frame?.names.map((name, row): [string, number[]] => [
      name,
      [...frame.numbers.subarray(row * width, (row + 1) * width)],
    ])
    return new Map(rows)
  }

  #compact(at: number, rows: ReadonlyMap<string, readonly number[]>): Frame {
    const all = [...rows]
    // the first row is that of all calls
    const kept = all.length <= this.#maxRows ? all : [all[0]!, ...busiest(all.slice(1), this.#maxRows - 1)]
    const isLarge = kept.some(([, numbers]) => numbers.some(number => number > 0xffffffff))
    const numbers = isLarge ? new Float64Array(kept.length * width) : new Uint32Array(kept.length * width)
    for (const [row, [, counts]] of kept.entries()) numbers.set(counts, row * width)
    return { at, names: kept.map(([name]) => name), numbers }
  }

  #named(name: string): string {
    const known = this.#known.get(name)
    if (known !== undefined) return known
    if (this.#known.size >= maxKnownNames) this.#known.clear()
    this.#known.set(name, name)
    return name
  }
}

function countsAt({ numbers }: Frame, row: number): Record<keyof SecondCounts, number> {
  const [allowed = 0, refused = 0, waited = 0, shadowRefused = 0] =
    row < 0 ? [] : numbers.subarray(row * width, (row + 1) * width)
  return { allowed, refused, waited, shadowRefused }
}

function zeros(length: number): Record<keyof SecondCounts, number[]> {
  const none = () => new Array<number>(length).fill(0)
  return { allowed: none(), refused: none(), waited: none(), shadowRefused: none() }
}

/** Chooses those with the most calls. */
function busiest(
  rows: (readonly [string, readonly number[]])[],
  most: number,
): (readonly [string, readonly number[]])[] {
  const weight = ([allowed = 0, refused = 0]: readonly number[]) => allowed + refused
  return rows.sort(([, one], [, other]) => weight(other) - weight(one)).slice(0, most)
}
