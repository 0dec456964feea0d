import { StepRing } from '../../common/step-ring.ts'
import { Heap, type Scored } from './heap.ts'

/** Counts of the last minutes in steps, in place. */
export class Timeline {
  static readonly stepMs = 20_000
  static readonly steps = 30
  // half as large as doubles: there is one for each caller that is watched
  readonly #counts = new StepRing(new Uint32Array(Timeline.steps))

  add(at: number, count: number): void {
    this.#counts.add(stepAt(at), count)
  }

  /** Returns the counts up to a moment, oldest first. */
  read(at: number): number[] {
    return this.#counts.read(stepAt(at), Timeline.steps)
  }

  sum(at: number): number {
    return this.#counts.sum(stepAt(at), Timeline.steps)
  }
}

function stepAt(at: number): number {
  return Math.floor(at / Timeline.stepMs)
}

/** The calls of a caller in the last ten minutes, by one rule, as plain values that another process can be sent. */
export interface CallerUsage {
  readonly rule: string
  /** The rule's dimensions. */
  readonly by: readonly string[]
  readonly key: string
  /** Calls that the rule applied to, passed or not; of a sample, times how many calls one stands for. */
  readonly calls: number
  /** `calls` may differ by this much, in 19 of 20 cases, since only a sample is read; 0 if every call is. */
  readonly callsError: number
  /** Refusals by this rule, without those counted by `missed`; of a sample, times how many refusals one stands for. */
  readonly refused: number
  /** `refused` may differ by this much, in 19 of 20 cases, since only a sample is read; 0 if every refusal is. */
  readonly refusedError: number
  /** The most calls or refusals that may have come before the caller was found; they are not among the others. */
  readonly missed: number
  /** Milliseconds since 1970. */
  readonly firstAt: number
  readonly lastAt: number
  /** 0 if the caller was never refused. */
  readonly refusedAt: number
  /** Calls and refusals in each step of the last ten minutes, oldest first. */
  readonly timeline: { readonly calls: readonly number[]; readonly refused: readonly number[] }
  /** The last call that was read. */
  readonly example?: { readonly method: string; readonly path: string; readonly ip?: string | undefined } | undefined
}

export interface CallerQuery {
  readonly count: number
  readonly rule?: string | undefined
  /** Keeps only callers that were refused. */
  readonly refused?: boolean | undefined
  readonly sort?: 'refused' | 'calls' | undefined
  /** True if a caller is wanted. */
  readonly wants?: ((key: string, by: readonly string[]) => boolean) | undefined
}

interface Entry extends Scored {
  readonly key: string
  readonly firstAt: number
  /** The score of the caller that made room for this one, and so the most that was missed. */
  readonly missed: number
  readonly calls: Timeline
  readonly refused: Timeline
  lastAt: number
  refusedAt: number
  example: CallerUsage['example']
}

interface RuleSketch {
  readonly by: readonly string[]
  readonly entries: Map<string, Entry>
  readonly heap: Heap<Entry>
}

/** The age at which a score counts half. */
const halfLifeMs = 600_000
/** Scores grow with time instead of shrinking; before they become too large, they are scaled. */
const largestExponent = 500
const mostOfRule = 1000
const leastOfRule = 4

/**
 * Keeps who calls, by rule, in bounded memory: a sketch of each rule (Space-Saving, Metwally et al. 2005) with scores that fade.
 * 2005) with scores that fade. A caller that finds no room replaces the one with the lowest score; that score bounds what was
 * missed of the newcomer.
 */
export class CallerSketches {
  readonly #most: number
  readonly #rules = new Map<string, RuleSketch>()
  #since = 0
  #factorAt = 0
  #lastFactor = 1

  constructor(most = 40_000) {
    this.#most = most
  }

  /** Adds one call that was read, which stands for `weight`. */
  addCall(
    rule: string,
    by: readonly string[],
    key: string,
    at: number,
    weight = 1,
    example?: CallerUsage['example'],
  ): void {
    const entry = this.#touch(rule, by, key, at, weight)
    entry.calls.add(at, weight)
    if (example) entry.example = example
  }

  /** Adds one refusal that was read, which stands for `weight`. */
  addRefusal(rule: string, by: readonly string[], key: string, at: number, weight = 1): void {
    const entry = this.#touch(rule, by, key, at, weight)
    entry.refused.add(at, weight)
    entry.refusedAt = at
  }

