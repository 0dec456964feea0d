import { servers } from '@test/filters/servers'
import { startRedis } from '@test/servers/redis-server'
import { expect, test } from 'vitest'
import { createLimiter } from '../create/create-limiter.ts'
import { ask, httpClient } from '../testing/filters/client.ts'
import { FilterService } from '../testing/filters/service.ts'

test('exactly 100 of 1 000 concurrent calls to two servers pass a shared limit of 100', async () => {
  const redis = await startRedis()
  const service = new FilterService()
  const open = await Promise.all(
    ['Express 5', 'Fastify 5'].map(async name => {
      const store = { redis: redis.client, timeout: '10s' }
      const limiter = await createLimiter({ store, rules: [{ id: 'all', limit: '100/h' }] })
      const server = await servers[name]!.start(limiter, service)
      return { limiter, server, client: httpClient(server.port, false) }
    }),
  )
  try {
    const calls = Array.from({ length: 1000 }, (_, at) => ask(open[at % 2]!.client, { path: '/hello' }))
    const statuses = (await Promise.all(calls)).map(({ status }) => status)
    expect(statuses.filter(status => status === 200)).toHaveLength(100)
    expect(statuses.filter(status => status === 503)).toHaveLength(900)
    expect(service.served).toHaveLength(100)
  } finally {
    for (const { limiter, server, client } of open) {
      client.close()
      await server.close()
      await limiter.close()
    }
    await redis.close()
  }
})
