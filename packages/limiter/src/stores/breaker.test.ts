import { describe, expect, it } from 'vitest'
import { Breaker } from './breaker.ts'

const START = 1_000_000

function breaker() {
  return new Breaker({ patienceMs: 100 })
}

describe('a breaker', () => {
  it('opens when half of at least 20 calls have failed', () => {
    const one = breaker()
    for (let i = 0; i < 10; i++) one.succeeded(START)
    for (let i = 0; i < 9; i++) expect(one.failed(START)).toBe(false)
    expect(one.failed(START)).toBe(true)
  })

  it('leaves a few failures among many calls alone', () => {
    const one = breaker()
    for (let i = 0; i < 1000; i++) one.succeeded(START)
    for (let i = 0; i < 999; i++) expect(one.failed(START + 50)).toBe(false)
  })

  it('opens after 20 failures in a row once nothing has succeeded for its patience, however much did before', () => {
    const one = breaker()
    for (let i = 0; i < 100_000; i++) one.succeeded(START)
    for (let i = 0; i < 30; i++) expect(one.failed(START + 99)).toBe(false)
    expect(one.failed(START + 100)).toBe(true)
  })

  it('opens at once when the store was silent while somebody waited', () => {
    const one = breaker()
    for (let i = 0; i < 1000; i++) one.succeeded(START)
    expect(one.failed(START + 60, START + 1)).toBe(true)
  })

  it('stays closed when the store was silent to one and answered another meanwhile', () => {
    const one = breaker()
    for (let i = 0; i < 1000; i++) one.succeeded(START)
    one.succeeded(START + 30)
    expect(one.failed(START + 60, START + 10)).toBe(false)
  })

  it('forgets what was more than 5 seconds ago', () => {
    const one = breaker()
    for (let i = 0; i < 19; i++) expect(one.failed(START)).toBe(false)
    one.succeeded(START + 5000)
    for (let i = 0; i < 18; i++) expect(one.failed(START + 5000)).toBe(false)
    expect(one.failed(START + 5000)).toBe(true)
  })

  it('begins anew when it was reset', () => {
    const one = breaker()
    for (let i = 0; i < 19; i++) one.failed(START)
    one.reset()
    for (let i = 0; i < 19; i++) expect(one.failed(START)).toBe(false)
  })
})
