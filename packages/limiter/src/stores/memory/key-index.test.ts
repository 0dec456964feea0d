import { describe, expect, it } from 'vitest'
import { KeyIndex, shardOf } from './key-index.ts'

const address = (i: number): string => `10.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}`

const kinds: Readonly<Record<string, (i: number) => string>> = {
  names: i => `user-${i}`,
  addresses: address,
  'mail addresses': i => `u${i}@example.com`,
  'accounts with a resource behind': i => `6:${100_000 + i}/api/orders/list-of-things`,
  'addresses with a resource behind': i => `${address(i).length}:${address(i)}/orders`,
  'numbers before a long tail': i => `${i}-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa`,
  numbers: i => String(i),
}

/** Not spread; being spread; spread. */
const SIZES = [20_000, 68_000, 150_000]

function indexOf(size: number): KeyIndex {
  const index = new KeyIndex()
  for (let i = 0; i < size; i++) index.add(`key-${i}`, i + 1)
  return index
}

/** The keys among the first `size` that are not in their slot. */
function misplaced(index: KeyIndex, size: number, slotOf: (i: number) => number | undefined): number[] {
  return Array.from({ length: size }, (_, i) => i).filter(i => index.get(`key-${i}`) !== slotOf(i))
}

describe('the index of keys', () => {
  it.each(SIZES)('the index of keys finds every one of %i keys in its slot', size => {
    const index = indexOf(size)
    expect(index.size).toBe(size)
    expect(misplaced(index, size, i => i + 1)).toEqual([])
    expect(index.get(`key-${size}`)).toBeUndefined()
  })

  it.each(SIZES)('the index of keys forgets those of %i keys that are deleted, once', size => {
    const index = indexOf(size)
    for (let i = 0; i < size; i += 2) index.delete(`key-${i}`)
    index.delete('key-0')
    expect(index.size).toBe(size / 2)
    expect(misplaced(index, size, i => (i % 2 === 0 ? undefined : i + 1))).toEqual([])
  })

  it.each(SIZES)('the index of keys finds keys that come and go while %i are there', size => {
    const index = indexOf(size)
    for (let i = 0; i < 20_000; i++) {
      index.delete(`key-${i}`)
      index.add(`key-${i}`, i + 2)
    }
    expect(index.size).toBe(size)
    expect(misplaced(index, size, i => i + (i < 20_000 ? 2 : 1))).toEqual([])
  })

  it.each(SIZES)('the index of keys iterates over %i keys, also those that are added meanwhile', size => {
    const index = indexOf(size)
    const seen = new Set<string>()
    for (let step = 0; step < 2 * size + 200; step++) {
      if (step === 100) index.add('late', 1)
      const entry = index.next()
      if (entry) seen.add(entry[0])
    }
    expect(seen.size).toBe(size + 1)
  })

  it('iterating an empty index of keys returns nothing, again and again', () => {
    const index = new KeyIndex()
    expect([index.next(), index.next(), index.next()]).toEqual([undefined, undefined, undefined])
  })

  it.each(Object.entries(kinds))('the index of keys spreads %s so that no map is large', (_kind, keyOf) => {
    const sizes = new Array<number>(64).fill(0)
    for (let i = 0; i < 500_000; i++) sizes[shardOf(keyOf(i))]!++
    expect(Math.max(...sizes)).toBeLessThan(60_000)
  })

  it('the index of keys finds keys of any length and any characters', () => {
    const index = indexOf(70_000)
    const odd = ['a', '\u0000', '界', '\ud800', 'x'.repeat(5000), 'ab', 'abcdefgh', 'abcdefghi']
    odd.forEach((key, i) => {
      index.add(key, 100_000 + i)
    })
    expect(odd.map(key => index.get(key))).toEqual(odd.map((_, i) => 100_000 + i))
  })
})
