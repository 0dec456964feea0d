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

  // overload from the first call on: the service is never seen without a queue
  test.each([
    ['fixed pool', 1],
    ['fixed pool', 2],
    ['noisy', 1],
    ['CPU-bound', 1],
    ['CPU-bound', 2],
    ['slow dependency', 1],
  ] as const)(
    'a service (%s) whose capacity halves or doubles: the limit is near the new knee (seed %i)',
    (name, seed) => {
      for (const factor of [0.5, 2]) {
        const step = capacityStep(meter(), services[name], seed, factor)
        // of a knee of 4, a whole number beside it is 25 % off
        expect(Math.abs(step.median - step.knee), JSON.stringify(step)).toBeLessThanOrEqual(
          Math.max(2, 0.2 * step.knee),
        )
        expect(step.firstMs).toBeLessThanOrEqual(10_000)
      }
    },
  )

  test.each(all)('steady load at 0.8 of the capacity with pauses: nothing is refused (%s)', (_, service) => {
    expect(steady(meter(), service, 1, 60).refused).toBe(0)
  })

  test.each(['fixed pool', 'CPU-bound', 'slow dependency'] as const)(
    'critical calls below the capacity of a service (%s) are admitted in overload',
    name => {
      for (const seed of seeds) {
        expect(critical(meter(), services[name], seed, 15).admitted).toBeGreaterThanOrEqual(0.999)
      }
    },
  )

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
