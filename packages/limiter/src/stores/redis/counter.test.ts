import { randomRuns } from '@test/random-runs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Meter } from '../../algorithms/algorithm.ts'
import { blockMeter } from '../../algorithms/block.ts'
import { concurrency } from '../../algorithms/concurrency.ts'
import { fixedWindow } from '../../algorithms/fixed-window.ts'
import { callerOf } from '../ledger-keys.ts'
import { type RedisCounterRule, redisCounter } from './counter.ts'
import { Eras } from './era.ts'
import { slotOf } from './slot.ts'

const meters: readonly Meter[] = [fixedWindow.meter({ count: 10, periodMs: 1000 }, {})]
const plain = { id: 'per-account', meters, algorithm: 'fixed-window', by: ['account'], enforced: true }

function keyOf(change: Partial<RedisCounterRule>, value: string): string {
  return redisCounter({ ...plain, ...change }, 'diana').ledgerKeyOf(value)
}

describe('the key of a ledger', () => {
  it('the key of a ledger can be read by people', () => {
    expect(keyOf({}, 'u1')).toBe('diana:per-account:account{u1}')
    expect(keyOf({ by: [] }, '')).toBe('diana:per-account:{*}')
    expect(keyOf({ by: ['header:x-a', 'ip'] }, '2:u1::1')).toBe('diana:per-account:header%3Ax-a,ip{2:u1::1}')
    expect(keyOf({ meters: [blockMeter] }, 'u1')).toBe('diana:per-account:account:block{u1}')
  })

  it('the key of a ledger is in the slot of its caller, with the era of that slot', () => {
    const eras = new Eras('diana', true)
    for (const caller of ['u1', '', '{x}', '}{', 'é', '\ud800']) {
      const keys = ['one', 'other'].map(id => keyOf({ id }, caller))
      expect(slotOf(keys[0]!)).toBe(slotOf(keys[1]!))
      expect(slotOf(eras.of(keys[0]!).key)).toBe(slotOf(keys[0]!))
    }
  })

  it.each([
    [{ id: 'a:rate' }, { id: 'a' }],
    [{ by: ['a,b'] }, { by: ['a', 'b'] }],
    [{ id: '{' }, { id: '%7B' }],
    [{ id: '\ud800' }, { id: '\udbff' }],
    [{}, { meters: [concurrency.meter({ count: 1, periodMs: 0 }, {})] }],
    [{}, { meters: [blockMeter] }],
  ])('the key of %o is not that of %o', (one, other) => {
    expect(Buffer.from(keyOf(one, 'x'))).not.toEqual(Buffer.from(keyOf(other, 'x')))
  })

  it('the key of a ledger belongs to one rule and one caller only, which can be read from it', () => {
    const unit = fc.constantFrom('a', ':', '{', '}', '%', ',', '*', ';', '7', 'B', '\ud800', '\udc00', 'é')
    const part = fc.string({ unit, maxLength: 4 })
    const whole = fc.tuple(part, fc.array(part, { maxLength: 2 }), part)
    fc.assert(
      fc.property(whole, whole, ([id, by, caller], [otherId, otherBy, otherCaller]) => {
        const key = keyOf({ id, by }, caller)
        expect(callerOf(redisCounter({ ...plain, id, by }, 'diana'), key)).toBe(caller)
        fc.pre(
          JSON.stringify([id, by.join('\n'), caller]) !== JSON.stringify([otherId, otherBy.join('\n'), otherCaller]),
        )
        expect(Buffer.from(key)).not.toEqual(Buffer.from(keyOf({ id: otherId, by: otherBy }, otherCaller)))
      }),
      { numRuns: randomRuns(750) },
    )
  })
})

it('an algorithm without Lua cannot count in Redis: creating the counter throws', () => {
  const { redis: _, ...meter } = Object.assign(
    Object.create(Object.getPrototypeOf(meters[0]) as object),
    meters[0],
  ) as Meter
  expect(() => keyOf({ meters: [meter as Meter] }, 'x')).toThrow(
    'rule "per-account": its algorithm cannot count in Redis; write count: local',
  )
})
