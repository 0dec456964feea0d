import { type RedisServer, startRedis } from '@test/servers/redis-server'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { type FetchFilter, type OwnLimiter, type RateLimitOptions, rateLimit } from '../fetch.ts'

let redis: RedisServer
const closing: OwnLimiter[] = []

beforeAll(async () => {
  redis = await startRedis()
})
afterEach(async () => {
  for (const limit of closing.splice(0)) await limit.close()
})
afterAll(() => redis.close())

function create(id: string, store: NonNullable<RateLimitOptions<Request>['store']>): FetchFilter & OwnLimiter {
  const limit = rateLimit({ id, limit: '10/h', by: [], store })
  closing.push(limit)
  return limit
}

const passes = async (limit: FetchFilter): Promise<boolean> => (await limit(new Request('http://a/'))) === undefined

it('filters with the same id and store share a limit', async () => {
  const store = { redis: `redis://${redis.authority}`, timeout: '20s' }
  const all = [create('shared', store), create('shared', store), create('shared', { ...store, redis: redis.client })]
  for (const { limiter } of all) await expect.poll(async () => (await limiter).status().store?.fleet.known).toBe(true)
  const calls = await Promise.all(Array.from({ length: 30 }, (_, at) => passes(all[at % 3]!)))
  expect(calls.filter(Boolean)).toHaveLength(10)
})

it('store takes a URL or a client as it is', async () => {
  const [first, second] = [create('forms', `redis://${redis.authority}`), create('forms', redis.client)]
  expect([await passes(first), await passes(second)]).toEqual([true, true])
  const left = async ({ limiter }: OwnLimiter) => (await (await limiter).get('forms', [])).decisions[0]!.remaining
  // what was counted before a connection was there is reported afterwards
  await expect.poll(async () => [await left(first), await left(second)]).toEqual([8, 8])
})

it('while Redis is away, requests are decided by this process, and by Redis when it is back', async () => {
  await redis.stop()
  const limit = create('late', `redis://${redis.authority}`)
  // the engine is loaded, and Redis was waited for
  await limit.limiter
  const since = performance.now()
  expect(await passes(limit)).toBe(true)
  expect(performance.now() - since).toBeLessThan(2000)
  const calls = await Promise.all(Array.from({ length: 19 }, () => passes(limit)))
  expect(calls.filter(Boolean)).toHaveLength(9)
  await redis.start()
  const { limiter } = limit
  await expect.poll(async () => (await limiter).status().store?.healthy).toBe(true)
  const other = create('late', redis.client)
  await expect.poll(() => passes(other)).toBe(false)
})
