import { playRestart, type RestartScene, restartAlgorithms, ruleOf } from '@test/fleet/restart-scene'
import type { SimulatedRule } from '@test/fleet/simulated-fleet'
import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { WINDOW_SLICES } from '../catch-up.ts'

vi.mock('node:timers/promises', async () => {
  const { virtualPause } = await import('@test/fleet/virtual-time')
  return { setTimeout: virtualPause }
})

/** More are played by `npm run long -- walk-fleet`, and with a real Redis by `npm run long -- chaos-restart`. */
const SCENES = Number(process.env.FLEET_SCENES ?? 3)
const TIMEOUT_MS = 60_000 + SCENES * 5000
const MINUTE = 60_000
/** What a sliding window is cut into by default. */
const SEGMENTS = 10

describe('a store that comes back empty', () => {
  it.each(restartAlgorithms)(
    'refuses no caller who uses two thirds or nine tenths of a %s',
    async algorithm => {
      const scenes = [
        { processes: 2, load: 0.66, rule: ruleOf(algorithm, 300, MINUTE, false) },
        { processes: 4, load: 0.9, rule: ruleOf(algorithm, 300, MINUTE, true) },
      ]
      for (const scene of scenes) {
        const outcome = await playRestart({ ...scene, kind: 'killed' })
        expect(outcome).toMatchObject({ refused: [0, 0, 0], healthy: [0, 0, 0], over: 0 })
      }
    },
    TIMEOUT_MS,
  )
})

describe('a store that comes back empty, and whose connections break while processes report to it', () => {
  it('no report is counted twice if connections break while processes report to an empty store', async () => {
    const rule = ruleOf('sliding-log', 300, MINUTE, false)
    for (const stumblesAfterMs of [100, 120, 140, 160, 180, 200]) {
      const outcome = await playRestart({
        rule,
        processes: 3,
        load: 0.8,
        kind: 'killed',
        awayPart: 0.5,
        stumblesAfterMs,
      })
      expect([stumblesAfterMs, outcome.refused, outcome.over]).toEqual([stumblesAfterMs, [0, 0, 0], 0])
    }
  })
})

/**
 * By which part of the period calls leave a restored window later than they would have: two slices, and for a sliding window two segments,
 * since the process that reports them has gathered them into segments, and the store does so again.
 */
const latePart = ({ algorithm }: SimulatedRule): number => {
  if (algorithm === 'sliding-window') return 2 / WINDOW_SLICES + 2 / SEGMENTS
  return algorithm === 'sliding-log' ? 2 / WINDOW_SLICES : 0
}

/** Permits that processes held when the store failed count as used, up to a tenth of the limit. */
const heldPart = ({ isLeased }: SimulatedRule): number => (isLeased ? 0.1 : 0)

/**
 * The part of the limit that is admitted in spite of both, less a call for each process, since each rounds up what it reports. For large
 * limits it is at least two thirds, which docs/reliability.md states.
 */
const safeLoad = ({ rule, processes, cost = 1 }: Omit<RestartScene, 'load'>): number => {
  const rounded = Math.max(0.02, (processes * cost) / rule.count)
  return Math.min(0.85, (1 - heldPart(rule)) / (1 + latePart(rule)) - rounded)
}

const isLong = SCENES > 20
const anyScene = fc.record({
  seed: fc.integer(),
  rule: fc
    .record({
      algorithm: fc.constantFrom(...restartAlgorithms),
      count: fc.constantFrom(60, 300, 900),
      periodMs: fc.constantFrom(10_000, MINUTE, isLong ? 10 * MINUTE : MINUTE),
      isLeased: fc.boolean(),
    })
    .map(({ algorithm, count, periodMs, isLeased }) => ruleOf(algorithm, count, periodMs, isLeased)),
  processes: fc.integer({ min: 2, max: isLong ? 8 : 4 }),
  cost: fc.constantFrom(1, 1, 3),
  kind: fc.constantFrom('killed' as const, 'flushed' as const, 'frozen' as const),
  failsAfter: fc.constantFrom(1.5, 1.2, 1.35, 1.85),
  awayPart: fc.constantFrom(0.1, 0.25, 1.2),
  times: fc.constantFrom(1, 1, 2),
  replacedPart: fc.constantFrom(undefined, undefined, 0.2, 0.7),
})

describe('a store that fails, whatever it loses', () => {
  it(
    'after a failure of the store no caller is refused who leaves room for calls that count longer, and other callers get at most a slice beyond the limit',
    async () => {
      const check = async (scene: Omit<RestartScene, 'load'>): Promise<void> => {
        const below = await playRestart({ ...scene, load: safeLoad(scene) })
        expect([below.refused[0], below.refused[2], below.over]).toEqual([0, 0, 0])
        const { refused, healthy, over } = await playRestart({ ...scene, load: 1.5 })
        const { rule, processes, cost = 1 } = scene
        // what is admitted in a slice of a period, and about a call for each process
        expect(over).toBeLessThanOrEqual((rule.count * 1.5) / WINDOW_SLICES + processes * cost)
        // the others get what a store that never fails gives them, but for what leaves a restored window later than it would have, once,
        // and for permits that were held; and each process has less left than one of its calls costs
        const lateCalls = (rule.count * (latePart(rule) + heldPart(rule))) / cost
        expect(refused[2]! - healthy[2]!).toBeLessThanOrEqual(lateCalls + processes)
      }
      // in one and a half periods it refuses 5 of 45 calls more than a healthy store, and in two periods none
      const shifted: Omit<RestartScene, 'load'> = {
        seed: 6,
        rule: ruleOf('sliding-log', 60, 10_000, true),
        processes: 2,
        cost: 3,
        kind: 'flushed',
        awayPart: 1.2,
        times: 2,
      }
      const examples: [typeof shifted][] = [[shifted]]
      // `npm test` plays the same scenes each time, and `npm run long -- walk-fleet` many random ones
      const seed = process.env.FLEET_SCENES === undefined ? { seed: 1 } : {}
      const options = { numRuns: SCENES, endOnFailure: true, examples, ...seed }
      await fc.assert(fc.asyncProperty<[typeof shifted]>(anyScene, check), options)
    },
    TIMEOUT_MS,
  )
})
