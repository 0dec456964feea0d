import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createGuesses, type Guesses } from './guesses.ts'

const minute = 60_000
let now: number
let guesses: Guesses
beforeEach(async () => {
  now = 1_700_000_000_000
  compared = 0
  guesses = await createGuesses(() => now)
})
afterEach(() => guesses.close())

let compared: number
const wrong = (address: string) =>
  guesses.try(address, () => {
    compared += 1
    return false
  })
const right = (address: string) => guesses.try(address, () => true)

describe('wrong tokens', () => {
  it('wrong tokens of one address are compared ten times in a row, then once every six seconds', () => {
    const guess = () => wrong('192.0.2.1')
    for (let i = 0; i < 4000; i++) guess()
    expect(compared).toBe(10)
    expect(guess().retryAfterMs).toBe(6000)
    now += 6000
    guess()
    guess()
    expect(compared).toBe(11)
  })

  it('wrong tokens do not keep out a client with the token at another address', () => {
    for (let i = 0; i < 100; i++) wrong('192.0.2.1')
    expect(wrong('192.0.2.1').retryAfterMs).toBeGreaterThan(0)
    for (let i = 0; i < 1000; i++) expect(right('192.0.2.2')).toEqual({ right: true, retryAfterMs: 0 })
  })

  it('wrong tokens from many addresses are compared once a minute each, and the right token is accepted at the first try', () => {
    for (let i = 0; i < 5000; i++) {
      for (let j = 0; j < 5; j++) wrong(`10.0.${i >> 8}.${i & 255}`)
    }
    expect(compared).toBeLessThan(5000 + 60)
    for (let i = 0; i < 10; i++) expect(right('192.0.2.7').right).toBe(true)
  })

  it('wrong tokens are counted, those that were compared and those that were not', () => {
    for (let i = 0; i < 13; i++) wrong('192.0.2.1')
    right('192.0.2.2')
    expect(guesses.counts()).toEqual({ compared: 10, delayed: 3 })
  })

  it('wrong tokens of one IPv6 network count as one address', () => {
    for (let i = 0; i < 20; i++) wrong(`2001:db8::${i.toString(16)}`)
    expect(wrong('2001:db8::ffff').retryAfterMs).toBeGreaterThan(0)
  })

  it('wrong tokens of an address are compared at most ten times plus ten a minute, in any order and at any pace', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.nat({ max: 20_000 }), fc.integer({ min: 1, max: 30 })), { maxLength: 60 }),
        moves => {
          const from = now
          compared = 0
          const address = `198.51.${Math.floor(from / minute) % 250}.${moves.length}`
          for (const [pauseMs, tries] of moves) {
            now += pauseMs
            for (let i = 0; i < tries; i++) wrong(address)
            expect(compared).toBeLessThanOrEqual(10 + (10 * (now - from)) / minute)
          }
          now += 10 * minute
        },
      ),
      { numRuns: 50 },
    )
  })
})
