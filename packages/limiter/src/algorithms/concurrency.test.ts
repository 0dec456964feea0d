import { describe, expect, it } from 'vitest'
import { OneKey } from '../testing/one-key.ts'
import { concurrency } from './concurrency.ts'

describe('concurrency', () => {
  it('concurrency admits as many calls as the limit, at any time', () => {
    const key = new OneKey(concurrency.meter({ count: 3, periodMs: 0 }, {}))
    expect([key.take(0, 1), key.take(0, 2), key.take(1e15, 1)]).toEqual([0, 0, undefined])
    expect(key.remaining(1e15)).toBe(0)
    expect(key.delay(1e15, 1)).toBe(Number.POSITIVE_INFINITY)
    expect(key.delay(1e15, 0)).toBe(0)
    key.giveBack(1e15, 2, 0)
    expect(key.remaining(1e15)).toBe(2)
  })

  it('a concurrency key is kept while a call is under way, and idle once none is', () => {
    const key = new OneKey(concurrency.meter({ count: 3, periodMs: 0 }, {}))
    key.take(5, 1)
    expect(key.idleAt()).toBe(Number.POSITIVE_INFINITY)
    key.giveBack(6, 1, 5)
    expect(key.idleAt()).toBe(0)
  })

  it('a refund of concurrency slots returns no more than are in use', () => {
    const key = new OneKey(concurrency.meter({ count: 3, periodMs: 0 }, {}))
    key.take(0, 1)
    key.giveBack(0, 3, 0)
    expect(key.remaining(0)).toBe(3)
  })

  it('a concurrency limit of 0 admits no call', () => {
    expect(new OneKey(concurrency.meter({ count: 0, periodMs: 0 }, {})).take(0, 1)).toBeUndefined()
  })
})
