import { type RedisServer, startRedis } from '@test/servers/redis-server'
import { createLimiter } from 'diana-limiter'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'

let server: RedisServer
const warnings: (Error & { code?: string })[] = []
const hear = (warning: Error): unknown => warnings.push(warning)
const apart = (): string[] => warnings.filter(({ code }) => code === 'DIANA_COUNTS_APART').map(({ message }) => message)

beforeAll(async () => {
  process.on('warning', hear)
  server = await startRedis()
}, 30_000)
afterAll(() => {
  process.removeListener('warning', hear)
  return server.close()
})

it('a limiter warns once of processes that count in another format under its prefix, and of no others', async () => {
  const register = async (prefix: string): Promise<void> => {
    const now = Number((await server.client.time())[0]) * 1000
    await server.client.zadd(`${prefix}:d2{fleet}:heard`, now, '0123456789abcdef')
    await server.client.zadd(`${prefix}:d2{fleet}:ids`, 0, '0123456789abcdef')
  }
  const open = (prefix?: string) =>
    createLimiter({ store: { redis: `redis://${server.authority}`, prefix }, rules: [{ id: 'all', limit: '5/s' }] })
  await register('shop')
  const alike = [await open(), await open()]
  for (const limiter of alike) await limiter.check({ method: 'GET', path: '/' })
  expect(apart()).toEqual([])
  await register('diana')
  await vi.waitFor(() => expect(apart()).toHaveLength(1), 10_000)
  expect(apart()[0]).toMatch(/count under other names.*: 1 of the 3 processes that use the prefix diana$/)
  const late = await open()
  await Promise.all([late, ...alike].map(limiter => limiter.close()))
  expect(apart()).toHaveLength(1)
})
