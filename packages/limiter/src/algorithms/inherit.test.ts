import { randomRuns } from '@test/random-runs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { inheritStates, layOut } from '../stores/memory/migrate-states.ts'
import { subjects } from '../testing/subject.ts'
import { type Dice, nextMoment, pick, startFrom } from '../testing/walk.ts'
import type { Algorithm, Limit, Meter, WaitOptions } from './algorithm.ts'
import { concurrency } from './concurrency.ts'
import { fixedWindow } from './fixed-window.ts'
import { leakyBucket } from './leaky-bucket.ts'
import { slidingLog } from './sliding-log.ts'
import { slidingWindow } from './sliding-window.ts'
import { tokenBucket } from './token-bucket.ts'
import { warmUp } from './warm-up.ts'

const SECOND = 1_000_000
const runs = { numRuns: randomRuns(125) }

/** One caller under a rule that changes. */
class ChangingKey {
  meter: Meter
  state: Float64Array

  constructor(meter: Meter) {
    this.meter = meter
    this.state = new Float64Array(meter.slots)
  }

  clone(): ChangingKey {
    const lua = new ChangingKey(this.meter)
    lua.state = this.state.slice()
    return lua
  }

  change(meter: Meter, now: number): this {
    this.state = inheritStates(this.state, 1, layOut([this.meter]), layOut([meter]), now)
    this.meter = meter
    return this
  }

  delay(now: number, cost = 1): number {
    return this.meter.delay(this.state, 0, now, cost)
  }

  /** The moment at which the call passes, if it does. */
  take(now: number, cost = 1): number | undefined {
    const delay = this.delay(now, cost)
    this.meter.rate?.start?.begin(this.state, 0, now)
    if (delay > this.meter.maxWaitUs) return undefined
    this.meter.take(this.state, 0, now, cost, delay)
    return now + delay
  }

  takeMany(now: number, calls: number): number {
    let passed = 0
    while (passed < calls && this.take(now) !== undefined) passed++
    return passed
  }

  remaining(now: number): number {
    return this.meter.remaining(this.state, 0, now)
  }
}

const die = fc.nat(20_000)
const step = fc.tuple(die, die, die, die, die, die)
const walk = fc.array(step, { minLength: 1, maxLength: 60, size: 'max' })
const timeoutUs = fc.constantFrom(undefined, undefined, 1, SECOND, 30 * SECOND)

const counts = [1, 2, 3, 5, 10, 97, 100, 1000, 0]
const periodsMs = [1, 10, 100, 1000, 7000, 60_000, 3_600_000]

function limitFrom([count = 0, period = 0]: Dice): Limit {
  return { count: pick(counts, count), periodMs: pick(periodsMs, period) }
}

interface Call {
  readonly moment: number
  readonly cost: number
}

type MeterFrom = (limit: Limit, die: number, waitOptions?: WaitOptions) => Meter

/** From when on calls count at `now`: those before are forgotten when the rule changes. */
type Since = (now: number, periodUs: number) => number

/**
 * Walks over calls and changes of the limit, and sees that no more than the limit is admitted; calls that counted when
 * the rule changed count on.
 */
function walkOver(meterFrom: MeterFrom, since: Since, steps: readonly Dice[], timeoutUs: number | undefined): void {
  const waitOptions = timeoutUs === undefined ? undefined : { timeoutUs }
  let limit: Limit = { count: 3, periodMs: 1000 }
  const key = new ChangingKey(meterFrom(limit, 0, waitOptions))
  let known: Call[] = []
  let now = startFrom(steps[0]![1]!)
  for (const [kind = 0, size = 0, change = 0, count = 0, period = 0, option = 0] of steps) {
    now = nextMoment(now, [kind, size], { ...limit, count: Math.max(1, limit.count) }, 0)
    if (change % 3 === 0) {
      const periodUs = limit.periodMs * 1000
      known = known.filter(({ moment }) => moment >= since(now, periodUs))
      const next = limitFrom([count, change % 2 === 0 ? periodsMs.indexOf(limit.periodMs) : period])
      key.change(meterFrom(next, option, waitOptions), now)
      limit = next
    }
    const cost = pick([1, 1, 1, 2, Math.max(1, limit.count)], option)
    const moment = key.take(now, cost)
    if (moment === undefined) continue
    known.push({ moment, cost })
    const from = since(moment, limit.periodMs * 1000)
    const counting = known.filter(call => call.moment >= from && call.moment <= moment)
    expect(counting.reduce((sum, { cost }) => sum + cost, 0)).toBeLessThanOrEqual(limit.count)
  }
}

