import { setTimeout as pause } from 'node:timers/promises'
import { startRedis } from '@test/servers/redis-server'
import { useRedis } from '@test/servers/use-redis'
import { expect, it } from 'vitest'
import { RateLimiter, type RateLimiterOptions } from './rate-limiter.ts'

const redis = useRedis()

function create(rate: number, options: RateLimiterOptions): RateLimiter {
  return redis.closeLater(RateLimiter.create(rate, { store: { redis: redis.url }, ...options }))
}

/** How often any of them passed, with all of them asking all the time. */
async function passesOf(all: readonly RateLimiter[], ms: number): Promise<number> {
  const until = performance.now() + ms
  let passes = 0
  const work = async (limiter: RateLimiter): Promise<void> => {
    while (performance.now() < until) {
      const left = until - performance.now()
      if (await limiter.tryAcquire(1, { timeout: Math.max(0, Math.floor(left)) })) passes++
      else await pause(5)
    }
  }
  await Promise.all(all.map(work))
  return passes
}

it('processes that use the same name share one rate', async () => {
  const all = [1, 2, 3].map(() => create(50, { name: 'shared', maxBurst: '20ms' }))
  await Promise.all(all.map(limiter => limiter.acquire()))
  const passes = await passesOf(all, 1000)
  // 50 in a second, the one that was saved, and one that is paid for afterwards
  expect(passes).toBeLessThanOrEqual(52)
  expect(passes).toBeGreaterThan(35)
})

it('another name is another rate', async () => {
  const [one, other] = [create(1, { name: 'one' }), create(1, { name: 'other' })]
  await one.acquire(5)
  expect([await one.tryAcquire(), await other.tryAcquire()]).toEqual([false, true])
})

it('a changed shared rate continues with the permits already taken', async () => {
  const limiter = create(10, { name: 'changing', maxBurst: '100ms' })
  await limiter.acquire(1000)
  limiter.setRate(100_000)
  expect(await limiter.tryAcquire(1, { timeout: '1s' })).toBe(false)
})

it('an aborted acquire of a shared rate refunds its permits', async () => {
  const limiter = create(1, { name: 'giving up', maxBurst: '1s' })
  await limiter.acquire(2)
  const signal = AbortSignal.timeout(50)
  await expect(limiter.acquire(100, { signal })).rejects.toThrow()
  expect(await limiter.tryAcquire(1, { timeout: '5s' })).toBe(true)
})

it.each([0, 1500])('processes keep to the shared rate when Redis stops %i ms after they have started', async ms => {
  const mortal = await startRedis()
  const options = { store: { redis: `redis://${mortal.authority}` }, name: 'mortal', maxBurst: '20ms' }
  const all = [create(60, options), create(60, options)]
  await Promise.all(all.map(limiter => limiter.acquire()))
  await pause(ms)
  await mortal.close()
  const passes = await passesOf(all, 1000)
  expect(passes).toBeLessThanOrEqual(64)
  expect(passes).toBeGreaterThan(30)
})

it('a shared rate needs a name', () => {
  expect(() => RateLimiter.create(1, { store: { redis: 'redis://127.0.0.1:1' } })).toThrow('needs a name')
})