  /** Reads the callers of the last ten minutes; `oneOf` is how many calls and refusals one that is read stands for. */
  read(
    { count, rule, refused = false, sort = 'refused', wants }: CallerQuery,
    at: number,
    oneOf: { readonly calls: number; readonly refusals: number } = { calls: 1, refusals: 1 },
  ): CallerUsage[] {
    const found: { id: string; by: readonly string[]; entry: Entry; calls: number; refusals: number }[] = []
    for (const [id, { by, entries }] of this.#rules) {
      if (rule !== undefined && rule !== id) continue
      for (const entry of entries.values()) {
        const [calls, refusals] = [entry.calls.sum(at), entry.refused.sum(at)]
        if (refusals === 0 && (refused || calls === 0)) continue
        if (wants && !wants(entry.key, by)) continue
        found.push({ id, by, entry, calls, refusals })
      }
    }
    const order = sort === 'calls' ? byCalls : byRefusals
    return found
      .sort(order)
      .slice(0, count)
      .map(({ id, by, entry, calls, refusals }) => ({
        ...{ rule: id, by, key: entry.key, calls: Math.max(calls, refusals), refused: refusals },
        callsError: errorOf(calls, oneOf.calls),
        refusedError: errorOf(refusals, oneOf.refusals),
        // of a score that fades to a half within the ten minutes, at most twice as many calls can be left
        missed: Math.ceil(2 * entry.missed * 2 ** -this.#exponent(at)),
        ...{ firstAt: entry.firstAt, lastAt: entry.lastAt, refusedAt: entry.refusedAt },
        timeline: { calls: entry.calls.read(at), refused: entry.refused.read(at) },
        ...(entry.example && { example: entry.example }),
      }))
  }

  /** Forgets the callers of rules that are gone. */
  retain(rules: ReadonlySet<string>): void {
    for (const id of this.#rules.keys()) if (!rules.has(id)) this.#rules.delete(id)
  }

  #touch(rule: string, by: readonly string[], key: string, at: number, weight: number): Entry {
    const sketch = this.#sketchOf(rule, by)
    const score = weight * this.#factor(at)
    const known = sketch.entries.get(key)
    if (known) {
      known.score += score
      known.lastAt = Math.max(known.lastAt, at)
      sketch.heap.grew(known)
      return known
    }
    const room = Math.max(leastOfRule, Math.min(mostOfRule, Math.floor(this.#most / this.#rules.size)))
    let missed = 0
    while (sketch.heap.items.length >= room) {
      const gone = sketch.heap.takeLeast()!
      sketch.entries.delete(gone.key)
      missed = Math.max(missed, gone.score)
    }
    const times = { firstAt: at, lastAt: at, refusedAt: 0 }
    const counts = { calls: new Timeline(), refused: new Timeline(), example: undefined }
    const entry: Entry = { key, score: missed + score, missed, place: 0, ...times, ...counts }
    sketch.entries.set(key, entry)
    sketch.heap.add(entry)
    return entry
  }

  #sketchOf(rule: string, by: readonly string[]): RuleSketch {
    const known = this.#rules.get(rule)
    // keys of other dimensions are other callers
    if (known && (known.by === by || String(known.by) === String(by))) return known
    const sketch: RuleSketch = { by, entries: new Map(), heap: new Heap() }
    this.#rules.set(rule, sketch)
    return sketch
  }

  /** Returns how much a call of this moment counts; the same for all calls of a millisecond. */
  #factor(at: number): number {
    if (at !== this.#factorAt) [this.#factorAt, this.#lastFactor] = [at, 2 ** this.#exponent(at)]
    return this.#lastFactor
  }

  #exponent(at: number): number {
    if (this.#since === 0) this.#since = at
    const exponent = (at - this.#since) / halfLifeMs
    if (exponent < largestExponent) return exponent
    const scale = 2 ** -exponent
    for (const { heap } of this.#rules.values()) {
      for (const entry of heap.items as (Entry & { missed: number })[]) {
        entry.score *= scale
        entry.missed *= scale
      }
    }
    this.#since = at
    return 0
  }
}

/** Returns two standard deviations of a count that was estimated by one in `oneOf`. */
function errorOf(count: number, oneOf: number): number {
  return oneOf === 1 ? 0 : Math.ceil(2 * Math.sqrt(count * oneOf))
}

interface Counted {
  readonly calls: number
  readonly refusals: number
}

/** By what is certain, not by what may have been missed. */
const byRefusals = (a: Counted, b: Counted): number => b.refusals - a.refusals || b.calls - a.calls
const byCalls = (a: Counted, b: Counted): number => b.calls - a.calls || b.refusals - a.refusals