describe.each<[string, MeterFrom]>([
  ['sliding-log', (limit, _, waitOptions) => slidingLog.meter(limit, {}, waitOptions)],
  [
    'sliding-window',
    (limit, die, waitOptions) => slidingWindow.meter(limit, { segments: 2 + (die % 12) }, waitOptions),
  ],
])('%s, when its rule changes', (_name, meterFrom) => {
  it('after a change of its rule, no more than the new limit is admitted in the new period, earlier calls included', () => {
    const since: Since = (now, periodUs) => now - periodUs + 1
    const property = fc.property(walk, timeoutUs, (steps, timeoutUs) => walkOver(meterFrom, since, steps, timeoutUs))
    fc.assert(property, runs)
  })
})

describe('fixed-window, when its rule changes', () => {
  it('after a change of its rule, fixed-window admits no more than the new limit in a new window, earlier calls included', () => {
    const meterFrom: MeterFrom = (limit, _, waitOptions) => fixedWindow.meter(limit, {}, waitOptions)
    const since: Since = (now, periodUs) => Math.floor(now / periodUs) * periodUs
    const property = fc.property(walk, timeoutUs, (steps, timeoutUs) => walkOver(meterFrom, since, steps, timeoutUs))
    fc.assert(property, runs)
  })

  it('after a change of its rule, fixed-window from the first call continues the open window', () => {
    const perMinute = fixedWindow.meter({ count: 10, periodMs: 60_000 }, { align: 'first-call' })
    const perHour = fixedWindow.meter({ count: 12, periodMs: 3_600_000 }, { align: 'first-call' })
    const perSecond = fixedWindow.meter({ count: 12, periodMs: 1000 }, { align: 'first-call' })
    const key = new ChangingKey(perMinute)
    key.takeMany(7 * SECOND, 10)
    const longer = key.clone().change(perHour, 30 * SECOND)
    expect([longer.takeMany(30 * SECOND, 5), longer.delay(30 * SECOND)]).toEqual([2, 3577 * SECOND])
    const shorter = key.clone().change(perSecond, 30 * SECOND)
    expect([shorter.takeMany(30 * SECOND, 5), shorter.delay(30 * SECOND)]).toEqual([2, SECOND])
    expect(key.change(perHour, 67 * SECOND).remaining(67 * SECOND)).toBe(12)
  })

  it('a smaller limit refuses until the window ends, and no longer', () => {
    const [large, small] = [1000, 100].map(count => fixedWindow.meter({ count, periodMs: 60_000 }, {}))
    const key = new ChangingKey(large!)
    expect(key.takeMany(5 * SECOND, 900)).toBe(900)
    key.change(small!, 6 * SECOND)
    expect([key.remaining(6 * SECOND), key.delay(6 * SECOND)]).toEqual([0, 54 * SECOND])
    expect(key.remaining(60 * SECOND)).toBe(100)
  })

  it('windows that begin with the clock begin with it at once', () => {
    const key = new ChangingKey(fixedWindow.meter({ count: 10, periodMs: 60_000 }, { align: 'first-call' }))
    key.takeMany(50 * SECOND, 10)
    key.change(fixedWindow.meter({ count: 10, periodMs: 60_000 }, {}), 55 * SECOND)
    expect([key.delay(55 * SECOND), key.delay(60 * SECOND)]).toEqual([5 * SECOND, 0])
  })

  it('a call does not overtake calls that wait for a window, even if no more may wait', () => {
    const limit = { count: 2, periodMs: 1000 }
    const key = new ChangingKey(fixedWindow.meter(limit, {}, { timeoutUs: 5 * SECOND }))
    expect([1, 2, 3, 4, 5].map(() => key.take(0))).toEqual([0, 0, SECOND, SECOND, 2 * SECOND])
    key.change(fixedWindow.meter(limit, {}), 1)
    expect([key.remaining(1), key.delay(1)]).toEqual([0, 3 * SECOND - 1])
    expect(key.remaining(3 * SECOND)).toBe(2)
  })
})

/** All periods above divide it: a token is so many parts, and every rate is a whole number of them in a microsecond. */
const PARTS = 25_200_000_000n

