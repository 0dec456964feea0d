import fc from 'fast-check'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { algorithms } from '../../algorithms/index.ts'
import { optionsOf, overLimit, SimulatedFleet, type SimulatedRule } from '../fakes/simulated-fleet.ts'
import { VirtualTime } from '../fakes/virtual-time.ts'
import { WINDOW_SLICES } from './catch-up.ts'

vi.mock('node:timers/promises', async () => {
  const { virtualPause } = await import('../fakes/virtual-time.ts')
  return { setTimeout: virtualPause }
})

/** More are played by `npm run walk:fleet`, and with a real Redis by `npm run chaos -- restart-table`. */
const SCENES = Number(process.env.FLEET_SCENES ?? 3)
const TIMEOUT_MS = 60_000 + SCENES * 5000
const MINUTE = 60_000
/** All processes are back after this time, and until then each keeps to its share. */
const RETURNED_MS = 2000

let time = new VirtualTime()
afterEach(() => time.uninstall())

interface RestartScene {
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
  /** How many times in a row the store fails; default: once. */
  readonly times?: number | undefined
  /** So long after it is back, all connections break once more, and nothing is lost. */
  readonly stumblesAfterMs?: number | undefined
  /** One process is replaced by another one so long before the store fails, as a part of the period. */
  readonly replacedPart?: number | undefined
}

interface Outcome {
  /** Calls that were refused, and that a store which never fails would have refused: before, during and after. */
  readonly refused: readonly number[]
  readonly healthy: readonly number[]
  readonly offered: readonly number[]
  /** By how many permits the limit was exceeded. */
  readonly over: number
}

