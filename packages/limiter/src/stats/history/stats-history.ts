import type { StoreStats } from '../../stores/failover/store-health.ts'
import type { Stats } from '../stats.ts'
import { CountDeltas, grown, historyNames, type RuleCounts, type SecondCounts } from './count-deltas.ts'
import { historyLevels } from './history-levels.ts'
import { allCalls, chooseLevel, type HistoryRange, type RangeQuery, readRange, stepsOf } from './read-range.ts'
import { StepHistory } from './step-history.ts'

export interface RuleSecond extends RuleCounts {
  /** The load of the fullest key of the rule, from 0 to 1. */
  readonly load?: number | undefined
}

/** One second: all calls, and the rules that had any. */
export interface SecondStats {
  /** The time when it began, in milliseconds since 1970. */
  readonly at: number
  readonly total: SecondCounts
  readonly rules: readonly RuleSecond[]
  /** The decisions on calls with rules of the whole fleet in it; `leases.keys` and `leases.permits` are those at its end. */
  readonly store?: StoreStats | undefined
}

/** One number per second, oldest first. */
export type Series = Readonly<Record<keyof SecondCounts, readonly number[]>>

/** The last minutes by seconds, and the last two weeks in longer steps, in bounded memory. */
export class StatsHistory {
  readonly #seconds: StepHistory
  readonly #levels: readonly StepHistory[]
  readonly #deltas = new CountDeltas()
  #storeBefore: StoreStats | undefined
  #newest = 0

  constructor(options: { readonly seconds?: number; readonly mostRows?: number } = {}) {
    const { seconds = 600, mostRows = 1_000_000 } = options
    this.#seconds = new StepHistory({ stepMs: 1000, frames: seconds, maxRows: mostRows, maxTotalRows: mostRows })
    this.#levels = [this.#seconds, ...historyLevels.map(level => new StepHistory(level))]
  }

  /** Stores what was counted since the last call, for the second that began at `at`; the first call only reads. */
  record(figures: Stats, loads: ReadonlyMap<string, number>, at: number): SecondStats {
    const { total, rules: counted } = this.#deltas.take(figures)
    const rows = [[allCalls, total] as const, ...counted.map(rule => [rule.id, rule] as const)]
    for (const level of this.#levels) level.add(at, rows)
    this.#newest = at
    const rules = counted.map((rule): RuleSecond => {
      const load = loads.get(rule.id)
      return load === undefined ? rule : { ...rule, load }
    })
    const store = figures.store && storeSince(figures.store, this.#storeBefore ?? figures.store)
    this.#storeBefore = figures.store
    return { at, total, rules, ...(store ? { store } : {}) }
  }

  /** Reads the newest `seconds`, of all calls and of the busiest rules. */
  read(
    seconds: number,
    options: { readonly mostRules?: number } = {},
  ): {
    readonly at: number
    readonly total: Series
    readonly rules: ReadonlyMap<string, Series>
  } {
    const length = Math.max(1, Math.min(seconds, this.#seconds.frames))
    const [from, to] = [this.#newest - (length - 1) * 1000, this.#newest + 1000]
    const seriesOf = this.#seconds.seriesByName(from, to)
    const total = seriesOf.get(allCalls) ?? blank(length)
    seriesOf.delete(allCalls)
    return { at: this.#newest, total, rules: busiest(seriesOf, options.mostRules ?? 1000) }
  }

  /** Returns a time of up to a week, in steps that depend on its length, and the time before it. */
  range(query: RangeQuery, now: number): HistoryRange {
    const level = chooseLevel(this.#levels, query, now)
    return readRange(level, stepsOf(level, query, now), query.rule)
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

function blank(length: number): Series {
  const zeros = () => new Array<number>(length).fill(0)
  return Object.fromEntries(historyNames.map(name => [name, zeros()])) as unknown as Series
}

function busiest(rules: Map<string, Series>, most: number): ReadonlyMap<string, Series> {
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