interface ModelBucket {
  readonly capacity: number
  readonly meter: Meter
}

describe.each<[string, (limit: Limit, burst: number) => ModelBucket]>([
  ['token-bucket', (limit, burst) => ({ capacity: burst, meter: tokenBucket.meter(limit, { burst }) })],
  ['leaky-bucket', (limit, burst) => ({ capacity: burst + 1, meter: leakyBucket.meter(limit, { burst }) })],
])('%s, when its rule changes', (_name, bucketFrom) => {
  it('after a change of its rule, the bucket owes exactly as many tokens as before and refills at the new rate', () => {
    const property = fc.property(walk, steps => {
      let [limit, now, level, last, rounded] = [{ count: 3, periodMs: 1000 }, startFrom(steps[0]![1]!), 0n, 0, 0n]
      let bucket = bucketFrom(limit, 5)
      const key = new ChangingKey(bucket.meter)
      const pay = (): void => {
        const paid = BigInt(now - last) * BigInt(limit.count) * (PARTS / BigInt(limit.periodMs * 1000))
        level = paid > level ? 0n : level - paid
        last = now
      }
      last = now
      for (const [kind = 0, size = 0, change = 0, count = 0, period = 0, option = 0] of steps) {
        now = nextMoment(now, [kind, size], limit, 0)
        pay()
        if (change % 3 === 0) {
          const { count: next, periodMs } = limitFrom([count, period])
          limit = { count: Math.max(1, next), periodMs }
          bucket = bucketFrom(limit, pick([1, 2, 5, 20, 300], option))
          key.change(bucket.meter, now)
          rounded += PARTS / BigInt(bucket.meter.redis!.numbers.token!) + 1n
        }
        const cost = pick([1, 1, 2, bucket.capacity], option)
        const after = level + BigInt(cost) * PARTS
        const room = BigInt(bucket.capacity) * PARTS
        if (key.take(now, cost) !== undefined) {
          expect(after).toBeLessThanOrEqual(room)
          level = after
        } else {
          expect(after + rounded).toBeGreaterThan(room)
        }
      }
    })
    fc.assert(property, runs)
  })
})

/** A rule in force from `since` on; a call by it. */
interface Epoch {
  readonly since: number
  readonly limit: Limit
  readonly capacity: number
}

/** Sees that no call passes a full bucket; calls that still wait when the rule changes are used up from then on. */
function assertNeverOver(epochs: readonly Epoch[], calls: readonly (Call & { readonly epoch: Epoch })[]): void {
  let [level, last] = [0n, 0]
  for (const [i, epoch] of epochs.entries()) {
    const { limit, capacity } = epoch
    const end = epochs[i + 1]?.since ?? Number.POSITIVE_INFINITY
    const own = calls.filter(call => call.epoch === epoch).toSorted((a, b) => a.moment - b.moment)
    const pay = (now: number): void => {
      const paid = BigInt(now - last) * BigInt(limit.count) * (PARTS / BigInt(limit.periodMs * 1000))
      level = paid > level ? 0n : level - paid
      last = now
    }
    last = epoch.since
    for (const { moment, cost } of own.filter(call => call.moment <= end)) {
      pay(moment)
      level += BigInt(cost) * PARTS
      expect(level).toBeLessThanOrEqual(BigInt(capacity) * PARTS)
    }
    if (end === Number.POSITIVE_INFINITY) return
    pay(end)
    for (const { cost } of own.filter(call => call.moment > end)) level += BigInt(cost) * PARTS
  }
}

describe('buckets that let calls wait, when their rule changes', () => {
  it('after a change of their rule, buckets count waiting calls as used and admit no more than burst and rate', () => {
    const property = fc.property(walk, fc.constantFrom(tokenBucket, leakyBucket), (steps, algorithm) => {
      const epochs: Epoch[] = []
      const calls: (Call & { readonly epoch: Epoch })[] = []
      let now = startFrom(steps[0]![1]!)
      let key: ChangingKey | undefined
      for (const [kind = 0, size = 0, change = 0, count = 0, period = 0, option = 0] of steps) {
        now = nextMoment(now, [kind, size], { count: 3, periodMs: 1000 }, 0)
        if (change % 3 === 0 || key === undefined) {
          // so many in a microsecond that waiting for one loses others is for other tests
          const limit = { count: pick([1, 2, 3, 5, 10, 100], count), periodMs: pick(periodsMs.slice(2), period) }
          const burst = pick([1, 2, 5, 20, 300], option)
          const meter = algorithm.meter(limit, { burst }, { timeoutUs: pick([SECOND, 60 * SECOND], option) })
          epochs.push({ since: now, limit, capacity: algorithm === tokenBucket ? burst : burst + 1 })
          key = key === undefined ? new ChangingKey(meter) : key.change(meter, now)
        }
        const cost = pick([1, 1, 1, 2], option)
        const moment = key.take(now, cost)
        if (moment !== undefined) calls.push({ moment, cost, epoch: epochs.at(-1)! })
      }
      assertNeverOver(epochs, calls)
    })
    fc.assert(property, runs)
  })
})

