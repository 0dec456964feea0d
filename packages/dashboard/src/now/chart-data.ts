import type { History, StepSeries } from '../api/generated.ts'
import type { ChartData } from '../charts/chart.tsx'
import { drawnSeconds } from '../figures/drawn-seconds.ts'
import { ringOf, total } from '../figures/live.ts'
import { COUNTS, type Count } from '../figures/ring.ts'

type Rates = Record<Count, (number | null)[]>

/** Returns the seconds of the live stream, beside the history of the time before. */
export function liveData(rule: string | undefined, now: number, before: History | undefined): ChartData {
  const ring = rule === undefined ? total : ringOf(rule)
  const seconds = drawnSeconds(now)
  const rates = Object.fromEntries(COUNTS.map(name => [name, seconds.map(at => ring?.at(at, name) ?? 0)])) as Rates
  if (before === undefined) return { seconds, rates }
  const length = before.to - before.from
  const earlier = (name: Count) => seconds.map(at => rateAt(before, name, at * 1000 - length))
  return { seconds, rates, before: { allowed: earlier('allowed'), refused: earlier('refused') } }
}

/** Returns the steps of a history, each at its beginning. */
export function historyData(history: History, compares: boolean): ChartData {
  const { from, stepMs, series, before } = history
  const seconds = series.allowed.map((_, step) => (from + step * stepMs) / 1000)
  const rates = Object.fromEntries(COUNTS.map(name => [name, perSecond(series, name, stepMs)])) as Rates
  if (!compares) return { seconds, rates }
  const earlier = (name: Count) => perSecond(before, name, stepMs)
  return { seconds, rates, before: { allowed: earlier('allowed'), refused: earlier('refused') } }
}

/** Calls per second at a moment, be it in the time that was asked for or in the one before. */
function rateAt({ from, to, stepMs, series, before }: History, name: Count, at: number): number | null {
  const isBefore = at < from
  const step = Math.floor((at - (isBefore ? from - (to - from) : from)) / stepMs)
  const count = (isBefore ? before : series)[name][step]
  return count == null ? null : count / (stepMs / 1000)
}

function perSecond(series: StepSeries, name: Count, stepMs: number): (number | null)[] {
  return series[name].map(count => (count === null ? null : count / (stepMs / 1000)))
}
