import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { OneKey } from '../testing/one-key.ts'
import { algorithms } from './index.ts'
import { deal, partMeter } from './part.ts'

const named = (name: string) => algorithms.find(algorithm => algorithm.name === name)!
const ranks = (size: number) => Array.from({ length: size }, (_, rank) => ({ rank, size }))

describe('the shares of a limit', () => {
  it('the shares of a limit add up to the limit, also with more processes than permits', () => {
    fc.assert(
      fc.property(fc.nat(1000), fc.integer({ min: 1, max: 50 }), (count, size) => {
        const parts = ranks(size).map(part => deal(count, part))
        expect(parts.reduce((sum, part) => sum + part, 0)).toBe(count)
        expect(Math.max(...parts) - Math.min(...parts)).toBeLessThanOrEqual(1)
      }),
    )
  })

  it('a process whose rank is not known gets no remainder', () => {
    expect(deal(10, { rank: 4, size: 4 })).toBe(2)
  })

  const cases = [
    ['sliding-window', {}],
    ['fixed-window', {}],
    ['sliding-log', {}],
    ['token-bucket', {}],
    ['token-bucket', { burst: 7 }],
    ['token-bucket', { burst: 300 }],
    ['leaky-bucket', { burst: 11 }],
    ['leaky-bucket', {}],
  ] as const

  it.each(cases)('the shares of %s %j together never admit more than the limit', (name, options) => {
    const limit = { count: 20, periodMs: 1000 }
    const algorithm = named(name)
    const whole = algorithm.meter(limit, options)
    const capacity = new OneKey(whole).remaining(0)
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 30 }),
        fc.array(fc.tuple(fc.nat(29), fc.nat(40_000), fc.integer({ min: 1, max: 3 })), { maxLength: 200 }),
        (size, calls) => {
          const keys = ranks(size).map(part => new OneKey(partMeter(algorithm, { limit, options }, part)))
          const admitted: { at: number; cost: number }[] = []
          let now = 1_000_000_000
          for (const [who, gap, cost] of calls) {
            now += gap
            if (keys[who % size]!.take(now, cost) !== undefined) admitted.push({ at: now, cost })
          }
          const isBucket = name.endsWith('bucket')
          for (const [i, { at }] of admitted.entries()) {
            let sum = 0
            for (const later of admitted.slice(i)) {
              const us = later.at - at
              if (
                name === 'fixed-window' ? Math.floor(at / 1e6) !== Math.floor(later.at / 1e6) : us >= 1e6 && !isBucket
              )
                break
              sum += later.cost
              expect(sum).toBeLessThanOrEqual(isBucket ? capacity + (us * limit.count) / 1e6 + 1e-6 : limit.count)
            }
          }
        },
      ),
      { numRuns: 200 },
    )
  })

  it('the shares of a pacing limit divide the pace', () => {
    const terms = { limit: { count: 10, periodMs: 1000 }, options: { warmUp: 1000 } }
    const admittedBy = (...keys: OneKey[]) => {
      let admitted = 0
      for (let now = 0; now < 60_000_000; now += 5000)
        for (const key of keys) if (key.take(now, 1) !== undefined) admitted++
      return admitted
    }
    const whole = admittedBy(new OneKey(named('warm-up').meter(terms.limit, terms.options)))
    const parts = admittedBy(...ranks(3).map(part => new OneKey(partMeter(named('warm-up'), terms, part))))
    expect(whole).toBeGreaterThan(580)
    expect(parts).toBeGreaterThan(580)
    // each of them lets one pass at the very beginning
    expect(parts).toBeLessThanOrEqual(whole + 2)
  })

  it('a share of zero refuses all calls', () => {
    const terms = { limit: { count: 2, periodMs: 1000 }, options: {} }
    const key = new OneKey(partMeter(named('sliding-window'), terms, { rank: 2, size: 3 }))
    expect(key.delay(0, 1)).toBe(Number.POSITIVE_INFINITY)
    expect(key.take(0, 0)).toBe(0)
    expect(key.remaining(0)).toBe(0)
  })

  it('a limit of a custom algorithm is divided by its count', () => {
    const mine = { ...named('concurrency'), name: 'mine' }
    const terms = { limit: { count: 5, periodMs: 0 }, options: {} }
    const room = ranks(3).map(part => new OneKey(partMeter(mine, terms, part)).remaining(0))
    expect(room).toEqual([2, 2, 1])
  })
})
