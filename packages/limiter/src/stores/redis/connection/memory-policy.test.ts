import { type RedisServer, startRedis } from '@test/servers/redis-server'
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest'
import { createLimiter } from '../../../create/create-limiter.ts'

let server: RedisServer
const warnings: (Error & { code?: string })[] = []
const hear = (warning: Error): unknown => warnings.push(warning)

beforeAll(async () => {
  process.on('warning', hear)
  server = await startRedis()
}, 30_000)
afterAll(() => {
  process.removeListener('warning', hear)
  return server.close()
})
afterEach(async () => {
  vi.resetModules()
  warnings.length = 0
  await server.client.config('SET', 'maxmemory-policy', 'noeviction')
})

const evictions = (): string[] =>
  warnings.filter(({ code }) => code === 'DIANA_STORE_EVICTS').map(({ message }) => message)

it.each(['allkeys-lru', 'volatile-lru', 'allkeys-random', 'volatile-ttl', 'allkeys-lfu'])(
  'a Redis with the policy %s causes a warning at the first connection, of any client',
  async policy => {
    await server.client.config('SET', 'maxmemory-policy', policy)
    for (const redis of [`redis://${server.authority}`, server.client]) {
      // each with a memory of its own for what was said already
      vi.resetModules()
      warnings.length = 0
      const { createLimiter: create } = await import('../../../create/create-limiter.ts')
      const limiter = await create({ store: { redis }, rules: [{ id: 'all', limit: '5/s' }] })
      await vi.waitFor(() => expect(evictions()).toHaveLength(1))
      expect(evictions()[0]).toContain('set maxmemory-policy to noeviction')
      expect(evictions()[0]).toContain(`maxmemory-policy is ${policy}`)
      await limiter.close()
    }
  },
)

it('a Redis that never evicts, and one that does not say, are not warned of', async () => {
  await server.client.config('SET', 'maxmemory-policy', 'allkeys-lru')
  await server.client.call('ACL', 'SETUSER', 'no-info', 'on', '>x', '~*', '+@all', '-info', '-config')
  const { createLimiter: create } = await import('../../../create/create-limiter.ts')
  const silent = await create({
    store: {
      redis: ([command, ...args]) =>
        command === 'INFO' ? Promise.reject(new Error('NOPERM')) : server.client.call(command!, ...args),
    },
    rules: [{ id: 'all', limit: '5/s' }],
  })
  await server.client.config('SET', 'maxmemory-policy', 'noeviction')
  const steady = await createLimiter({
    store: { redis: `redis://${server.authority}` },
    rules: [{ id: 'all', limit: '5/s' }],
  })
  await steady.check({ method: 'GET', path: '/' })
  await new Promise(setImmediate)
  expect(evictions()).toEqual([])
  await silent.close()
  await steady.close()
})
