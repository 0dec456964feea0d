import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { adminOf } from '../../packages/limiter/src/admin/limiter-admin.ts'
import { createLimiter } from '../../packages/limiter/src/create/create-limiter.ts'
import { RateLimiter } from '../../packages/limiter/src/pacing/rate-limiter.ts'
import { type RedisServer, startRedis } from '../helpers/servers/redis-server.ts'

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
}, 30_000)
afterAll(() => server.close())

it('the user of Redis that docs/distributed.md creates may do all that is needed, and is denied nothing', async () => {
  const page = readFileSync(new URL('../../docs/distributed.md', import.meta.url), 'utf8')
  const [, user, words] = /^ACL SETUSER (\S+) (on >secret .*)$/m.exec(page)!
  await server.client.call('ACL', 'SETUSER', user!, ...words!.split(' '))
  await server.client.call('ACL', 'LOG', 'RESET')
  const redis = `redis://${user}:secret@${server.authority}`
  const limiter = await createLimiter({
    store: { redis, timeout: '2s' },
    rules: [
      { id: 'login', by: 'account', limit: ['2/h', '9/d'], block: '10m' },
      { id: 'places', by: 'account', limit: 5, algorithm: 'concurrency' },
      { id: 'many', by: 'ip', limit: '1/h' },
    ],
  })
  const call = (account: string, ip = '203.0.113.9') => ({ method: 'GET', path: '/', ip, attributes: { account } })
  for (let i = 0; i < 4; i++) (await limiter.check(call('ann'))).end?.({ status: 200 })
  // so many callers that they are spread over several hashes
  const ips = Array.from({ length: 3000 }, (_, i) => `10.0.${i >> 8}.${i & 255}`)
  for (let round = 0; round < 2; round++) await Promise.all(ips.map(ip => limiter.check(call(ip, ip))))
  await limiter.block('login', 'bob', '5m')
  expect((await limiter.blocks('login')).map(({ key }) => key)).toContain('bob')
  await limiter.unblock('login', 'bob')
  await limiter.reset('many', call('ann'))
  await adminOf(limiter).fleetHistory!.read({ lengthMs: 60_000 })
  const pace = RateLimiter.create(1000, { name: 'mail', store: { redis } })
  await pace.acquire()
  await pace.close()
  expect(limiter.status().store).toMatchObject({ healthy: true, fleet: { known: true }, outages: [] })
  await limiter.close()
  const denied = (await server.client.call('ACL', 'LOG')) as string[][]
  expect(denied.map(entry => entry.slice(4, 8))).toEqual([])
})
