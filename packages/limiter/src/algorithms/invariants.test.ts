import { randomRuns } from '@test/random-runs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { answersOf, momentsAfter, passesOf, walk } from '../testing/algorithms/key-walk.ts'
import { OneKey } from '../testing/one-key.ts'
import { type Admission, subjects } from '../testing/subject.ts'
import { nextMoment } from '../testing/walk.ts'

const die = fc.nat(20_000)
const dice = fc.tuple(die, die)
const steps = fc.array(fc.tuple(die, die, die), { minLength: 1, maxLength: 40, size: 'max' })
const timeoutUs = fc.constantFrom(undefined, undefined, 1, 1_000_000, 3_000_000, 1e11)
const runs = { numRuns: randomRuns(200) }

describe.each(Object.entries(subjects))('%s', (name, subjectFrom) => {
  // its prices are doubles, and rounded up to whole microseconds one last digit may show
  const doubtUs = name === 'warm-up' ? 1 : 0
  const given = [dice, dice, timeoutUs, die, steps] as const

  it('reading a state changes nothing, and a cost of 0 always fits', () => {
    const property = fc.property(...given, (limit, options, timeoutUs, start, steps) => {
      const subject = subjectFrom(limit, options, timeoutUs)
      walk(subject, start, steps, (key, now) => {
        const before = key.bits()
        answersOf(key, now, subject)
        key.idleAt()
        expect(key.delay(now, 0)).toBe(0)
        expect(key.bits()).toBe(before)
      })
    })
    fc.assert(property, runs)
  })

  it('a refused call passes at its announced moment, and not a microsecond before', () => {
    const property = fc.property(...given, (limit, options, timeoutUs, start, steps) => {
      const subject = subjectFrom(limit, options, timeoutUs)
      const { maxWaitUs } = subject.meter
      walk(subject, start, steps, (key, now, cost) => {
        const delay = key.delay(now, cost)
        if (delay <= maxWaitUs) return
        if (delay === Number.POSITIVE_INFINITY) {
          expect(cost).toBeGreaterThan(subject.most)
          return
        }
        const retry = now + delay - maxWaitUs
        expect(key.delay(retry - 1, cost)).toBe(maxWaitUs + 1)
        expect(key.delay(retry, cost)).toBe(maxWaitUs)
        if (retry - 1000 >= now) expect(key.delay(retry - 1000, cost)).toBe(maxWaitUs + 1000)
      })
    })
    fc.assert(property, runs)
  })

  it('a key that is forgotten once it is idle gets the same answers', () => {
    const property = fc.property(...given, (limit, options, timeoutUs, start, steps) => {
      const subject = subjectFrom(limit, options, timeoutUs)
      const forgetful = new OneKey(subject.meter)
      walk(subject, start, steps, (key, now, cost, [sweep = 0]) => {
        if (sweep % 2 === 0 && forgetful.idleAt() <= now) forgetful.forget()
        forgetful.begin(now)
        expect(answersOf(forgetful, now, subject)).toEqual(answersOf(key, now, subject))
        forgetful.take(now, cost)
      })
    })
    fc.assert(property, runs)
  })

  it('a call refunded at once frees what it took, and never more', () => {
    const property = fc.property(...given, die, (limit, options, timeoutUs, start, steps, laterDie) => {
      const subject = subjectFrom(limit, options, timeoutUs)
      walk(subject, start, steps, (never, now, cost) => {
        const kept = never.clone()
        const moment = kept.take(now, cost)
        if (moment === undefined || cost === 0) return
        const given = kept.clone()
        const later = nextMoment(now, [laterDie % 8, laterDie], subject.limit, 0)
        given.giveBack(later, cost, moment)
        // a bucket that starts empty remembers a key for longer because of the call, and so does not start again
        if (subject.meter.rate?.start && momentsAfter(later, subject).some(moment => never.idleAt() <= moment)) return
        const [earliest, latest] = [passesOf(never, later, subject), passesOf(kept, later, subject)]
        const isBetween = (passes: number, i: number) =>
          passes >= earliest[i]! - doubtUs && passes <= latest[i]! + doubtUs
        if (!passesOf(given, later, subject).every(isBetween)) expect.fail(`given back at ${later} of ${moment}`)
      })
    })
    fc.assert(property, { numRuns: randomRuns(60) })
  })

  it('a refund after its key is idle changes nothing, whether or not the key was forgotten', () => {
    const property = fc.property(...given, die, die, (limit, options, timeoutUs, start, steps, laterDie, which) => {
      const subject = subjectFrom(limit, options, timeoutUs)
      const [key, admitted]: [OneKey, Admission[]] = [new OneKey(subject.meter), []]
      walk(subject, start, steps, (_, now, cost) => {
        const moment = key.take(now, cost)
        if (moment !== undefined && cost > 0) admitted.push({ moment, cost })
      })
      const gone = admitted[which % admitted.length]
      const later = key.idleAt() + (laterDie % 3 === 0 ? 0 : laterDie * laterDie)
      if (!gone || later > Number.MAX_SAFE_INTEGER / 4) return
      const expected = answersOf(new OneKey(subject.meter), later, subject)
      for (const given of [key, new OneKey(subject.meter)]) {
        given.giveBack(later, gone.cost, gone.moment)
        expect(answersOf(given, later, subject)).toEqual(expected)
      }
    })
    fc.assert(property, { numRuns: randomRuns(60) })
  })

  it('refunds in any order never admit more than the bound', () => {
    const property = fc.property(dice, dice, die, steps, (limit, options, start, steps) => {
      const subject = subjectFrom(limit, options, undefined)
      let admitted: Admission[] = []
      const key = new OneKey(subject.meter)
      walk(subject, start, steps, (_, now, cost, [give = 0, which = 0]) => {
        const gone = give % 3 === 0 ? admitted[which % admitted.length] : undefined
        if (gone) key.giveBack(now, gone.cost, gone.moment)
        admitted = admitted.filter(call => call !== gone)
        const moment = key.take(now, cost)
        if (moment !== undefined && cost > 0) admitted.push({ moment, cost })
        subject.assertBound(admitted)
      })
    })
    fc.assert(property, runs)
  })
})

