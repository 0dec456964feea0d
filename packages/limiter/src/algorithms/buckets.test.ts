import { describe, expect, it } from 'vitest'
import { OneKey } from '../testing/one-key.ts'
import { InvalidLimitError } from './algorithm.ts'
import { leakyBucket } from './leaky-bucket.ts'
import { tokenBucket } from './token-bucket.ts'

const tenPerSecond = { count: 10, periodMs: 1000 }
const HOUR = 3_600_000_000

describe('token bucket', () => {
  it('a token bucket with a limit of 0 is refused', () => {
    expect(() => tokenBucket.meter({ count: 0, periodMs: 1000 }, { burst: 5 })).toThrow(InvalidLimitError)
  })

  it('a token bucket that cannot be counted exactly is refused, and the error names the limit', () => {
    const yearly = { count: 1, periodMs: 366 * 86_400_000 }
    expect(() => tokenBucket.meter(yearly, { burst: 1e9 })).toThrow(expect.objectContaining({ field: 'limit' }))
  })

  it('a refund to a token bucket returns no tokens that were refilled already', () => {
    const key = new OneKey(tokenBucket.meter(tenPerSecond, { burst: 5 }))
    key.take(0, 5)
    key.take(500_000, 5)
    key.giveBack(500_000, 5, 0)
    expect(key.remaining(500_000)).toBe(0)
  })

  it('a token bucket that was made smaller while in use can still be read', () => {
    const [large, small] = [100, 5].map(burst => tokenBucket.meter(tenPerSecond, { burst }))
    const [old, state] = [new Float64Array(large!.slots), new Float64Array(small!.slots)]
    large!.take(old, 0, 0, 100, 0)
    small!.migrate!.inherit(old, large!.migrate!.scale, state, 0, 0)
    expect([small!.delay(state, 0, 0, 0), small!.remaining(state, 0, 0)]).toEqual([0, 0])
    expect(small!.delay(state, 0, 0, 1)).toBe(9_600_000)
  })

  it('a key that starts empty is admitted as many as time has brought since it was first seen', () => {
    const key = new OneKey(tokenBucket.meter(tenPerSecond, { burst: 5, start: 'empty' }))
    expect([0, 99_999, 100_000, 100_000, 450_000].map(now => key.take(now, 1))).toEqual([
      undefined,
      undefined,
      100_000,
      undefined,
      450_000,
    ])
    expect(key.remaining(450_000)).toBe(2)
  })

  it('a key that starts empty is remembered for an hour after it is full, and then starts empty again', () => {
    const key = new OneKey(tokenBucket.meter(tenPerSecond, { burst: 5, start: 'empty' }))
    key.take(0, 1)
    expect(key.idleAt()).toBe(500_000 + HOUR)
    expect(key.remaining(key.idleAt() - 1)).toBe(5)
    expect([key.remaining(key.idleAt()), key.delay(key.idleAt(), 1)]).toEqual([0, 100_000])
  })

  it('a slow bucket that starts empty is remembered for as long as it takes to fill', () => {
    const key = new OneKey(tokenBucket.meter({ count: 1, periodMs: 3_600_000 }, { burst: 5, start: 'empty' }))
    key.take(0, 1)
    expect(key.idleAt()).toBe(10 * HOUR)
  })

  it('a key whose only call is refunded does not start empty again', () => {
    const key = new OneKey(tokenBucket.meter(tenPerSecond, { burst: 5, start: 'empty' }))
    key.take(1, 1)
    key.take(600_000, 1)
    key.giveBack(600_000, 1, 600_000)
    expect(key.remaining(600_000)).toBe(5)
  })

  it('an untouched key that would start empty is idle at any moment', () => {
    expect(new OneKey(tokenBucket.meter(tenPerSecond, { burst: 5, start: 'empty' })).idleAt()).toBe(0)
  })

  it('interval refill gives the processes of a fleet parts that add up to the limit and to the burst', () => {
    const parts = [0, 1, 2].map(rank =>
      tokenBucket.part!({ count: 10, periodMs: 1000 }, { burst: 20, refill: 'interval' }, { rank, size: 3 }),
    )
    expect(parts.map(part => [part!.limit, part!.options.burst])).toEqual([
      [{ count: 4, periodMs: 1000 }, 7],
      [{ count: 3, periodMs: 1000 }, 7],
      [{ count: 3, periodMs: 1000 }, 6],
    ])
  })
})

describe('leaky bucket', () => {
  it.each([
    [{ delay: 3 }, undefined, 'paces calls that wait'],
    [{ burst: 2, delay: 3 }, {}, 'must not be above burst (2)'],
  ])('a leaky bucket refuses an invalid delay: %o', (options, waitOptions, message) => {
    expect(() => leakyBucket.meter(tenPerSecond, options, waitOptions)).toThrow(message)
  })

  it('no call waits longer in a leaky bucket than its queue allows', () => {
    const key = new OneKey(leakyBucket.meter(tenPerSecond, { burst: 20 }, { timeoutUs: 250_000 }))
    expect([0, 0, 0, 0].map(now => key.take(now, 1))).toEqual([0, 100_000, 200_000, undefined])
  })

  it('a leaky bucket keeps its rate for calls larger than what passes at once', () => {
    const key = new OneKey(leakyBucket.meter(tenPerSecond, { burst: 9 }, {}))
    let now = 0
    for (let call = 0; call < 100; call++) {
      const patient = Math.max(0, key.delay(now, 10) - key.meter.maxWaitUs)
      now = key.take(now + patient, 10)!
    }
    // a thousand in all, one at a time but for the first
    expect(now).toBe((1000 - 1) * 100_000)
  })
})
