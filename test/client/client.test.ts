import { describe, expect, it } from 'vitest'
import { startRedis } from '../helpers/servers/redis-server.ts'
import { runFleet } from './fleet.mjs'
import { servers } from './servers.mjs'
import { simulate } from './simulate.mjs'

// a short version of `npm run long -- client`

/** The windows of a run, and those of its beginning that are not counted. */
const windowsOf: Readonly<Record<string, readonly [windows: number, warmUp: number]>> = {
  'as GitHub': [2, 1],
  'as OpenAI': [8, 3],
  'as Shopify': [30, 3],
  'Diana, fixed window, draft 6': [8, 3],
  'Diana, token bucket, X-RateLimit': [8, 3],
}

describe.sequential('clients that do not know of each other', () => {
  // with other seeds, clients of a bucket once took it for a window that ends, and stayed at 2 % of it
  it.each([
    ['as GitHub', 50, 1],
    ['as OpenAI', 50, 1],
    ['as OpenAI', 1, 2],
    ['as OpenAI', 10, 4],
    ['as Shopify', 10, 1],
    ['as Shopify', 50, 1],
    ['Diana, fixed window, draft 6', 50, 1],
    ['Diana, token bucket, X-RateLimit', 1, 5],
    ['Diana, token bucket, X-RateLimit', 10, 4],
    ['Diana, token bucket, X-RateLimit', 50, 1],
    ['Diana, sliding window, draft 11', 1, 1],
    ['Diana, sliding window, draft 11', 10, 2],
    ['Diana, sliding window, draft 11', 50, 1],
  ] as const)(
    'a server %s refuses almost none of the calls of %i clients, and its quota is used (seed %i)',
    async (name, clients, seed) => {
      const [windows, warmUp] = windowsOf[name] ?? [20, 3]
      const { ratio, used } = await simulate(servers[name], { clients, windows, warmUp, seed })
      expect(ratio).toBeLessThanOrEqual(0.001)
      expect(used).toBeGreaterThanOrEqual(0.95)
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
