import { randomRuns } from '@test/random-runs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { OneKey } from '../testing/one-key.ts'
import { subjects } from '../testing/subject.ts'
import { costFrom, nextMoment, startFrom } from '../testing/walk.ts'

const die = fc.nat(20_000)
const dice = fc.tuple(die, die)
const steps = fc.array(fc.tuple(die, die, die), { minLength: 1, maxLength: 60, size: 'max' })
const timeoutUs = fc.constantFrom(undefined, undefined, 1, 1_000_000, 3_000_000, 1e11)
const runs = { numRuns: randomRuns(400) }

const foretold = [
  ...['fixed-window', 'fixed-window from the first call', 'sliding-log'],
  ...['token-bucket', 'token-bucket by intervals', 'leaky-bucket'],
]

describe.each(foretold)('%s', name => {
  it('every call gets the answer of the simplest implementation', () => {
    const property = fc.property(dice, dice, timeoutUs, die, steps, (limit, options, timeoutUs, start, steps) => {
      const subject = subjects[name]!(limit, options, timeoutUs)
      fc.pre(subject.oracle !== undefined)
      const key = new OneKey(subject.meter)
      let now = startFrom(start)
      let retryUs = 0
      for (const step of steps) {
        now = nextMoment(now, step, subject.limit, retryUs)
        const cost = costFrom(step, subject.most)
        retryUs = key.delay(now, cost) - subject.meter.maxWaitUs
        expect(key.take(now, cost)).toBe(subject.oracle!(now, cost))
      }
    })
    fc.assert(property, runs)
  })
})
