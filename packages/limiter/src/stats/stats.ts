import type { DurationStats } from './durations.ts'
import { type Counts, countNames } from './tally.ts'

/** The figures of one rule since it came into force. */
export interface RuleStats extends Counts {
  readonly id: string
  /** Calls that wait for it at this moment. */
  readonly waiting: number
}

/** All that was counted since the start, as plain values that another process can be sent. */
export interface Stats {
  /** Every call once, however many rules it met. */
  readonly total: Counts
  readonly rules: readonly RuleStats[]
  /** One call in so many is timed, by where its rules are counted. */
  readonly durations: Readonly<Record<'memory' | 'redis', DurationStats>>
}

/** The figures of several processes as if they were one. */
export function mergeStats(all: readonly Stats[]): Stats {
  const rules = new Map<string, RuleStats>()
  for (const { id, waiting, ...counts } of all.flatMap(one => one.rules)) {
    const known = rules.get(id)
    rules.set(id, { id, waiting: waiting + (known?.waiting ?? 0), ...add(counts, known) })
  }
  return {
    total: all.reduce<Counts>((sum, { total }) => add(total, sum), noCounts),
    rules: [...rules.values()],
    durations: {
      memory: addDurations(all.map(({ durations }) => durations.memory)),
      redis: addDurations(all.map(({ durations }) => durations.redis)),
    },
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
