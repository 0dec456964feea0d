import { copyOf } from '../reading/copy-text.ts'
import { Distinct } from './distinct.ts'
import { SlidingCounts } from './sliding-counts.ts'
import { Timeline } from './timeline.ts'

/** Counts how often each number came; numbers above 999 are rounded up to three digits, so that there are few of them. */
class NumberCounts {
  readonly #counts = new Map<number, number>()

  add(value: number, times = 1): void {
    const rounded = roundUp(value)
    this.#counts.set(rounded, (this.#counts.get(rounded) ?? 0) + times)
  }

  get size(): number {
    let size = 0
    for (const times of this.#counts.values()) size += times
    return size
  }

  /** Numbers in rising order, each with how often it came. */
  sorted(): [value: number, times: number][] {
    return [...this.#counts].sort(([a], [b]) => a - b)
  }
}

function roundUp(value: number): number {
  if (value < 1000) return value
  const step = 10 ** (Math.floor(Math.log10(value)) - 2)
  return Math.ceil(value / step) * step
}

/** One caller of a rule. */
export interface CallerFigures {
  readonly key: string
  readonly calls: number
  readonly least: number
  readonly most: number
  readonly peak: number
  readonly timeline?: Timeline | undefined
}

/** Callers that have left the table. */
interface Folded {
  calls: number
  least: number
  most: number
  hitLeast: number
  hitMost: number
}

const KEPT_HIT = 200
const KEPT_TIMELINES = 64

/**
 * The callers of one rule by their keys, each with a slot for counts. Callers who were not seen for long are folded into sums if there
 * are too many.
 */
export class Callers {
  readonly folded: Folded = { calls: 0, least: 0, most: 0, hitLeast: 0, hitMost: 0 }
  readonly calls: number[] = []
  /** Calls that were refused at the least and at the most. */
  readonly least: number[] = []
  readonly most: number[] = []
  readonly peaks: NumberCounts = new NumberCounts()
  /** The numbers of calls in a window of the clock, of all callers. */
  readonly windows: NumberCounts = new NumberCounts()
  /** Callers who have left the table and were refused, the most refused ones. */
  #hit: CallerFigures[] = []
  readonly #slots = new Map<string, number>()
  readonly #keys: (string | undefined)[] = []
  readonly #free: number[] = []
  readonly #lastAt: number[] = []
  readonly #peak: number[] = []
  readonly #window: number[] = []
  readonly #inWindow: number[] = []
  readonly #recent: SlidingCounts
  readonly #timelines = new Map<number, Timeline>()
  readonly #periodUs: number
  readonly #maxKeys: number
  readonly #distinct = new Distinct()
  readonly #onForget: (slot: number) => void
  #isFolding = false
  #sweepAt = 0

  /** `lengthUs` is the window that peaks are measured in. */
  constructor(periodUs: number, lengthUs: number, maxKeys: number, onForget: (slot: number) => void) {
    this.#periodUs = Math.max(1, periodUs)
    this.#recent = new SlidingCounts(Math.max(1, lengthUs), 'late', 1024)
    this.#maxKeys = maxKeys
    this.#onForget = onForget
  }

  /** Returns the slot of a caller; undefined if there are too many. */
  slotOf(key: string): number | undefined {
    const known = this.#slots.get(key)
    if (known !== undefined) return known
    if (this.#slots.size >= this.#maxKeys) return undefined
    const slot = this.#free.pop() ?? this.#keys.length
    const kept = copyOf(key)
    this.#slots.set(kept, slot)
    this.#distinct.add(kept)
    this.#keys[slot] = kept
    this.calls[slot] = 0
    this.least[slot] = 0
    this.most[slot] = 0
    this.#peak[slot] = 0
    this.#window[slot] = -1
    this.#inWindow[slot] = 0
    this.#lastAt[slot] = 0
    return slot
  }

  keyOf(slot: number): string {
    return this.#keys[slot]!
  }

  /** Calls of a caller came at x. */
  came(slot: number, x: number, calls: number): void {
    this.calls[slot] = this.calls[slot]! + calls
    this.#lastAt[slot] = x
    const sum = this.#recent.at(slot, x) + calls
    this.#recent.add(slot, x, calls)
    if (sum > this.#peak[slot]!) this.#peak[slot] = sum
    const window = Math.floor(x / this.#periodUs)
    if (window === this.#window[slot]) this.#inWindow[slot] = this.#inWindow[slot]! + calls
    else {
      if (this.#inWindow[slot]! > 0) this.windows.add(this.#inWindow[slot]!)
      this.#window[slot] = window
      this.#inWindow[slot] = calls
    }
  }

  /** Calls of a caller may have been refused. */
  refused(slot: number, x: number, calls: number, least: number, most: number): void {
    let timeline = this.#timelines.get(slot)
    if (timeline === undefined) {
      if (this.#timelines.size >= KEPT_TIMELINES) return
      timeline = new Timeline()
      this.#timelines.set(slot, timeline)
    }
    timeline.add(x, calls, least, most)
  }

  /** True if a caller's calls are recorded one bin after another. */
  isFollowed(slot: number): boolean {
    return this.#timelines.size > 0 && this.#timelines.has(slot)
  }

  /** Makes room, if there is little: folds callers who did not call since `since`. */
  sweep(since: number): void {
    if (this.#slots.size < this.#maxKeys * 0.9) return
    // a round for each call would look at all callers
    if (this.#sweepAt++ % 64 !== 0) return
    this.#isFolding = true
    for (const [key, slot] of this.#slots) if (this.#lastAt[slot]! < since) this.#fold(key, slot)
  }

  /** Returns the number of callers; an estimate if not all could be kept. */
  get count(): number {
    return this.#isFolding ? Math.max(this.#distinct.count, this.#slots.size) : this.#slots.size
  }

  get isEstimate(): boolean {
    return this.#isFolding
  }

  /** Ends all windows; to be called once. */
  finish(): void {
    for (const slot of this.#slots.values()) this.#closeCaller(slot)
  }

  /** Callers that have not been folded. */
  *present(): Generator<CallerFigures> {
    for (const [key, slot] of this.#slots) yield this.#figures(key, slot)
  }

  /** Returns the callers, and those folded ones that were refused most. */
  *all(): Generator<CallerFigures> {
    yield* this.present()
    yield* this.#hit
  }

  #figures(key: string, slot: number): CallerFigures {
    const timeline = this.#timelines.get(slot)
    return {
      ...{ key, calls: this.calls[slot]!, least: this.least[slot]!, most: this.most[slot]! },
      ...{ peak: this.#peak[slot]!, timeline },
    }
  }

  #closeCaller(slot: number): void {
    if (this.#inWindow[slot]! > 0) this.windows.add(this.#inWindow[slot]!)
    this.#inWindow[slot] = 0
    if (this.#peak[slot]! > 0) this.peaks.add(this.#peak[slot]!)
  }

  #fold(key: string, slot: number): void {
    const caller = this.#figures(key, slot)
    this.#closeCaller(slot)
    this.folded.calls += caller.calls
    this.folded.least += caller.least
    this.folded.most += caller.most
    if (caller.least > 0) this.folded.hitLeast++
    if (caller.most > 0) {
      this.folded.hitMost++
      this.#hit.push(caller)
      if (this.#hit.length > KEPT_HIT * 2) {
        this.#hit.sort((a, b) => b.most - a.most)
        this.#hit.length = KEPT_HIT
      }
    }
    this.#timelines.delete(slot)
    this.#recent.forget(slot)
    this.#onForget(slot)
    this.#slots.delete(key)
    this.#keys[slot] = undefined
    this.#free.push(slot)
  }
}
