import { describe, expect, it } from 'vitest'
import { allParts, hashOf, shardNames, shardOf, spreadLevels } from './layout.ts'
import { slotOf } from './slot.ts'

const keys = Array.from({ length: 32_000 }, (_, i) => `caller-${i}`)

function sizesOf(hashes: readonly number[], level: number): number[] {
  const sizes = new Array<number>(16 ** level).fill(0)
  for (const hash of hashes) sizes[shardOf(hash, level)]!++
  return sizes
}

describe('a caller’s shard', () => {
  it('is one of shards that are about equally large', () => {
    const sizes = sizesOf(
      keys.map(key => hashOf(key, 123_456_789_012)),
      2,
    )
    expect(Math.min(...sizes)).toBeGreaterThan(125 - 6 * Math.sqrt(125))
    expect(Math.max(...sizes)).toBeLessThan(125 + 6 * Math.sqrt(125))
  })

  it('cannot be chosen by callers who know the shards under another seed', () => {
    const together = keys.filter(key => shardOf(hashOf(key, 7), 1) === 3)
    for (const seed of [8, 7 + 2 ** 40]) {
      const sizes = sizesOf(
        together.map(key => hashOf(key, seed)),
        1,
      )
      expect(Math.max(...sizes)).toBeLessThan((together.length / 16) * 1.6)
    }
  })

  it('tells apart keys that differ only in their end', () => {
    const alike = ['', '\0', '\0\0', '\u0001', 'a', 'a\0', 'a\u0001', 'a\u0002', 'ab', 'ab\0', 'ab\0\0']
    expect(new Set(alike.map(key => hashOf(key, 5))).size).toBe(alike.length)
  })

  it('is in the slot of its partition', () => {
    const current = 'diana:d6{rule:any:account:17}'
    for (const name of shardNames(current, 3, 4095)) expect(slotOf(name)).toBe(slotOf(current))
  })
})

describe('a layout', () => {
  it.each([
    [0o0000, []],
    [0o0010, [1]],
    [0o0030, [1, 2, 3]],
    [0o1111, [1]],
    [0o2200, [2]],
    [0o3322, [2, 3]],
    [0o1030, [1, 2, 3]],
  ])('of %o has the levels of both generations: %j', (code, levels) => {
    expect(spreadLevels({ code, seed: 1 })).toEqual(levels)
  })

  it('lists every shard once, under both its names', () => {
    const names = [...allParts('partition', { code: 0o2200, seed: 1 })].flatMap(shard => shard.names)
    expect([names.length, new Set(names).size]).toEqual([512, 512])
  })
})
