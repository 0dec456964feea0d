import { expect, it } from 'vitest'
import { Nonces } from './nonces.ts'

it('a nonce is accepted once while it is remembered', () => {
  const nonces = new Nonces({ keepMs: 100, most: 10 })
  expect(nonces.take('a', 0)).toBe('new')
  for (const now of [0, 50, 99, 100, 150]) expect(nonces.take('a', now), `at ${now}`).toBe('used')
  expect(nonces.take('b', 150)).toBe('new')
  for (const now of [199, 249]) expect(nonces.take('b', now), `at ${now}`).toBe('used')
  expect(nonces.take('a', 500)).toBe('new')
})

it('every accepted nonce is remembered for the whole time', () => {
  for (let begin = 0; begin < 300; begin += 7) {
    const nonces = new Nonces({ keepMs: 100, most: 1000 })
    nonces.take('other', 0)
    expect(nonces.take('a', begin)).toBe('new')
    for (let now = begin; now <= begin + 100; now += 10) {
      nonces.take(`noise ${now}`, now)
      expect(nonces.take('a', now), `taken at ${begin}, again at ${now}`).toBe('used')
    }
  }
})

it('a full nonce memory accepts nothing new and forgets nothing', () => {
  const nonces = new Nonces({ keepMs: 100, most: 2 })
  expect(['a', 'b', 'c', 'a'].map(nonce => nonces.take(nonce, 0))).toEqual(['new', 'new', 'full', 'used'])
  expect(nonces.take('c', 300)).toBe('new')
})
