import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { rampedShare } from '../pool.ts'
import type { Choice } from './index.ts'
import { leastConnections, roundRobin } from './index.ts'
import { hashOf, rendezvous } from './rendezvous.ts'

interface Address extends Choice {
  readonly name: string
  underWay: number
}

function addresses(...shares: number[]): Address[] {
  return shares.map((share, at) => ({
    name: `a${at}`,
    share,
    underWay: 0,
    hash: hashOf(`http://10.0.0.${at}`),
    credit: 0,
  }))
}

const shares = fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 1, maxLength: 8 })

describe('the weighted round robin', () => {
  test('the weighted round robin spreads the calls of a heavy address over the round', () => {
    const choices = addresses(5, 1, 1)
    expect(Array.from({ length: 7 }, () => roundRobin(choices).name).join(' ')).toBe('a0 a0 a1 a0 a2 a0 a0')
  })

  test('the weighted round robin gives each address exactly its weight in every round, and stays close to it within a round', () => {
    fc.assert(
      fc.property(shares, list => {
        const choices = addresses(...list)
        const total = list.reduce((sum, share) => sum + share, 0)
        const counts = list.map(() => 0)
        for (let call = 1; call <= 3 * total; call++) {
          counts[choices.indexOf(roundRobin(choices))]!++
          const ahead = counts.map((count, at) => Math.abs(count - (call * list[at]!) / total))
          expect(Math.max(...ahead)).toBeLessThan(list.length)
          if (call % total === 0) expect(counts).toEqual(list.map(share => (share * call) / total))
        }
      }),
    )
  })

  test('the weighted round robin is exact again after addresses were removed for a while and came back', () => {
    const choices = addresses(3, 2, 1)
    for (let i = 0; i < 50; i++) roundRobin(choices.slice(1))
    const counts = [0, 0, 0]
    for (let i = 0; i < 6; i++) counts[choices.indexOf(roundRobin(choices))]!++
    expect(counts).toEqual([3, 2, 1])
  })
})

describe('least connections', () => {
  test('least connections always chooses an address with the fewest calls for its weight, and serves every address', () => {
    fc.assert(
      fc.property(shares, fc.array(fc.nat(30), { maxLength: 200 }), (list, endings) => {
        const choices = addresses(...list)
        for (const ending of endings) {
          const chosen = leastConnections(choices)
          for (const other of choices) {
            expect(chosen.underWay * other.share).toBeLessThanOrEqual(other.underWay * chosen.share)
          }
          chosen.underWay++
          const ended = choices[ending % choices.length]!
          if (ending % 2 === 0 && ended.underWay > 0) ended.underWay--
        }
      }),
    )
  })

  test('least connections fills addresses in proportion to their weights while no call ends', () => {
    const choices = addresses(5, 3, 2)
    for (let i = 0; i < 100; i++) leastConnections(choices).underWay++
    expect(choices.map(({ underWay }) => underWay)).toEqual([50, 30, 20])
  })

  test('least connections goes round while all addresses are idle', () => {
    const choices = addresses(1, 1, 1)
    expect(Array.from({ length: 6 }, () => leastConnections(choices).name).join(' ')).toBe('a0 a1 a2 a0 a1 a2')
  })
})

describe('the rendezvous hash', () => {
  const keys = Array.from({ length: 20_000 }, (_, at) => hashOf(`caller-${at}`))

  test('the rendezvous hash moves only callers of a removed address, and only to an added address', () => {
    fc.assert(
      fc.property(shares, fc.nat(7), (list, leaving) => {
        const all = addresses(...list)
        if (all.length < 2) return
        const left = all.filter((_, at) => at !== leaving % all.length)
        for (const key of keys.slice(0, 300)) {
          const before = rendezvous(all, key)
          const after = rendezvous(left, key)
          if (left.includes(before)) expect(after).toBe(before)
        }
      }),
      { numRuns: 30 },
    )
  })

  test('the rendezvous hash does not depend on the order of the addresses', () => {
    const all = addresses(1, 2, 3, 4)
    for (const key of keys.slice(0, 1000)) expect(rendezvous([...all].reverse(), key)).toBe(rendezvous(all, key))
  })

  test('the rendezvous hash gives addresses their share of the callers', () => {
    const all = addresses(1, 2, 5)
    const counts = all.map(() => 0)
    for (const key of keys) counts[all.indexOf(rendezvous(all, key))]!++
    for (const [at, { share }] of all.entries())
      expect(Math.abs(counts[at]! / keys.length - share / 8)).toBeLessThan(0.01)
  })

  test('the rendezvous hash takes callers only toward an address whose share grows', () => {
    const all = addresses(1, 1, 1)
    for (const key of keys.slice(0, 2000)) {
      all[0]!.share = 0.2
      const before = rendezvous(all, key)
      all[0]!.share = 0.7
      expect([before, all[0]]).toContain(rendezvous(all, key))
    }
  })
})

describe('an address that starts slowly', () => {
  test('an address that starts slowly has a share that only grows, from a tenth of its weight to all of it', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1000 }), fc.integer({ min: 1, max: 600_000 }), (weight, slowStartMs) => {
        let before = weight / 10
        for (let step = 0; step <= 20; step++) {
          const share = rampedShare(weight, (slowStartMs * step) / 20, slowStartMs)
          expect(share).toBeGreaterThanOrEqual(before)
          before = share
        }
        expect(before).toBe(weight)
      }),
    )
  })

  test('an address that starts slowly has all of its weight at once without a slow start', () => {
    expect([rampedShare(3, 0, 0), rampedShare(3, Number.POSITIVE_INFINITY, 1000)]).toEqual([3, 3])
  })
})