describe('token-bucket, when its rule changes', () => {
  it('a faster rate refills nothing for the time before', () => {
    const [slow, fast] = [1, 10].map(count => tokenBucket.meter({ count, periodMs: 3_600_000 }, { burst: 100 }))
    const key = new ChangingKey(slow!)
    key.takeMany(0, 100)
    const later = 5 * 3600 * SECOND
    expect(key.remaining(later)).toBe(5)
    expect(key.change(fast!, later).remaining(later)).toBe(5)
    expect(key.remaining(later + 3600 * SECOND)).toBe(15)
  })

  it('a limit of 0 for a while refills nothing either', () => {
    const [usual, none] = [10, 0].map(count => tokenBucket.meter({ count, periodMs: 60_000 }, {}))
    const key = new ChangingKey(usual!)
    key.takeMany(0, 10)
    key.change(none!, SECOND)
    expect([key.delay(SECOND), key.remaining(SECOND)]).toEqual([Number.POSITIVE_INFINITY, 0])
    key.change(usual!, 3600 * SECOND)
    expect([key.remaining(3600 * SECOND), key.remaining(3606 * SECOND)]).toEqual([0, 1])
  })

  it('a caller with saved tokens in a bucket that starts empty keeps them after a change of its rule', () => {
    const [slow, fast] = [1, 2].map(count =>
      tokenBucket.meter({ count, periodMs: 1000 }, { burst: 10, start: 'empty' }),
    )
    const key = new ChangingKey(slow!)
    key.take(0)
    expect(key.remaining(15 * SECOND)).toBe(10)
    key.change(fast!, 15 * SECOND)
    expect([key.take(15 * SECOND), key.remaining(15 * SECOND)]).toEqual([15 * SECOND, 9])
    // more than an hour later the key is forgotten, and starts empty again
    const back = 3700 * SECOND
    expect([key.change(slow!, back).take(back), key.remaining(back)]).toEqual([undefined, 0])
  })
})

describe('warm-up, when its rule changes', () => {
  const meterFrom = (limit: Limit, die: number): Meter =>
    warmUp.meter({ ...limit, count: Math.max(1, limit.count) }, { warmUp: pick([1, 100, 4000, 60_000], die) })

  it('after a change of its rule, warm-up keeps what is owed and its temperature', () => {
    const property = fc.property(walk, steps => {
      const key = new ChangingKey(meterFrom({ count: 3, periodMs: 1000 }, 0))
      let now = startFrom(steps[0]![1]!)
      for (const [kind = 0, size = 0, change = 0, count = 0, period = 0, option = 0] of steps) {
        now = nextMoment(now, [kind, size], { count: 3, periodMs: 1000 }, 0)
        if (change % 3 === 0) {
          const before = key.clone()
          key.change(meterFrom(limitFrom([count, period]), option), now)
          expect(key.delay(now)).toBe(before.delay(now))
          const [was, is] = [before, key.clone()].map(({ meter, state }) => {
            // taking nothing settles the state at this moment
            meter.take(state, 0, now, 0, 0)
            return state[2]! / meter.migrate!.scale[1]!
          })
          // what is below a billionth of a permit is nothing
          const dust = 2e-9 / Math.min(...[before, key].map(({ meter }) => meter.migrate!.scale[1]!))
          expect(Math.abs(is! - was!)).toBeLessThan(1e-9 + dust)
        }
        key.take(now)
      }
    })
    fc.assert(property, runs)
  })
})

