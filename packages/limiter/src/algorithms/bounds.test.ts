import { randomRuns } from '@test/random-runs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { OneKey } from '../testing/one-key.ts'
import { type Admission, type Subject, subjects } from '../testing/subject.ts'
import { costFrom, type Dice, nextMoment, nextMomentOfBadClock, startFrom } from '../testing/walk.ts'

const die = fc.nat(20_000)
const dice = fc.tuple(die, die)
const steps = fc.array(fc.tuple(die, die, die), { minLength: 1, maxLength: 50, size: 'max' })
const timeoutUs = fc.constantFrom(undefined, undefined, 1, 1_000_000, 3_000_000, 1e11)
const runs = { numRuns: randomRuns(400) }

type Stride = typeof nextMoment

/** Walks over a subject; answers with what was admitted, at the moments the calls pass. */
function walk({ limit, meter, most }: Subject, start: number, steps: readonly Dice[], stride: Stride): Admission[] {
  const key = new OneKey(meter)
  const admitted: Admission[] = []
  let now = startFrom(start)
  let retryUs = 0
  for (const step of steps) {
    now = stride(now, step, limit, retryUs)
    const cost = costFrom(step, most)
    retryUs = key.delay(now, cost) - meter.maxWaitUs
    const moment = key.take(now, cost)
    if (moment !== undefined && cost > 0) admitted.push({ moment, cost })
  }
  return admitted
}

describe.each(Object.entries(subjects))('%s', (_name, subjectFrom) => {
  it('no more than the bound is admitted, counted at the moments the calls pass', () => {
    const property = fc.property(dice, dice, timeoutUs, die, steps, (limit, options, timeoutUs, start, steps) => {
      const subject = subjectFrom(limit, options, timeoutUs)
      subject.assertBound(walk(subject, start, steps, nextMoment))
    })
    fc.assert(property, runs)
  })

  it('waiting calls pass in the order they came', () => {
    const property = fc.property(dice, dice, timeoutUs, die, steps, (limit, options, timeoutUs, start, steps) => {
      const moments = walk(subjectFrom(limit, options, timeoutUs), start, steps, nextMoment).map(call => call.moment)
      expect(moments).toEqual(moments.toSorted((a, b) => a - b))
    })
    fc.assert(property, runs)
  })

  it('no more than the bound is admitted when the clock steps back and forth', () => {
    const property = fc.property(dice, dice, timeoutUs, die, steps, (limit, options, timeoutUs, start, steps) => {
      const subject = subjectFrom(limit, options, timeoutUs)
      let latest = 0
      // the only usable time of such a clock is the latest moment it has shown
      const admitted = walk(subject, start, steps, nextMomentOfBadClock).map(({ moment, cost }) => {
        latest = Math.max(latest, moment)
        return { moment: latest, cost }
      })
      subject.assertBound(admitted)
    })
    fc.assert(property, runs)
  })
})
