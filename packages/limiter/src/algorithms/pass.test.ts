import { randomRuns } from '@test/random-runs'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { subjects } from '../testing/subject.ts'
import { costFrom, nextMomentOfBadClock, pick, startFrom } from '../testing/walk.ts'
import type { PassResult } from './algorithm.ts'

const dice = fc.array(fc.nat(9999), { minLength: 6, maxLength: 6 })
const swift = Object.entries(subjects).filter(([, create]) => create([5, 5], [0, 0, 0], undefined).meter.memory)

it.each(swift)('%s: pass gives the answers of delay, take, remaining and idleAt', (_, create) => {
  fc.assert(
    fc.property(dice, dice, fc.array(dice, { maxLength: 40 }), ([start = 0, wait = 0, ...limit], options, steps) => {
      const timeoutUs = pick([undefined, undefined, 1000, 1_000_000], wait)
      const { meter, most, limit: numbers } = create(limit, options, timeoutUs)
      const [fused, apart] = [new Float64Array(meter.slots + 1), new Float64Array(meter.slots + 1)]
      const result: PassResult = { delay: 0, remaining: 0, idleAt: 0 }
      let now = startFrom(start)
      let retryUs = 0
      for (const step of steps) {
        now = nextMomentOfBadClock(now, step, numbers, retryUs)
        const cost = Math.max(1, costFrom(step, most))
        const delay = meter.delay(apart, 1, now, cost)
        if (delay === 0) meter.take(apart, 1, now, cost, 0)
        expect(meter.memory!.pass(fused, 1, now, cost, result)).toBe(delay === 0)
        if (delay > 0) expect(result.delay).toBe(delay)
        expect(result).toMatchObject({ remaining: meter.remaining(apart, 1, now), idleAt: meter.idleAt(apart, 1) })
        expect(fused).toEqual(apart)
        retryUs = delay
        if (delay === 0 || delay > meter.maxWaitUs) continue
        for (const state of [fused, apart]) meter.take(state, 1, now, cost, delay)
      }
    }),
    { numRuns: randomRuns(150) },
  )
})

it('the most common algorithms have a pass method', () => {
  expect(swift.map(([name]) => name)).toEqual(
    expect.arrayContaining(['fixed-window', 'sliding-window', 'token-bucket']),
  )
})
