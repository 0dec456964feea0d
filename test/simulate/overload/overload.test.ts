import { describe, expect, test } from 'vitest'
import { adaptive } from '../../../packages/limiter/src/algorithms/adaptive.ts'
import type { Meter } from '../../../packages/limiter/src/algorithms/algorithm.ts'
import { capacityStep, critical, disturbed, services, steady, stepToThree } from './scenes.mjs'

const meter = (limit = 2000): Meter => adaptive.meter({ count: limit, periodMs: 0 }, {})
const seeds = [1, 2, 3]
const all = Object.entries(services)
const withSeeds = all.flatMap(([name, service]) => seeds.map(seed => ({ name, service, seed })))

describe('an adaptive limit in front of a simulated service', () => {
  test.each(withSeeds)('three times the capacity of a service ($name, seed $seed): goodput and latency stay', scene => {
    const { goodput, p99Times, onsetTimes } = stepToThree(meter(), scene.service, scene.seed, 30)
    expect(goodput).toBeGreaterThanOrEqual(0.95)
    expect(p99Times).toBeLessThanOrEqual(2)
    expect(onsetTimes).toBeLessThanOrEqual(4)
  })

  test.each(seeds)('a fixed pool whose capacity halves or doubles: the limit is near the new knee (seed %i)', seed => {
    for (const factor of [0.5, 2]) {
      const step = capacityStep(meter(), services['fixed pool'], seed, factor)
      expect(step, JSON.stringify(step)).toMatchObject({ isNear: true })
      expect(step.firstMs).toBeLessThanOrEqual(10_000)
    }
  })

  test.each(all)('steady load at 0.8 of the capacity with pauses: nothing is refused (%s)', (_, service) => {
    expect(steady(meter(), service, 1, 60).refused).toBe(0)
  })

  test.each(seeds)('critical calls below the capacity are admitted in overload (seed %i)', seed => {
    expect(critical(meter(), services['fixed pool'], seed, 20).admitted).toBeGreaterThanOrEqual(0.999)
  })

  test.each([
    ['callers who leave', { abort: { share: 0.3, afterMs: 20 } }],
    ['failures', { failing: 0.3 }],
  ])('the limit stays near the knee in spite of %s', (_, disturbance) => {
    const { median, knee } = disturbed(meter(), 1, disturbance)
    expect(median).toBeGreaterThan(0.6 * knee)
    expect(median).toBeLessThan(2 * knee)
  })

  test('the same seed gives the same run', () => {
    const run = () => stepToThree(meter(), services.noisy, 5, 12).run.limits
    expect(run()).toEqual(run())
  })
})
