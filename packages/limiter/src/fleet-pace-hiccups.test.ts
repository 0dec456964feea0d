import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { RateLimiter, type RateLimiterOptions } from './rate-limiter.ts'
import { type RedisServer, startRedis } from './sources/doubles/redis-server.ts'

let server: RedisServer
const limiters: RateLimiter[] = []
beforeAll(async () => {
  server = await startRedis()
  await server.client.config('SET', 'appendonly', 'no')
})
afterAll(() => server.close())
afterEach(async () => {
  for (const limiter of limiters.splice(0)) await limiter.close()
})

function create(rate: number, options: RateLimiterOptions): RateLimiter {
  const limiter = RateLimiter.create(rate, { store: { redis: `redis://${server.authority}` }, ...options })
  limiters.push(limiter)
  return limiter
}

/** When permits passed, with every limiter asking all the time. */
async function passesOf(all: readonly RateLimiter[], ms: number): Promise<number[]> {
  const until = performance.now() + ms
  const passes: number[] = []
  const work = async (limiter: RateLimiter): Promise<void> => {
    for (let left = ms; left > 0; left = until - performance.now()) {
      if (await limiter.tryAcquire(1, { timeout: Math.max(0, Math.floor(left)) })) passes.push(performance.now())
    }
  }
  await Promise.all(all.map(work))
  return passes.sort((a, b) => a - b)
}

/** The most permits that passed in any interval beyond what the rate brings in it. */
function excessOf(passes: readonly number[], rate: number): number {
  let most = 0
  passes.forEach((from, i) => {
    for (let j = i; j < passes.length; j++) most = Math.max(most, j - i + 1 - ((passes[j]! - from) * rate) / 1000)
  })
  return most
}

/** Redis says nothing for 80 ms, every 500 ms. */
async function hiccup(ms: number): Promise<void> {
  for (const until = performance.now() + ms; performance.now() < until; await pause(420)) {
    await server.client.call('CLIENT', 'PAUSE', '80', 'ALL')
    await pause(80)
  }
}

describe('a rate that processes share, while Redis hiccups', () => {
  it('is not exceeded in any interval, by one process or by three, and is nearly used', async () => {
    const MS = 2500
    const fleets = [
      { size: 1, rate: 10 },
      { size: 3, rate: 30 },
    ].map(({ size, rate }) => {
      const all = Array.from({ length: size }, () => create(rate, { name: `hiccups-${size}`, maxBurst: '100ms' }))
      return { size, rate, all }
    })
    await Promise.all(fleets.flatMap(({ all }) => all.map(limiter => limiter.acquire())))
    // each process hears of the others with its next heartbeat
    await pause(1100)
    const [found] = await Promise.all([Promise.all(fleets.map(({ all }) => passesOf(all, MS))), hiccup(MS)])
    fleets.forEach(({ size, rate }, i) => {
      // what is saved in 100 ms, one permit that is paid for afterward, one for each process that takes its turn
      expect(excessOf(found[i]!, rate)).toBeLessThanOrEqual(rate / 10 + 1 + size)
      expect(found[i]!.length).toBeGreaterThan((rate * MS * 0.6) / 1000)
    })
  })

  it('counts in Redis what passed without it', async () => {
    const limiter = create(10, { name: 'owing', maxBurst: '5s' })
    expect(await limiter.availablePermits()).toBe(51)
    const since = performance.now()
    await limiter.acquire(50)
    await server.client.call('CLIENT', 'PAUSE', '300', 'ALL')
    const passes = await passesOf([limiter], 300)
    await pause(300)
    const free = create(10, { name: 'owing', maxBurst: '5s' })
    const passed = passes.length
    await limiter.tryAcquire()
    const available = await free.availablePermits()
    // each 100 ms have brought one permit, however long a busy machine took
    const brought = Math.ceil((performance.now() - since) / 100)
    expect(available).toBeLessThanOrEqual(brought + 1 - passed + 1)
  })
})

describe('a rate that processes share', () => {
  it('is one for all: a rate set by one process is followed by the others at their next call', async () => {
    const [one, other] = [create(5, { name: 'set' }), create(5, { name: 'set' })]
    await Promise.all([one.acquire(), other.acquire()])
    one.setRate(100)
    expect(one.rate).toBe(100)
    // what was taken is paid for at the old rate
    await other.acquire()
    expect(other.rate).toBe(100)
    const since = performance.now()
    for (let i = 0; i < 20; i++) await other.acquire()
    expect(performance.now() - since).toBeLessThan(1000)
    await expect.poll(() => one.rate).toBe(100)
  })

  it('is heard of by a process that asks for nothing', async () => {
    const [one, other] = [create(7, { name: 'heard' }), create(7, { name: 'heard' })]
    await Promise.all([one.acquire(), other.acquire()])
    one.setRate(3)
    await expect.poll(() => other.rate, { timeout: 3000 }).toBe(3)
  })

  it('stays as it was set when a process with the old program joins, and is that of a new program once it joins', async () => {
    const one = create(7, { name: 'programs' })
    await one.acquire()
    one.setRate(3)
    await one.availablePermits()
    const late = create(7, { name: 'programs' })
    await late.availablePermits()
    expect(late.rate).toBe(3)
    const changed = create(9, { name: 'programs' })
    await changed.availablePermits()
    expect(changed.rate).toBe(9)
    await one.availablePermits()
    expect(one.rate).toBe(9)
  })

  it('tells how many permits are there, the same for all', async () => {
    const [one, other] = [create(10, { name: 'there' }), create(10, { name: 'there' })]
    expect(await one.availablePermits()).toBe(11)
    await one.acquire(20)
    expect(await Promise.all([one.availablePermits(), other.availablePermits()])).toEqual([0, 0])
  })
})
