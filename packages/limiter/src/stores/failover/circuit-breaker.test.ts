import { describe, expect, it } from 'vitest'
import { Breaker } from './circuit-breaker.ts'

const START = 1_000_000

function breaker() {
  return new Breaker({ quietMs: 100 })
}

describe('a breaker', () => {
  it('a breaker opens when half of at least 20 calls have failed', () => {
    const one = breaker()
    for (let i = 0; i < 10; i++) one.succeeded(START)
    for (let i = 0; i < 9; i++) expect(one.failed(START)).toBe(false)
    expect(one.failed(START)).toBe(true)
  })

  it('a breaker stays closed after a few failures among many calls', () => {
    const one = breaker()
    for (let i = 0; i < 1000; i++) one.succeeded(START)
    for (let i = 0; i < 999; i++) expect(one.failed(START + 50)).toBe(false)
  })

  it('a breaker opens after 20 failures in a row if no call has succeeded within its tolerance, whatever happened before', () => {
    const one = breaker()
    for (let i = 0; i < 100_000; i++) one.succeeded(START)
    for (let i = 0; i < 30; i++) expect(one.failed(START + 99)).toBe(false)
    expect(one.failed(START + 100)).toBe(true)
  })

  it('a breaker stays closed when many answers are late together, after one pause of the store', () => {
    const one = breaker()
    for (let i = 0; i < 100; i++) expect(one.late(START + 300)).toBe(false)
    one.succeeded(START + 301)
    for (let i = 0; i < 100; i++) expect(one.late(START + 6000)).toBe(false)
  })

  it('a breaker opens when half of the answers have been late for a second', () => {
    const one = breaker()
    for (let ms = 0; ms < 1000; ms += 50) {
      one.succeeded(START + ms)
      expect(one.late(START + ms)).toBe(false)
    }
    expect(one.late(START + 1000)).toBe(true)
  })

  it('a breaker forgets calls that ended more than 5 seconds ago', () => {
    const one = breaker()
    for (let i = 0; i < 19; i++) expect(one.failed(START)).toBe(false)
    one.succeeded(START + 5000)
    for (let i = 0; i < 18; i++) expect(one.failed(START + 5000)).toBe(false)
    expect(one.failed(START + 5000)).toBe(true)
  })

  it('a breaker that is reset has seen no calls', () => {
    const one = breaker()
    for (let i = 0; i < 19; i++) one.failed(START)
    one.reset()
    for (let i = 0; i < 19; i++) expect(one.failed(START)).toBe(false)
  })
})
