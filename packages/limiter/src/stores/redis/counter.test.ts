import { randomRuns } from '@test/random-runs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Meter } from '../../algorithms/algorithm.ts'
import { blockMeter } from '../../algorithms/block.ts'
import { concurrency } from '../../algorithms/concurrency.ts'
import { fixedWindow } from '../../algorithms/fixed-window.ts'
import { fieldOf, type RedisCounterRule, redisCounter } from './counter.ts'
import { slotOf } from './slot.ts'

const meters: readonly Meter[] = [fixedWindow.meter({ count: 10, periodMs: 1000 }, {})]
const plain = { id: 'per-account', meters, algorithm: 'fixed-window', by: ['account'], enforced: true }

function keyOf(change: Partial<RedisCounterRule>, value: string, isCluster = false): string {
  return redisCounter({ ...plain, ...change }, { prefix: 'diana', isCluster, holder: 1 }).partitionOf(value).current
}

describe('a partition in Redis', () => {
  it('can be read by people', () => {
    expect(keyOf({}, 'u1')).toBe('diana:d6{per-account:rate:account}')
    expect(keyOf({ by: [] }, '')).toBe('diana:d6{per-account:rate:}')
    expect(keyOf({ by: ['header:x-a', 'ip'] }, '2:u1::1')).toBe('diana:d6{per-account:rate:header%3Ax-a,ip}')
  })

  it('is one of many on a Cluster, in the slot of both its hashes, whatever a caller is called', () => {
    const counter = redisCounter(plain, { prefix: 'diana', isCluster: true, holder: 1 })
    const partitions = Array.from({ length: 5000 }, (_, i) => counter.partitionOf(i % 2 ? `{x}${i}` : `}${i}{`))
    expect(new Set(partitions).size).toBe(256)
    for (const { current, previous, slot } of partitions)
      expect([slotOf(current), slotOf(previous)]).toEqual([slot, slot])
  })

  it.each([3, 64, 65, 100, 128])('of one rule at least is on each of %d masters', masters => {
    for (const id of ['a', 'per-account', 'é{}', 'x'.repeat(100)]) {
      const counter = redisCounter({ ...plain, id }, { prefix: 'shop', isCluster: true, holder: 1 })
      const slots = counter.keyPerPartition().map(key => counter.partitionOf(key).slot)
      // as redis-cli deals out the slots
      expect(new Set(slots.map(slot => Math.floor((slot * masters) / 16_384))).size).toBe(masters)
    }
  })

  it.each([
    [{ id: 'a:rate' }, { id: 'a' }],
    [{ by: ['a,b'] }, { by: ['a', 'b'] }],
    [{ id: '{' }, { id: '%7B' }],
    [{ id: '\ud800' }, { id: '\udbff' }],
    [{}, { meters: [concurrency.meter({ count: 1, periodMs: 0 }, {})] }],
    [{}, { meters: [blockMeter] }],
  ])('of %o is not that of %o', (one, other) => {
    expect(Buffer.from(keyOf(one, 'x'))).not.toEqual(Buffer.from(keyOf(other, 'x')))
  })

  it('belongs to one rule only', () => {
    const unit = fc.constantFrom('a', ':', '{', '}', '%', ',', '7', 'B', '\ud800', '\udc00', 'é')
    const part = fc.string({ unit, maxLength: 4 })
    const parts = fc.tuple(part, fc.array(part, { maxLength: 2 }))
    fc.assert(
      fc.property(parts, parts, fc.boolean(), ([id, by], [otherId, otherBy], isCluster) => {
        fc.pre(JSON.stringify([id, by.join('\n')]) !== JSON.stringify([otherId, otherBy.join('\n')]))
        expect(Buffer.from(keyOf({ id, by }, 'x', isCluster))).not.toEqual(
          Buffer.from(keyOf({ id: otherId, by: otherBy }, 'x', isCluster)),
        )
      }),
      { numRuns: randomRuns(750) },
    )
  })
})

describe('the field of a caller', () => {
  it('belongs to one caller only, and never to what a partition says of itself', () => {
    const unit = fc.constantFrom('a', ':', '~', '@', '"', '\\', '7', 'd8', '\ud800', '\udc00', '\ufffd', 'é')
    const key = fc.string({ unit, maxLength: 5 })
    fc.assert(
      fc.property(key, key, (one, other) => {
        fc.pre(one !== other)
        expect(Buffer.from(fieldOf(one))).not.toEqual(Buffer.from(fieldOf(other)))
        expect(fieldOf(one)).not.toMatch(/^@/)
      }),
      { numRuns: randomRuns(750) },
    )
  })
})

it('an algorithm without Lua cannot count in Redis: creating the counter throws', () => {
  const { lua: _, ...meter } = Object.assign(
    Object.create(Object.getPrototypeOf(meters[0]) as object),
    meters[0],
  ) as Meter
  expect(() => keyOf({ meters: [meter as Meter] }, 'x')).toThrow(
    'rule "per-account": its algorithm cannot count in Redis; write count: local',
  )
})
