import { randomRuns } from '@test/random-runs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { OneKey } from '../../testing/one-key.ts'
import type { Meter } from '../algorithm.ts'
import { leakyBucket } from '../leaky-bucket.ts'
import { tokenBucket } from '../token-bucket.ts'
import { STEPS } from './low-points.ts'

interface Charge {
  readonly moment: number
  cost: number
}

/** The debt at `now`, in tokens times `periodUs`, replayed from all charges as if what was refunded had never been charged. */
function replayedLevel(charges: readonly Charge[], count: number, now: number): number {
  let [level, last] = [0, 0]
  for (const { moment, cost } of [...charges, { moment: now, cost: 0 }]) {
    level = Math.max(0, level - (moment - last) * count) + cost * PERIOD_US
    last = moment
  }
  return level
}

const COUNT = 100
const PERIOD_US = 1_000_000
const BURST = 100
const meters: readonly (readonly [string, Meter])[] = [
  ['token-bucket', tokenBucket.meter({ count: COUNT, periodMs: 1000 }, { burst: BURST })],
  ['leaky-bucket', leakyBucket.meter({ count: COUNT, periodMs: 1000 }, { burst: BURST - 1 })],
]

interface Step {
  readonly gapUs: number
  readonly cost: number
  readonly refunds: readonly (readonly [which: number, share: number])[]
}

const step: fc.Arbitrary<Step> = fc.record({
  gapUs: fc.oneof(fc.constant(0), fc.nat(3000), fc.nat(40_000), fc.nat(400_000)),
  cost: fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 60 })),
  refunds: fc.array(fc.tuple(fc.nat(), fc.nat()), { maxLength: 3 }),
})

/** Walks over charges and refunds of parts of them; after each step visits the debt and the replayed debt. */
function walk(
  meter: Meter,
  steps: readonly Step[],
  visit: (level: number, exact: number, moments: number) => void,
): void {
  const key = new OneKey(meter)
  const charges: Charge[] = []
  // asking when the whole bucket would fit shows the debt
  const levelAt = (now: number): number => key.delay(now, BURST) * COUNT
  // moments of charges since the bucket was full
  let moments = new Set<number>()
  let now = PERIOD_US
  for (const { gapUs, cost, refunds } of steps) {
    now += gapUs
    if (levelAt(now) === 0) moments = new Set()
    if (key.take(now, cost) !== undefined) {
      charges.push({ moment: now, cost })
      moments.add(now)
    }
    for (const [which, share] of refunds) {
      const charge = charges[which % Math.max(1, charges.length)]
      if (!charge || charge.cost === 0) continue
      const part = 1 + (share % charge.cost)
      key.giveBack(now, part, charge.moment)
      charge.cost -= part
    }
    visit(levelAt(now), replayedLevel(charges, COUNT, now), moments.size)
  }
}

describe.each(meters)('refunds to a %s', (_name, meter) => {
  it('a refund leaves what a replay without the refunded part leaves, while few calls came since the bucket was full', () => {
    const property = fc.property(fc.array(step, { maxLength: 40, size: 'max' }), steps => {
      walk(meter, steps, (level, exact, moments) => {
        if (moments <= STEPS) expect(level).toBe(exact)
      })
    })
    fc.assert(property, { numRuns: randomRuns(400) })
  })

  it('a refund never leaves less than a replay without the refunded part, for any number of calls', () => {
    const property = fc.property(fc.array(step, { maxLength: 80, size: 'max' }), steps => {
      walk(meter, steps, (level, exact) => expect(level).toBeGreaterThanOrEqual(exact))
    })
    fc.assert(property, { numRuns: randomRuns(200) })
  })
})