/** An even load for one and a half periods, a store that fails, and one and a half periods more. */
async function play(scene: RestartScene): Promise<Outcome> {
  const { rule, processes, load, cost = 1, kind, awayPart = 0.25, times = 1, replacedPart, stumblesAfterMs } = scene
  const { count, periodMs } = rule
  time = new VirtualTime()
  time.install(scene.seed ?? 1)
  try {
    const fleet = new SimulatedFleet(time, rule)
    const everyMs = ((periodMs * cost) / (count * load)) * processes
    const latency = (): number => 0.1 + Math.random()
    const join = () => fleet.join({ everyMs, latency, cost, tickMs: Math.min(everyMs, periodMs / 500) })
    const members: ReturnType<typeof join>[] = []
    for (let i = 0; i < processes; i++) time.after((i * everyMs) / processes, () => void members.push(join()))
    const failsAt = periodMs * 1.5
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
    await time.runUntil(backAt + periodMs * 1.5)
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

const names = ['sliding-window', 'sliding-log', 'fixed-window', 'token-bucket', 'leaky-bucket']
const ruleOf = (algorithm: string, count: number, periodMs: number, isLeased: boolean): SimulatedRule => {
  return { algorithm, count, periodMs, burst: count, isLeased }
}

describe('a store that comes back empty', () => {
  it.each(names)(
    'refuses no caller who uses two thirds or nine tenths of a %s',
    async algorithm => {
      const scenes = [
        { processes: 2, load: 0.66, rule: ruleOf(algorithm, 300, MINUTE, false) },
        { processes: 4, load: 0.9, rule: ruleOf(algorithm, 300, MINUTE, true) },
      ]
      for (const scene of scenes) {
        const outcome = await play({ ...scene, kind: 'killed' })
        expect(outcome).toMatchObject({ refused: [0, 0, 0], healthy: [0, 0, 0], over: 0 })
      }
    },
    TIMEOUT_MS,
  )
})

describe('a store that comes back empty, and whose connections break while processes report to it', () => {
  it('counts no report twice', async () => {
    const rule = ruleOf('sliding-log', 300, MINUTE, false)
    for (const stumblesAfterMs of [100, 120, 140, 160, 180, 200]) {
      const outcome = await play({ rule, processes: 3, load: 0.8, kind: 'killed', awayPart: 0.5, stumblesAfterMs })
      expect([stumblesAfterMs, outcome.refused, outcome.over]).toEqual([stumblesAfterMs, [0, 0, 0], 0])
    }
  })
})

const isLong = SCENES > 20
const anyScene = fc.record({
  seed: fc.integer(),
  rule: fc
    .record({
      algorithm: fc.constantFrom(...names),
      count: fc.constantFrom(60, 300, 900),
      periodMs: fc.constantFrom(10_000, MINUTE, isLong ? 10 * MINUTE : MINUTE),
      isLeased: fc.boolean(),
    })
    .map(({ algorithm, count, periodMs, isLeased }) => ruleOf(algorithm, count, periodMs, isLeased)),
  processes: fc.integer({ min: 2, max: isLong ? 8 : 4 }),
  cost: fc.constantFrom(1, 1, 3),
  kind: fc.constantFrom('killed' as const, 'flushed' as const, 'frozen' as const),
  awayPart: fc.constantFrom(0.1, 0.25, 1.2),
  times: fc.constantFrom(1, 1, 2),
  replacedPart: fc.constantFrom(undefined, undefined, 0.2, 0.7),
})

describe('a store that fails, whatever it loses', () => {
  it(
    'refuses no caller below six sevenths of the limit afterwards, and admits no more than a slice beyond it to others',
    async () => {
      const check = async (scene: Omit<RestartScene, 'load'>): Promise<void> => {
        const below = await play({ ...scene, load: 0.85 })
        expect([below.refused[0], below.refused[2], below.over]).toEqual([0, 0, 0])
        const { refused, healthy, offered, over } = await play({ ...scene, load: 1.5 })
        const { rule, processes, cost = 1 } = scene
        // what is admitted in a slice of a period, and about a call for each process
        expect(over).toBeLessThanOrEqual((rule.count * 1.5) / WINDOW_SLICES + processes * cost)
        // the others get what a store that never fails gives them, to within a tenth of what they ask for
        expect(refused[2]! - healthy[2]!).toBeLessThanOrEqual(offered[2]! / 10)
      }
      await fc.assert(fc.asyncProperty(anyScene, check), { numRuns: SCENES, endOnFailure: true })
    },
    TIMEOUT_MS,
  )
})

/** `RESTART_TABLE=1` prints the table of docs/reliability.md, in about two minutes. */
describe.runIf(process.env.RESTART_TABLE)('the table of restarts without data', () => {
  const percent = (counts: readonly number[], of: readonly number[]): string =>
    counts.map((count, phase) => `${Math.round((count / of[phase]!) * 1000) / 10} %`).join(' / ')
  const limits = [
    { limit: '20/s', count: 20, periodMs: 1000, sizes: [2, 4, 8], algorithms: ['sliding-window'] },
    { limit: '300/m', count: 300, periodMs: MINUTE, sizes: [2, 4, 8], algorithms: names },
    { limit: '600/10m', count: 600, periodMs: 10 * MINUTE, sizes: [2, 4], algorithms: ['sliding-window'] },
    { limit: '600/h', count: 600, periodMs: 60 * MINUTE, sizes: [2], algorithms: ['sliding-window'] },
  ]
  it('lists what is refused before, during and after, and what a healthy store refuses', {
    timeout: 900_000,
  }, async () => {
    for (const { limit, count, periodMs, sizes, algorithms: of } of limits) {
      for (const algorithm of of)
        for (const load of [0.67, 0.9, 1.5])
          for (const processes of sizes) {
            const rule = ruleOf(algorithm, count, periodMs, true)
            const { refused, healthy, offered, over } = await play({ rule, processes, load, kind: 'killed' })
            const shares = [percent(refused, offered), percent(healthy, offered)].join(' | ')
            process.stdout.write(
              `| ${algorithm} | ${limit} | ${Math.round(load * 100)} % | ${processes} | ${shares} | ${over} |\n`,
            )
          }
    }
  })
})
