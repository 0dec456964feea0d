import { historyNames, type SecondCounts } from './count-deltas.ts'
import type { StepHistory } from './step-history.ts'

/** The time that is asked for: its length, up to now or up to a moment. Milliseconds. */
export interface RangeQuery {
  readonly lengthMs: number
  readonly to?: number | undefined
  /** One rule; all calls unless given. */
  readonly rule?: string | undefined
}

/** One number for each step, oldest first; null if nothing is known of a step. */
export type RangeSeries = Readonly<Record<keyof SecondCounts, readonly (number | null)[]>>

/** A time in steps, and the time of the same length before it. */
export interface HistoryRange {
  readonly from: number
  readonly to: number
  readonly stepMs: number
  readonly series: RangeSeries
  readonly before: RangeSeries
  /** By rule, of the rules with the most calls. */
  readonly rules: ReadonlyMap<string, SecondCounts>
  readonly rulesBefore: ReadonlyMap<string, SecondCounts>
}

/** The steps that answer a question, all of one length. */
export interface RangeSteps {
  readonly from: number
  readonly to: number
  readonly stepMs: number
}

/** The name of all calls. */
export const allCalls = ''

const mostSteps = 400
const mostRules = 1000

/** Chooses the finest of several histories that reaches far enough back; the last one if none does. */
export function chooseLevel<Level extends Pick<StepHistory, 'stepMs' | 'frames'>>(
  levels: readonly Level[],
  { lengthMs, to }: RangeQuery,
  now: number,
): Level {
  const from = (to ?? now) - lengthMs
  return levels.find(({ stepMs, frames }) => now - from <= stepMs * frames) ?? levels.at(-1)!
}

/** Returns the steps of a history that a question is about: whole ones, and of many several as one. */
export function stepsOf(level: Pick<StepHistory, 'stepMs'>, { lengthMs, to }: RangeQuery, now: number): RangeSteps {
  const asked = Math.max(1, Math.ceil(lengthMs / level.stepMs))
  const stepMs = level.stepMs * Math.ceil(asked / mostSteps)
  const count = Math.max(1, Math.ceil(lengthMs / stepMs))
  // the step that is under way is not whole
  const whole = Math.floor(now / stepMs) * stepMs
  const end = to === undefined ? whole : Math.min(whole, Math.ceil(to / stepMs) * stepMs)
  return { from: end - count * stepMs, to: end, stepMs }
}

export function readRange(level: StepHistory, { from, to, stepMs }: RangeSteps, rule: string = allCalls): HistoryRange {
  const start = from - (to - from)
  return {
    ...{ from, to, stepMs },
    series: seriesOf(level, rule, { from, to, stepMs }),
    before: seriesOf(level, rule, { from: start, to: from, stepMs }),
    rules: busiest(level.sums(from, to)),
    rulesBefore: level.sums(start, from),
  }
}

function seriesOf(level: StepHistory, rule: string, { from, to, stepMs }: RangeSteps): RangeSeries {
  const group = Math.round(stepMs / level.stepMs)
  const fine = level.series(rule, from, to)
  const series = { allowed: [], refused: [], waited: [], shadowRefused: [] } as Record<
    keyof SecondCounts,
    (number | null)[]
  >
  for (let at = 0; at < fine.length; at += group) {
    const known = fine.slice(at, at + group).filter(counts => counts !== null)
    for (const name of historyNames) {
      series[name].push(known.length === 0 ? null : known.reduce((sum, counts) => sum + counts[name], 0))
    }
  }
  return series
}

function busiest(sums: Map<string, SecondCounts>): Map<string, SecondCounts> {
  const rules = [...sums].filter(([name]) => name !== allCalls)
  const calls = ({ allowed, refused }: SecondCounts) => allowed + refused
  if (rules.length > mostRules) rules.sort(([, one], [, other]) => calls(other) - calls(one))
  return new Map(rules.slice(0, mostRules))
}
