import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Meter } from '../algorithms/algorithm.ts'
import { fixedWindow } from '../algorithms/fixed-window.ts'
import { type RedisCounterRule, redisCounter } from './redis-counter.ts'

const meters: readonly Meter[] = [fixedWindow.meter({ count: 10, periodMs: 1000 }, {})]
const plain = { id: 'per-account', meters, algorithm: 'fixed-window', by: ['account'], enforced: true }

function keyOf(change: Partial<RedisCounterRule>, value: string): string {
  return redisCounter({ ...plain, ...change }, { prefix: 'diana', holder: 1 }).keyOf(value)
}

describe('a key in Redis', () => {
  it('can be read by people', () => {
    expect(keyOf({}, 'u1')).toBe('diana:d1{per-account:fixed-window:account:u1}')
    expect(keyOf({ by: [] }, '')).toBe('diana:d1{per-account:fixed-window::}')
    expect(keyOf({ by: ['header:x-a', 'ip'] }, '2:u1::1')).toBe(
      'diana:d1{per-account:fixed-window:header%3Ax-a,ip:2:u1::1}',
    )
  })

  it.each([
    [{ id: 'a:fixed-window' }, 'x', { id: 'a' }, 'fixed-window:x'],
    [{ id: 'a' }, 'b_c', { id: 'a_b' }, 'c'],
    [{ by: ['a,b'] }, 'x', { by: ['a', 'b'] }, 'x'],
    [{ by: ['a:b'] }, 'x', { by: ['a'] }, 'b:x'],
    [{}, '{', {}, '%7B'],
    [{}, '\ud800', {}, '\udbff'],
    [{}, '\ud800', {}, '\ufffd'],
    [{}, '\ud800', {}, '%D800'],
    [{ algorithm: 'fixed-window' }, 'x', { algorithm: 'token-bucket' }, 'x'],
  ])('of %o and %j is not that of %o and %j', (one, value, other, otherValue) => {
    expect(Buffer.from(keyOf(one, value))).not.toEqual(Buffer.from(keyOf(other, otherValue)))
  })

  it('belongs to one rule and one caller only', () => {
    const unit = fc.constantFrom('a', ':', '{', '}', '%', ',', '7', 'B', '\ud800', '\udc00', 'é')
    const part = fc.string({ unit, maxLength: 4 })
    const parts = fc.tuple(part, fc.array(part, { maxLength: 2 }), part)
    fc.assert(
      fc.property(parts, parts, ([id, by, value], [otherId, otherBy, otherValue]) => {
        fc.pre(JSON.stringify([id, by.join('\n'), value]) !== JSON.stringify([otherId, otherBy.join('\n'), otherValue]))
        expect(Buffer.from(keyOf({ id, by }, value))).not.toEqual(
          Buffer.from(keyOf({ id: otherId, by: otherBy }, otherValue)),
        )
      }),
      { numRuns: 3000 },
    )
  })
})

it('an algorithm without a twin cannot count in Redis, and says so', () => {
  const { twin: _, ...meter } = Object.assign(
    Object.create(Object.getPrototypeOf(meters[0]) as object),
    meters[0],
  ) as Meter
  expect(() => keyOf({ meters: [meter as Meter] }, 'x')).toThrow(
    'rule "per-account": its algorithm cannot count in Redis; write count: local',
  )
})
