import { describe, expect, it } from 'vitest'
import { startRedis } from '../helpers/servers/redis-server.ts'
import { runFleet } from './fleet.mjs'
import { servers } from './servers.mjs'
import { simulate } from './simulate.mjs'

// a short version of `npm run long -- client`

describe.sequential('clients that do not know of each other', () => {
  it.each([
    ['as GitHub', 50, 0.95],
    ['as OpenAI', 50, 0.95],
    ['as Shopify', 10, 0.95],
    ['Diana, fixed window, draft 6', 10, 0.95],
    ['Diana, sliding window, draft 11', 1, 0.95],
  ] as const)(
    'a server %s refuses almost none of the calls of %i clients, and its quota is used',
    async (name, clients, least) => {
      const windows = name === 'as GitHub' ? 2 : name === 'as Shopify' ? 15 : 5
      const { ratio, used } = await simulate(servers[name], { clients, windows, warmUp: name === 'as GitHub' ? 1 : 3 })
      expect(ratio).toBeLessThanOrEqual(0.001)
      expect(used).toBeGreaterThanOrEqual(least)
    },
  )
})

it('clients that share a pace in Redis keep to the limit of a server together', async () => {
  const redis = await startRedis()
  try {
    const { ratio, used } = await runFleet({
      clients: 10,
      seconds: 4,
      warmUpSeconds: 2,
      redis: `redis://${redis.authority}`,
    })
    expect(ratio).toBeLessThanOrEqual(0.001)
    expect(used).toBeGreaterThan(0.5)
  } finally {
    await redis.close()
  }
})
