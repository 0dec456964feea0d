import type { Estimate } from '../algorithms/adaptive/estimator.ts'
import { mergeSettled, type SettledCounts } from '../costs/settled-counts.ts'
import type { OverloadStatus } from '../overload/overload-guard.ts'
import type { StoreStats } from '../stores/failover/store-health.ts'
import { type Amounts, addAmounts } from './amounts.ts'
import type { DurationStats } from './durations.ts'
import { mergeEstimates, mergeOverloads } from './overload-stats.ts'
import { type Counts, countNames } from './tally.ts'

/** The figures of one rule since it came into force. */
export interface RuleStats extends Counts {
  readonly id: string
  /** Calls that wait for it at this moment. */
  readonly waiting: number
  /** Permits of it that are held in advance at this moment; undefined if they never are. */
  readonly leased?: number | undefined
  /** The findings of a rule that finds its limit; of its keys, for the one with the most calls in flight. */
  readonly estimate?: Estimate | undefined
  /** The ways in which its calls were settled; undefined if none was. */
  readonly settled?: SettledCounts | undefined
  /** The amounts that it has reserved, and what became of them; undefined if nothing was. */
  readonly amounts?: Amounts | undefined
}

export interface Unjudged {
  readonly passed: number
  readonly refused: number
}

/** All that was counted since the start, as plain values that another process can be sent. */
export interface Stats {
  /** Every call once, however many rules it met. */
  readonly total: Counts
  /** Calls that Diana failed to judge, by what became of them; they are in no other count. */
  readonly unjudged?: Unjudged | undefined
  readonly rules: readonly RuleStats[]
  /** The durations of a sample of calls, by where their rules are counted. */
  readonly durations: Readonly<Record<'memory' | 'redis', DurationStats>>
  /** The decisions on calls with rules of the whole fleet; undefined if nothing is counted in Redis. */
  readonly store?: StoreStats | undefined
  /** The load of the process, and what it has shed; undefined unless the document has `overload`. */
  readonly overload?: OverloadStatus | undefined
}

/** Returns the figures of several processes as if they were one. */
export function mergeStats(all: readonly Stats[]): Stats {
  const rules = new Map<string, RuleStats>()
  const estimates = new Map<string, Estimate[]>()
  for (const rule of all.flatMap(one => one.rules)) {
    rules.set(rule.id, addRules(rule, rules.get(rule.id)))
    if (rule.estimate) estimates.set(rule.id, [...(estimates.get(rule.id) ?? []), rule.estimate])
  }
  const stores = all.flatMap(({ store = [] }) => store)
  const overload = mergeOverloads(all.flatMap(one => one.overload ?? []))
  return {
    total: all.reduce<Counts>((sum, { total }) => add(total, sum), noCounts),
    unjudged: {
      passed: all.reduce((sum, { unjudged }) => sum + (unjudged?.passed ?? 0), 0),
      refused: all.reduce((sum, { unjudged }) => sum + (unjudged?.refused ?? 0), 0),
    },
    rules: [...rules.values()].map(rule => {
      const estimate = mergeEstimates(estimates.get(rule.id) ?? [])
      return estimate ? { ...rule, estimate } : rule
    }),
    durations: {
      memory: addDurations(all.map(({ durations }) => durations.memory)),
      redis: addDurations(all.map(({ durations }) => durations.redis)),
    },
    ...(stores.length > 0 ? { store: addStores(stores) } : {}),
    ...(overload ? { overload } : {}),
  }
}

export const noCounts: Counts = {
  allowed: 0,
  refused: 0,
  waited: 0,
  shadowRefused: 0,
  degradedAllowed: 0,
  degradedRefused: 0,
}

function addRules(one: RuleStats, other: RuleStats | undefined): RuleStats {
  const { id, waiting, leased } = one
  const settled = mergeSettled([one.settled, other?.settled])
  const amounts = addAmounts(one.amounts, other?.amounts)
  const isLeased = leased !== undefined || other?.leased !== undefined
  return {
    id,
    waiting: waiting + (other?.waiting ?? 0),
    ...(isLeased ? { leased: (leased ?? 0) + (other?.leased ?? 0) } : {}),
    ...(settled ? { settled } : {}),
    ...(amounts ? { amounts } : {}),
    ...add(one, other),
  }
}

function addStores(all: readonly StoreStats[]): StoreStats {
  const sum = (read: (one: StoreStats) => number): number => all.reduce((total, one) => total + read(one), 0)
  return {
    asked: sum(({ asked }) => asked),
    decidedHere: sum(({ decidedHere }) => decidedHere),
    leases: {
      keys: sum(({ leases }) => leases.keys),
      permits: sum(({ leases }) => leases.permits),
      decided: sum(({ leases }) => leases.decided),
      requests: sum(({ leases }) => leases.requests),
    },
  }
}

function add(one: Counts, other: Counts = noCounts): Counts {
  return Object.fromEntries(countNames.map(name => [name, one[name] + other[name]])) as unknown as Counts
}

function addDurations(all: readonly DurationStats[]): DurationStats {
  const longest = Math.max(0, ...all.map(({ counts }) => counts.length))
  return {
    counts: Array.from({ length: longest }, (_, i) => all.reduce((sum, { counts }) => sum + (counts[i] ?? 0), 0)),
    sumSeconds: all.reduce((sum, { sumSeconds }) => sum + sumSeconds, 0),
  }
}
