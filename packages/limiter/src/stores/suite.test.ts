import { type RedisServer, startRedis } from '@test/servers/redis-server'
import { afterAll, beforeAll, describe, it } from 'vitest'
import { sharedStoreSuite, timelineSuite } from '../testing/stores/shared-store-suite.ts'
import { RedisStore } from './redis/redis-store.ts'

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
  await server.client.config('SET', 'appendonly', 'no')
})
afterAll(() => server.close())

describe('the suite for stores, on Redis', () => {
  const create = async (now: () => number) => {
    await server.client.flushall()
    const store = new RedisStore(([command, ...args]) => server.client.call(command!, ...args), { now })
    return { store, close: async () => store.close() }
  }
  for (const { name, run } of [...timelineSuite({ create }), ...sharedStoreSuite({ create })]) it(name, run)
})
