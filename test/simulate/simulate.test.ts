import { describe, expect, test } from 'vitest'
import { Recovery } from '../../packages/limiter/src/stores/failover/recovery.ts'
import { Fleet } from '../../packages/limiter/src/stores/membership/fleet.ts'
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
