import { setTimeout as pause } from 'node:timers/promises'
import { useRedis } from '@test/servers/use-redis'
import { describe, expect, it } from 'vitest'
import { RateLimiter, type RateLimiterOptions } from './rate-limiter.ts'

const redis = useRedis()

function create(rate: number, options: RateLimiterOptions): RateLimiter {
  return redis.closeLater(RateLimiter.create(rate, { store: { redis: redis.url }, ...options }))
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

/** Redis says nothing for so long. */
async function silence(ms: number): Promise<void> {
  await redis.server.client.call('CLIENT', 'PAUSE', `${ms}`, 'ALL')
}

/** Redis says nothing for 80 ms, every 500 ms. */
async function hiccup(ms: number): Promise<void> {
  for (const until = performance.now() + ms; performance.now() < until; await pause(420)) {
    await silence(80)
    await pause(80)
  }
}

/**
 * Lets so many permits pass while Redis says nothing; returns how many passed in all. If a busy machine takes longer for them
 * than Redis is silent, it is silent again.
 */
async function passInSilence(limiter: RateLimiter, permits: number): Promise<number> {
  let passed = 0
  for (let tries = 0; tries < 4; tries++) {
    const until = performance.now() + 1500
    await silence(1500)
    let inTime = 0
    while (performance.now() < until) {
      const left = Math.max(0, Math.floor(until - performance.now()))
      if (inTime === permits) await pause(left + 1)
      else if (await limiter.tryAcquire(1, { timeout: left })) {
        passed++
        if (performance.now() < until) inTime++
      }
    }
    if (inTime === permits) return passed
  }
  throw new Error(`fewer than ${permits} permits passed while Redis was silent`)
}

describe('a rate that processes share, while Redis is interrupted', () => {
  it('a shared rate is not exceeded in any interval while Redis is interrupted, and is nearly used', async () => {
    const MS = 2500
    const fleets = [
      { size: 1, rate: 10 },
      { size: 3, rate: 30 },
    ].map(({ size, rate }) => {
      const all = Array.from({ length: size }, () => create(rate, { name: `hiccups-${size}`, maxBurst: '100ms' }))
      return { size, rate, all }
    })
    // paced in this process, without Redis: what a machine as busy as this one lets pass
    const plain = RateLimiter.create(10, { maxBurst: '100ms' })
    await Promise.all(fleets.flatMap(({ all }) => all.map(limiter => limiter.acquire())))
    // each process hears of the others with its next heartbeat
    await pause(1100)
    const measured = [...fleets.map(({ all }) => all), [plain]].map(all => passesOf(all, MS))
    const [found] = await Promise.all([Promise.all(measured), hiccup(MS)])
    const perRate = found.at(-1)!.length / 10
    fleets.forEach(({ size, rate }, i) => {
      // what is saved in 100 ms, one permit that is paid for afterward, one for each process that takes its turn
      expect(excessOf(found[i]!, rate)).toBeLessThanOrEqual(rate / 10 + 1 + size)
      expect(found[i]!.length).toBeGreaterThan(rate * perRate * 0.6)
    })
  })

  it('permits that passed without Redis are counted there afterwards', async () => {
    const limiter = create(10, { name: 'owing', maxBurst: '5s' })
    expect(await limiter.availablePermits()).toBe(51)
    const since = performance.now()
    // taken by another process: one that has taken them itself waits until they are paid for
    await create(10, { name: 'owing', maxBurst: '5s' }).acquire(50)
    const passed = await passInSilence(limiter, 3)
    const free = create(10, { name: 'owing', maxBurst: '5s' })
    // Redis hears of them with the first permit taken there again, some time after it failed
    let taken = passed
    const tooMany = async (): Promise<number> => {
      if (await limiter.tryAcquire()) taken++
      const available = await free.availablePermits()
      // each 100 ms have brought one permit, however long a busy machine took
      const brought = Math.ceil((performance.now() - since) / 100)
      return available - (brought + 1 - taken + 1)
    }
    await expect.poll(tooMany, { timeout: 3000, interval: 50 }).toBeLessThanOrEqual(0)
  })
})

describe('a rate that processes share', () => {
  it('a shared rate that one process sets is followed by the others at their next call', async () => {
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

  it('a process without calls learns of a changed shared rate', async () => {
    const [one, other] = [create(7, { name: 'heard' }), create(7, { name: 'heard' })]
    await Promise.all([one.acquire(), other.acquire()])
    one.setRate(3)
    await expect.poll(() => other.rate, { timeout: 3000 }).toBe(3)
  })

  it('a set rate survives a process with the old configuration, and gives way to a new configuration', async () => {
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

  it('availablePermits returns the same for all processes of a shared rate', async () => {
    const [one, other] = [create(10, { name: 'there' }), create(10, { name: 'there' })]
    expect(await one.availablePermits()).toBe(11)
    await one.acquire(20)
    expect(await Promise.all([one.availablePermits(), other.availablePermits()])).toEqual([0, 0])
  })
})