describe('concurrency, when its rule changes', () => {
  it('after a change of its rule, concurrency keeps the calls under way, and each frees one slot', () => {
    const [large, small] = [5, 2].map(count => concurrency.meter({ count, periodMs: 0 }, {}))
    const key = new ChangingKey(large!)
    expect(key.takeMany(0, 9)).toBe(5)
    key.change(small!, 1)
    const free = (): void => small!.refund(key.state, 0, 2, 1, 0)
    const seen = [1, 2, 3, 4, 5].map(() => {
      free()
      return key.remaining(2)
    })
    expect(seen).toEqual([0, 0, 0, 1, 2])
  })
})

const families: Readonly<Record<string, readonly [Algorithm, readonly Readonly<Record<string, unknown>>[]]>> = {
  'sliding-window': [slidingWindow, [{}, { segments: 3 }]],
  'sliding-log': [slidingLog, [{}]],
  'fixed-window': [fixedWindow, [{}, { align: 'first-call' }]],
  'token-bucket': [
    tokenBucket,
    [{ burst: 3 }, { burst: 50 }, { burst: 7, start: 'empty' }, { burst: 7, refill: 'interval' }],
  ],
  'leaky-bucket': [leakyBucket, [{ burst: 3 }, { burst: 50 }]],
}

describe.each(Object.entries(families))('%s, when its rule changes', (_name, [algorithm, options]) => {
  const meterFrom = (limit: Limit, option: number): Meter =>
    algorithm.meter({ ...limit, count: Math.max(1, limit.count) }, pick(options, option))

  it('a change of a rule and back frees nothing', () => {
    const property = fc.property(walk, die, die, die, (steps, count, period, option) => {
      const limit = limitFrom([option, count])
      const key = new ChangingKey(meterFrom(limit, 0))
      let now = startFrom(steps[0]![1]!)
      for (const [kind = 0, size = 0] of steps) {
        now = nextMoment(now, [kind, size], { ...limit, count: Math.max(1, limit.count) }, 0)
        key.take(now)
        const other = meterFrom(limitFrom([count + kind, period]), option + size)
        const [was, wait] = [key.remaining(now), key.delay(now)]
        key.clone().change(other, now).take(now)
        key.change(other, now).change(meterFrom(limit, 0), now)
        // a shorter period forgets what it does not ask about, and that is gone for the longer one
        if (other.migrate!.scale[0]! < key.meter.migrate!.scale[0]!) continue
        expect(key.remaining(now)).toBeLessThanOrEqual(was)
        expect(key.delay(now)).toBeGreaterThanOrEqual(wait)
      }
    })
    fc.assert(property, runs)
  })

  it('a key forgotten before the change is answered as one that was kept', () => {
    const property = fc.property(walk, die, die, die, (steps, count, period, option) => {
      const limit = limitFrom([option, count])
      const [kept, swept] = [new ChangingKey(meterFrom(limit, option)), new ChangingKey(meterFrom(limit, option))]
      let now = startFrom(steps[0]![1]!)
      for (const [kind = 0, size = 0, change = 0] of steps) {
        now = nextMoment(now, [kind, size], { ...limit, count: Math.max(1, limit.count) }, 0)
        if (swept.meter.idleAt(swept.state, 0) <= now) swept.state.fill(0)
        if (change % 3 === 0) {
          const other = meterFrom(limitFrom([count + change, period + size]), option + kind)
          kept.change(other, now)
          swept.change(other, now)
        }
        expect([swept.delay(now), swept.remaining(now)]).toEqual([kept.delay(now), kept.remaining(now)])
        kept.take(now)
        swept.take(now)
      }
    })
    fc.assert(property, runs)
  })
})

describe.each(Object.entries(subjects))('%s', (_name, subjectFrom) => {
  it('a rule that is changed to the same numbers keeps every bit of its state', () => {
    const dice = fc.tuple(die, die)
    const property = fc.property(dice, dice, timeoutUs, walk, (limit, options, timeoutUs, steps) => {
      const subject = subjectFrom(limit, options, timeoutUs)
      const key = new ChangingKey(subject.meter)
      let now = startFrom(steps[0]![1]!)
      for (const [kind = 0, size = 0] of steps) {
        now = nextMoment(now, [kind, size], subject.limit, 0)
        key.take(now)
        const before = [...key.state]
        key.change(subjectFrom(limit, options, timeoutUs).meter, now)
        expect([...key.state]).toEqual(before)
      }
    })
    fc.assert(property, { numRuns: randomRuns(50) })
  })
})
