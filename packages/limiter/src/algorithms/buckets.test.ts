import { describe, expect, it } from 'vitest'
import { OneKey } from '../testing/one-key.ts'
import { Misfit } from './algorithm.ts'
import { leakyBucket } from './leaky-bucket.ts'
import { tokenBucket } from './token-bucket.ts'

const tenPerSecond = { count: 10, periodMs: 1000 }

describe('token bucket', () => {
  it('cannot hold tokens that never come', () => {
    expect(() => tokenBucket.meter({ count: 0, periodMs: 1000 }, { burst: 5 })).toThrow(Misfit)
  })

  it('names the limit where its numbers are beyond counting', () => {
    const yearly = { count: 1, periodMs: 366 * 86_400_000 }
    expect(() => tokenBucket.meter(yearly, { burst: 1e9 })).toThrow(expect.objectContaining({ field: 'limit' }))
  })

  it('gives back no tokens that time has brought back already', () => {
    const key = new OneKey(tokenBucket.meter(tenPerSecond, { burst: 5 }))
    key.take(0, 5)
    key.take(500_000, 5)
    key.giveBack(500_000, 5, 0)
    expect(key.remaining(500_000)).toBe(0)
  })

  it('that was made smaller while it was in use still lets one look', () => {
    const [large, small] = [100, 5].map(burst => tokenBucket.meter(tenPerSecond, { burst }))
    const [old, state] = [new Float64Array(2), new Float64Array(2)]
    large!.take(old, 0, 0, 100, 0)
    small!.inherit!(old, large!.scale!, state, 0, 0)
    expect([small!.delay(state, 0, 0, 0), small!.remaining(state, 0, 0)]).toEqual([0, 0])
    expect(small!.delay(state, 0, 0, 1)).toBe(9_600_000)
  })

  it('a key that started empty and was forgotten starts empty again', () => {
    const key = new OneKey(tokenBucket.meter(tenPerSecond, { burst: 5, start: 'empty' }))
    key.take(0, 1)
    expect(key.idleAt()).toBe(1_000_000)
    expect(key.remaining(500_000)).toBe(5)
    key.take(999_999, 1)
    expect(key.remaining(999_999)).toBe(4)
    const back = key.idleAt()
    key.take(back, 1)
    expect(key.remaining(back)).toBe(0)
  })

  it('an untouched key that would start empty is idle at any moment', () => {
    expect(new OneKey(tokenBucket.meter(tenPerSecond, { burst: 5, start: 'empty' })).idleAt()).toBe(0)
  })
})

describe('leaky bucket', () => {
  it.each([
    [{ delay: 3 }, undefined, 'paces calls that wait'],
    [{ burst: 2, delay: 3 }, {}, 'must not be above burst (2)'],
  ])('refuses a delay that means nothing: %o', (options, patience, message) => {
    expect(() => leakyBucket.meter(tenPerSecond, options, patience)).toThrow(message)
  })

  it('lets no call wait longer than the queue allows', () => {
    const key = new OneKey(leakyBucket.meter(tenPerSecond, { burst: 20 }, { timeoutUs: 250_000 }))
    expect([0, 0, 0, 0].map(now => key.take(now, 1))).toEqual([0, 100_000, 200_000, undefined])
  })

  it('keeps its rate for calls larger than what passes at once', () => {
    const key = new OneKey(leakyBucket.meter(tenPerSecond, { burst: 9 }, {}))
    let now = 0
    for (let call = 0; call < 100; call++) {
      const patient = Math.max(0, key.delay(now, 10) - key.meter.patienceUs)
      now = key.take(now + patient, 10)!
    }
    // a thousand in all, one at a time but for the first
    expect(now).toBe((1000 - 1) * 100_000)
  })
})