// a call of any cost passes a warm-up at once, if one does
const { 'warm-up': _, ...counting } = subjects

describe.each(Object.entries(counting))('%s', (_name, subjectFrom) => {
  it('the remaining cost passes at once, and one more does not', () => {
    const property = fc.property(dice, dice, timeoutUs, die, steps, (limit, options, timeoutUs, start, steps) => {
      walk(subjectFrom(limit, options, timeoutUs), start, steps, (key, now) => {
        const remaining = key.remaining(now)
        expect(key.delay(now, remaining)).toBe(0)
        expect(key.delay(now, remaining + 1)).toBeGreaterThan(0)
      })
    })
    fc.assert(property, runs)
  })
})

const exact = [
  ...['fixed-window', 'fixed-window from the first call', 'sliding-log'],
  ...['token-bucket', 'token-bucket by intervals', 'leaky-bucket'],
]

describe.each(exact)('%s', name => {
  it('a call of cost 1 that is refunded at once leaves no trace', () => {
    const property = fc.property(dice, dice, timeoutUs, die, steps, (limit, options, timeoutUs, start, steps) => {
      const subject = subjects[name]!(limit, options, timeoutUs)
      // buckets that wait for fractions of a microsecond lose them
      fc.pre(!name.endsWith('bucket') || (subject.limit.periodMs * 1000) % subject.limit.count === 0)
      const undone = new OneKey(subject.meter)
      walk(subject, start, steps, (key, now, cost, [extra = 0]) => {
        undone.begin(now)
        const moment = extra % 2 === 0 ? undone.take(now, 1) : undefined
        if (moment !== undefined) undone.giveBack(now, 1, moment)
        expect(answersOf(undone, now, subject)).toEqual(answersOf(key, now, subject))
        undone.take(now, cost)
      })
    })
    fc.assert(property, runs)
  })
})
