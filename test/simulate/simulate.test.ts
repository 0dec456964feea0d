import { describe, expect, test } from 'vitest'
import { algorithms } from '../../packages/limiter/src/algorithms/index.ts'
import { DenyCache } from '../../packages/limiter/src/stores/failover/deny-cache.ts'
import { Recovery } from '../../packages/limiter/src/stores/failover/recovery.ts'
import { LeaseBook } from '../../packages/limiter/src/stores/leases/lease-book.ts'
import { Fleet } from '../../packages/limiter/src/stores/membership/fleet.ts'
import { sharedCharge } from '../../packages/limiter/src/stores/shared-charge.ts'
import { LeasingStore } from '../../packages/limiter/src/testing/stores/leasing-store.ts'
import { randomFleet } from './lease-cases.mjs'
import { simulateLeases } from './lease-fleet.mjs'
import { simulateRecovery } from './recovery.mjs'

const parts = { Recovery, Fleet }

describe('a simulated fleet whose store was away', { timeout: 60_000 }, () => {
  test.each([
    [3, 1000],
    [10, 1000],
    [100, 2000],
    [300, 3000],
  ])('a simulated fleet of %d processes recovers together within %d ms, with every seed', async (processes, mostMs) => {
    for (const kind of ['refused', 'silent'] as const) {
      for (let seed = 1; seed <= (processes > 100 ? 1 : 3); seed++) {
        const run = await simulateRecovery(parts, { processes, seed, kind })
        expect(run, JSON.stringify(run)).toMatchObject({ missing: 0 })
        expect(run.backMs, JSON.stringify(run)).toBeLessThanOrEqual(mostMs)
        // whoever is back first waits for the others, but for the time between two questions
        expect(run.spreadMs, JSON.stringify(run)).toBeLessThanOrEqual(Math.max(100, processes * 1.5))
      }
    }
  })

  test('a simulated fleet recovers in the same time with a packet loss of one in fifty', async () => {
    for (let seed = 1; seed <= 3; seed++) {
      const run = await simulateRecovery(parts, { processes: 100, seed, loss: 0.02 })
      expect(run, JSON.stringify(run)).toMatchObject({ missing: 0 })
      expect(run.backMs, JSON.stringify(run)).toBeLessThanOrEqual(2000)
    }
  })

  test('a simulated fleet whose store was away waits no longer than 3 seconds for processes that never come back', async () => {
    const run = await simulateRecovery(parts, { processes: 20, seed: 1, dead: 2 })
    expect(run, JSON.stringify(run)).toMatchObject({ missing: 0 })
    expect(run.backMs, JSON.stringify(run)).toBeLessThanOrEqual(3000)
  })

  test('a simulated fleet whose store was away costs the store in proportion to its size', async () => {
    const [small, large] = await Promise.all(
      [50, 400].map(processes => simulateRecovery(parts, { processes, seed: 7 })),
    )
    expect(large!.commands / 400).toBeLessThanOrEqual((1.5 * small!.commands) / 50)
    expect(large!.busiestMs).toBeLessThan(500)
  })
})

const leaseParts = { LeaseBook, LeasingStore, DenyCache, sharedCharge, algorithms }

describe('a simulated fleet that holds permits in advance', { timeout: 60_000 }, () => {
  test.each([
    ['token-bucket', 0.95],
    ['token-bucket', 1.5],
    ['sliding-window', 0.95],
    ['fixed-window', 1.5],
  ])(
    'five simulated processes with a %s and a load of %d ask the store for 3 % of the calls at most',
    async (algorithm, load) => {
      const run = await simulateLeases(leaseParts, {
        algorithm,
        load,
        limit: 10_000,
        processes: 5,
        seconds: 3,
        seed: 1,
      })
      expect(run.over).toBe(0)
      expect(run.asked).toBeLessThanOrEqual(0.03)
      expect(run.used).toBeGreaterThan(0.97)
    },
  )

  test('simulated fleets with lost and repeated messages, partitions and crashes are never over their limits', async () => {
    const first = Math.floor(Math.random() * 1e6)
    for (let seed = first; seed < first + 12; seed++) {
      const fleet = randomFleet(seed)
      const { over } = await simulateLeases(leaseParts, { ...fleet, seconds: 2 })
      expect(over, JSON.stringify(fleet)).toBe(0)
    }
  })

  test('a simulated process that crashes loses no more than what it held, and for two seconds at most', async () => {
    const options = { algorithm: 'token-bucket', load: 3, limit: 1000, processes: 5, seconds: 6 }
    for (let seed = 1; seed <= 3; seed++) {
      const { over, used } = await simulateLeases(leaseParts, { ...options, seed, crashes: 4 })
      expect(over).toBe(0)
      // each loses up to a tenth of the limit
      expect(used).toBeGreaterThan(0.9)
    }
  })
})
