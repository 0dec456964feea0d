import type { StoreStats } from '../stores/failover/store-health.ts'
import { noCounts, type Stats } from './stats.ts'
import type { Counts } from './tally.ts'

/** What is kept of each second. */
export interface SecondCounts {
  readonly allowed: number
  readonly refused: number
  readonly waited: number
  readonly shadowRefused: number
}

export interface RuleSecond extends SecondCounts {
  readonly id: string
  /** How full the fullest key of the rule was, from 0 to 1. */
  readonly load?: number | undefined
}

/** One second: all calls, and the rules that had any. */
export interface SecondStats {
  /** When it began, in milliseconds since 1970. */
  readonly at: number
  readonly total: SecondCounts
  readonly rules: readonly RuleSecond[]
  /** How calls with rules of the whole fleet were decided in it; `leases.keys` and `leases.permits` are those at its end. */
  readonly store?: StoreStats | undefined
}

/** One number per second, oldest first. */
export type Series = Readonly<Record<keyof SecondCounts, readonly number[]>>

interface Frame {
  readonly at: number
  readonly ids: readonly string[]
  /** Four numbers for the total, then four for each rule. */
  readonly numbers: Uint32Array
}

const names = ['allowed', 'refused', 'waited', 'shadowRefused'] as const
const width = names.length

/** The last minutes, second by second, in bounded memory: a rule takes room only in seconds in which it was met. */
export class StatsHistory {
  readonly #seconds: number
  readonly #mostRows: number
  readonly #frames: Frame[] = []
  #rows = 0
  #before = new Map<string, Counts>()
  #totalBefore: Counts | undefined
  #storeBefore: StoreStats | undefined

  constructor(options: { readonly seconds?: number; readonly mostRows?: number } = {}) {
    this.#seconds = options.seconds ?? 600
    this.#mostRows = options.mostRows ?? 1_000_000
  }

  /** Stores what was counted since the last call, for the second that began at `at`; the first call only reads. */
  record(figures: Stats, loads: ReadonlyMap<string, number>, at: number): SecondStats {
    const isFirst = this.#totalBefore === undefined
    const total = since(figures.total, this.#totalBefore ?? figures.total)
    const rules: RuleSecond[] = []
    for (const rule of figures.rules) {
      const counts = since(rule, isFirst ? rule : this.#before.get(rule.id))
      const load = loads.get(rule.id)
      if (names.some(name => counts[name] > 0)) {
        rules.push(load === undefined ? { id: rule.id, ...counts } : { id: rule.id, ...counts, load })
      }
    }
    this.#before = new Map(figures.rules.map(rule => [rule.id, rule]))
    this.#totalBefore = figures.total
    const store = figures.store && storeSince(figures.store, this.#storeBefore ?? figures.store)
    this.#storeBefore = figures.store
    this.#keep({ at, total, rules })
    return { at, total, rules, ...(store ? { store } : {}) }
  }

  /** The newest `seconds`, of all calls and of the busiest rules. */
  read(
    seconds: number,
    options: { readonly mostRules?: number } = {},
  ): {
    readonly at: number
    readonly total: Series
    readonly rules: ReadonlyMap<string, Series>
  } {
    const length = Math.max(1, Math.min(seconds, this.#seconds))
    const at = this.#frames.at(-1)?.at ?? 0
    const total = blank(length)
    const rules = new Map<string, ReturnType<typeof blank>>()
    for (const frame of this.#frames) {
      const place = length - 1 - Math.round((at - frame.at) / 1000)
      if (place < 0) continue
      names.forEach((name, i) => {
        total[name][place]! += frame.numbers[i]!
      })
      frame.ids.forEach((id, row) => {
        const series = rules.get(id) ?? blank(length)
        rules.set(id, series)
        names.forEach((name, i) => {
          series[name][place]! += frame.numbers[(row + 1) * width + i]!
        })
      })
    }
    return { at, total, rules: busiest(rules, options.mostRules ?? 1000) }
  }

  #keep({ at, total, rules }: SecondStats): void {
    const numbers = new Uint32Array((rules.length + 1) * width)
    for (const [row, counts] of [total, ...rules].entries()) {
      for (const [i, name] of names.entries()) numbers[row * width + i] = counts[name]
    }
    this.#frames.push({ at, ids: rules.map(({ id }) => id), numbers })
    this.#rows += rules.length
    const oldest = at - (this.#seconds - 1) * 1000
    while (this.#frames.length > 1 && (this.#frames[0]!.at < oldest || this.#rows > this.#mostRows)) {
      this.#rows -= this.#frames.shift()!.ids.length
    }
  }
}

function since(now: Counts, before: Counts = noCounts): SecondCounts {
  return {
    allowed: grown(now.allowed, before.allowed),
    refused: grown(now.refused, before.refused),
    waited: grown(now.waited, before.waited),
    shadowRefused: grown(now.shadowRefused, before.shadowRefused),
  }
}

function storeSince(now: StoreStats, before: StoreStats): StoreStats {
  const { keys, permits, decided, requests } = now.leases
  return {
    asked: grown(now.asked, before.asked),
    decidedHere: grown(now.decidedHere, before.decidedHere),
    leases: {
      keys,
      permits,
      decided: grown(decided, before.leases.decided),
      requests: grown(requests, before.leases.requests),
    },
  }
}

/** A count that became smaller started again, with another rule of the same name or in another process. */
function grown(now: number, before: number): number {
  return now < before ? now : now - before
}

function blank(length: number): Record<keyof SecondCounts, number[]> {
  const zeros = () => new Array<number>(length).fill(0)
  return { allowed: zeros(), refused: zeros(), waited: zeros(), shadowRefused: zeros() }
}

function busiest(rules: ReadonlyMap<string, Series>, most: number): ReadonlyMap<string, Series> {
  if (rules.size <= most) return rules
  const calls = ({ allowed, refused }: Series) => [...allowed, ...refused].reduce((sum, count) => sum + count, 0)
  const ranked = [...rules].map(([id, series]) => [id, series, calls(series)] as const)
  return new Map(
    ranked
      .sort((a, b) => b[2] - a[2])
      .slice(0, most)
      .map(([id, series]) => [id, series]),
  )
}
