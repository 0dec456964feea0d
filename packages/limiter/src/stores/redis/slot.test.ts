import { type RedisCluster, startCluster } from '@test/servers/redis-cluster'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { fixedWindow } from '../../algorithms/fixed-window.ts'
import { redisCounter } from './counter.ts'
import { slotOf } from './slot.ts'

let cluster: RedisCluster
beforeAll(async () => {
  cluster = await startCluster()
}, 60_000)
afterAll(() => cluster.close())

const text = fc.string({ unit: 'binary', maxLength: 40 })
const bracy = fc.string({ unit: fc.constantFrom('{', '}', 'a', '%', ':', 'é'), maxLength: 12 })

async function slotByRedis(key: string): Promise<number> {
  return await cluster.anyNode.cluster('KEYSLOT', key)
}

it('a key is in the slot that Redis says', async () => {
  await fc.assert(
    fc.asyncProperty(fc.oneof(text, bracy), async key => {
      expect(slotOf(key)).toBe(await slotByRedis(key))
    }),
    { numRuns: 500 },
  )
})

it('the slot of a ledger is the one that Redis means', async () => {
  const meters = [fixedWindow.meter({ count: 1, periodMs: 1000 }, {})]
  const rule = { id: '{r}', meters, algorithm: 'fixed-window', by: ['account'], enforced: true }
  const counter = redisCounter(rule, 'diana')
  for (const value of ['{x}1', '{x}2', 'x}{y', '', 'é']) {
    const key = counter.ledgerKeyOf(value)
    expect(await slotByRedis(key)).toBe(slotOf(key))
  }
})
