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

describe('the index of keys', () => {
  it('finds every key in its slot, before and after it is spread', () => {
    const index = new KeyIndex()
    for (let i = 0; i < 20_000; i++) index.add(`key-${i}`, i + 1)
    expect(index.size).toBe(20_000)
    for (let i = 0; i < 20_000; i++) expect(index.get(`key-${i}`)).toBe(i + 1)
    expect(index.get('key-20000')).toBeUndefined()
  })

  it('forgets what is deleted, once', () => {
    const index = new KeyIndex()
    for (let i = 0; i < 10_000; i++) index.add(`key-${i}`, i)
    for (let i = 0; i < 10_000; i += 2) index.delete(`key-${i}`)
    index.delete('key-0')
    expect(index.size).toBe(5000)
    expect([index.get('key-2'), index.get('key-3')]).toEqual([undefined, 3])
  })

  it('goes round over all keys, also those that come while it does', () => {
    const index = new KeyIndex()
    for (let i = 0; i < 9000; i++) index.add(`key-${i}`, i)
    const seen = new Set<string>()
    for (let step = 0; step < 20_000; step++) {
      if (step === 100) index.add('late', 1)
      const entry = index.next()
      if (entry) seen.add(entry[0])
    }
    expect(seen.size).toBe(9001)
  })

  it('is empty without end', () => {
    const index = new KeyIndex()
    expect([index.next(), index.next(), index.next()]).toEqual([undefined, undefined, undefined])
  })

  it.each(Object.entries(kinds))('spreads %s so that no map of them is large', (_kind, keyOf) => {
    const sizes = new Array<number>(64).fill(0)
    for (let i = 0; i < 500_000; i++) sizes[shardOf(keyOf(i))]!++
    expect(Math.max(...sizes)).toBeLessThan(60_000)
  })

  it('knows keys of any length and any letter', () => {
    const index = new KeyIndex()
    for (let i = 0; i < 9000; i++) index.add(`key-${i}`, i)
    const odd = ['a', '\u0000', '界', '\ud800', 'x'.repeat(5000), 'ab', 'abcdefgh', 'abcdefghi']
    odd.forEach((key, i) => {
      index.add(key, 10_000 + i)
    })
    expect(odd.map(key => index.get(key))).toEqual(odd.map((_, i) => 10_000 + i))
  })
})
