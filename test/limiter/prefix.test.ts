import type { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { adminOf } from '../../packages/limiter/src/admin/limiter-admin.ts'
import { createLimiter } from '../../packages/limiter/src/create/create-limiter.ts'
import type { Limiter } from '../../packages/limiter/src/limiter.ts'
import { RateLimiter } from '../../packages/limiter/src/pacing/rate-limiter.ts'
import { type RedisCluster, startCluster } from '../helpers/servers/redis-cluster.ts'
import { type RedisServer, startRedis } from '../helpers/servers/redis-server.ts'

let server: RedisServer
let cluster: RedisCluster
const closing: (() => Promise<unknown>)[] = []

beforeAll(async () => {
  ;[server, cluster] = await Promise.all([startRedis(), startCluster()])
}, 60_000)
afterAll(() => Promise.all([server.close(), cluster.close()]))
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
  await server.client.flushall()
})

async function start(prefix: string | undefined, redis: string | readonly string[] = `redis://${server.authority}`) {
  const limiter = await createLimiter({
    store: { redis, prefix },
    rules: [
      { id: 'login', by: 'account', limit: ['3/h', '10/d'], block: '10m' },
      { id: 'places', limit: 5, algorithm: 'concurrency' },
      { id: 'bucket', by: 'ip', limit: '10/m', algorithm: 'token-bucket' },
    ],
  })
  closing.push(() => limiter.close())
  return limiter
}

const call = (account: string) => ({ method: 'GET', path: '/', ip: '203.0.113.9', attributes: { account } })

/** Everything that a process does in Redis, once. */
async function useAll(
  limiter: Limiter,
  prefix: string | undefined,
  redis: string | readonly string[],
): Promise<number> {
  let admitted = 0
  for (let i = 0; i < 6; i++) {
    const verdict = await limiter.check(call('ann'))
    if (verdict.allowed) admitted++
    verdict.end?.({ status: 200 })
  }
  await limiter.block('login', 'bob', '5m')
  await limiter.blocks()
  await limiter.unblock('login', 'bob')
  await limiter.reset('bucket', call('ann'))
  await limiter.explain(call('ann'))
  if (typeof redis === 'string') {
    const pace = RateLimiter.create(1000, { name: 'mail', store: { redis, prefix } })
    await pace.acquire()
    await pace.close()
  }
  return admitted
}

describe('services with different prefixes in one Redis', () => {
  it('services with different prefixes in one Redis share no counts, no members, no blocks, no statistics and no pace', async () => {
    const redis = `redis://${server.authority}`
    const [shop, mail, none] = [await start('shop'), await start('mail'), await start(undefined)]
    expect(await useAll(shop, 'shop', redis)).toBe(3)
    expect(await useAll(mail, 'mail', redis)).toBe(3)
    expect(await useAll(none, undefined, redis)).toBe(3)
    await shop.block('login', 'eve', '5m')
    const blocked = async (limiter: Limiter) => (await limiter.blocks('login')).map(({ key }) => key)
    expect(await blocked(shop)).toHaveLength(2)
    expect(await blocked(mail)).toHaveLength(1)
    for (const limiter of [shop, mail, none]) {
      expect(limiter.status().store).toMatchObject({ healthy: true, fleet: { size: 1, rank: 0, known: true } })
    }
    await shop.close()
    expect((await adminOf(mail).fleetHistory!.read({ lengthMs: 60_000 })).rules.size).toBe(0)
    expect(await server.client.keys('shop:d1:history*')).not.toEqual([])
    const rates = ['one', 'two'].map(prefix => RateLimiter.create(5, { name: 'rate', store: { redis, prefix } }))
    for (const rate of rates) closing.push(() => rate.close())
    for (const rate of rates) await rate.acquire()
    rates[0]!.setRate(100)
    await expect.poll(() => server.client.hget('one:d2:pace{rate}', 'rate')).toBe('100')
    expect(await server.client.hget('two:d2:pace{rate}', 'rate')).toBe('5')
  })

  it.each([
    ['one Redis', () => `redis://${server.authority}`, () => [server.client]],
    ['a Cluster', () => cluster.urls, () => cluster.client.nodes('master')],
  ])(
    'services with different prefixes in one Redis touch only keys with their prefix, on %s',
    async (_, where, nodes) => {
      const commands: string[][] = []
      for (const node of nodes() as Redis[]) {
        const monitor = await node.monitor()
        closing.push(async () => monitor.disconnect())
        monitor.on('monitor', (_time: string, args: string[]) => commands.push(args))
      }
      const limiter = await start('team:shop', where())
      await expect.poll(() => limiter.status().store?.fleet.known).toBe(true)
      await useAll(limiter, 'team:shop', where())
      await limiter.close()
      await expect.poll(() => commands.some(args => args.some(arg => arg.includes('history')))).toBe(true)
      const touched = new Set<string>()
      for (const args of commands.splice(0)) {
        const keys = await server.client.call('COMMAND', 'GETKEYS', ...args).catch(() => [])
        for (const key of keys as string[]) touched.add(key)
      }
      expect([...touched].filter(key => !key.startsWith('team:shop:'))).toEqual([])
      expect(touched.size).toBeGreaterThan(7)
    },
  )

  it.each(['', 'a{b}', 'a b', 'x'.repeat(65), 'a*', 'ä'])(
    'createLimiter refuses the store prefix %j with a remedy',
    async prefix => {
      await expect(start(prefix)).rejects.toThrow(/store\.prefix|prefix/)
      expect(() => RateLimiter.create(1, { name: 'x', store: { redis: 'redis://127.0.0.1', prefix } })).toThrow(
        'store.prefix must be',
      )
    },
  )
})
