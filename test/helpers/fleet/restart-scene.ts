import { algorithms } from '../../../packages/limiter/src/algorithms/index.ts'
import { optionsOf, overLimit, SimulatedFleet, type SimulatedRule } from './simulated-fleet.ts'
import { VirtualTime } from './virtual-time.ts'

/** All processes are back after this time, and until then each keeps to its share. */
const RETURNED_MS = 2000

export interface RestartScene {
  readonly seed?: number | undefined
  readonly rule: SimulatedRule
  readonly processes: number
  /** What callers ask for, as a part of the limit. */
  readonly load: number
  /** What a call costs; default: 1. */
  readonly cost?: number | undefined
  /** `killed`: it is away and comes back empty; `flushed`: it is empty at once; `frozen`: it is away and loses nothing. */
  readonly kind: 'killed' | 'flushed' | 'frozen'
  /** For which part of a period the store is away; default: a quarter. */
  readonly awayPart?: number | undefined
  /** After how many periods the store fails first; default: one and a half. */
  readonly failsAfter?: number | undefined
  /** How many times in a row the store fails; default: once. */
  readonly times?: number | undefined
  /** So long after it is back, all connections break once more, and nothing is lost. */
  readonly stumblesAfterMs?: number | undefined
  /** One process is replaced by another one so long before the store fails, as a part of the period. */
  readonly replacedPart?: number | undefined
}

export interface RestartOutcome {
  /** Calls that were refused, and that a store which never fails would have refused: before, during and after. */
  readonly refused: readonly number[]
  readonly healthy: readonly number[]
  readonly offered: readonly number[]
  /** By how many permits the limit was exceeded. */
  readonly over: number
}

/**
 * An even load for a while, a store that fails, and two periods more. A caller above the limit is refused at certain times
 * of a period, which may be other ones after the failure, so only whole periods show how much is refused.
 */
export async function playRestart(scene: RestartScene): Promise<RestartOutcome> {
  const { rule, processes, load, cost = 1, kind, awayPart = 0.25, times = 1, failsAfter = 1.5 } = scene
  const { replacedPart, stumblesAfterMs } = scene
  const { count, periodMs } = rule
  const time = new VirtualTime()
  time.install(scene.seed ?? 1)
  try {
    const fleet = new SimulatedFleet(time, rule)
    const everyMs = ((periodMs * cost) / (count * load)) * processes
    const latency = (): number => 0.1 + Math.random()
    const join = () => fleet.join({ everyMs, latency, cost, tickMs: Math.min(everyMs, periodMs / 500) })
    const members: ReturnType<typeof join>[] = []
    for (let i = 0; i < processes; i++) time.after((i * everyMs) / processes, () => void members.push(join()))
    const failsAt = periodMs * failsAfter
    if (replacedPart !== undefined) {
      await time.runUntil(failsAt - periodMs * replacedPart)
      void members[0]!.then(one => one.leave())
      members.push(join())
    }
    await time.runUntil(failsAt)
    for (let failure = 0; failure < times; failure++) {
      if (kind !== 'frozen') fleet.store.forget()
      if (kind !== 'flushed') fleet.cut('refused')
      await time.runUntil(time.now + periodMs * awayPart)
      if (kind !== 'flushed') fleet.mend(100)
    }
    if (stumblesAfterMs !== undefined) {
      await time.runUntil(time.now + stumblesAfterMs)
      fleet.cut('refused')
      fleet.mend(100)
    }
    const backAt = time.now + RETURNED_MS
    await time.runUntil(backAt + periodMs * 2)
    const phases = [0, failsAt, backAt, Number.POSITIVE_INFINITY]
    const refusals = fleet.refused.map(({ start }) => start)
    const calls = [...fleet.admitted.map(({ start }) => start), ...refusals].sort((a, b) => a - b)
    const inPhases = (moments: readonly number[]): number[] =>
      [0, 1, 2].map(phase => moments.filter(at => at >= phases[phase]! && at < phases[phase + 1]!).length)
    const admitted = Array.from({ length: cost }, () => fleet.admitted).flat()
    const healthy = inPhases(refusedByHealthy(calls, rule, cost))
    return { refused: inPhases(refusals), healthy, offered: inPhases(calls), over: overLimit(admitted, rule) }
  } finally {
    time.uninstall()
  }
}

/** The calls that one store which never fails refuses. */
function refusedByHealthy(
  calls: readonly number[],
  { algorithm, count, periodMs, burst }: SimulatedRule,
  cost: number,
) {
  const { meter } = algorithms.find(({ name }) => name === algorithm)!
  const counts = meter({ count, periodMs }, optionsOf(algorithm, burst))
  const state = new Float64Array(counts.slots)
  return calls.filter(at => {
    const now = Math.round(1e15 + at * 1000)
    const fits = counts.delay(state, 0, now, cost) === 0
    if (fits) counts.take(state, 0, now, cost, 0)
    return !fits
  })
}

export const restartAlgorithms = ['sliding-window', 'sliding-log', 'fixed-window', 'token-bucket', 'leaky-bucket']
export const ruleOf = (algorithm: string, count: number, periodMs: number, isLeased: boolean): SimulatedRule => {
  return { algorithm, count, periodMs, burst: count, isLeased }
}
