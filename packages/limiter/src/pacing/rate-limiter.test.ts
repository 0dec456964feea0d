import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { RateLimiter, type RateLimiterOptions } from './rate-limiter.ts'

const START = Date.UTC(2026, 0, 1)

beforeEach(() => {
  vi.useFakeTimers({ now: START })
})
afterEach(() => {
  vi.useRealTimers()
})

function create(rate: number, options: RateLimiterOptions = {}): RateLimiter {
  return RateLimiter.create(rate, { clock: Date.now, ...options })
}

/** Acquires one after the other, as a program that waits for each would; returns the seconds each waited. */
async function acquire(limiter: RateLimiter, ...permits: number[]): Promise<number[]> {
  const waited: number[] = []
  for (const count of permits) {
    const acquired = limiter.acquire(count)
    await vi.runAllTimersAsync()
    waited.push(Math.round((await acquired) / 10) / 100)
  }
  return waited
}

function idle(ms: number): void {
  vi.setSystemTime(Date.now() + ms)
}

describe('a limiter that saves permits', () => {
  it('a limiter that saves permits lets one request pass at once and paces the rest', async () => {
    expect(await acquire(create(5), 1, 1, 1)).toEqual([0, 0.2, 0.2])
  })

  it('a limiter that saves permits saves a second of permits while idle, and no more', async () => {
    const limiter = create(5)
    idle(2000)
    expect(await acquire(limiter, 1, 1, 3, 1, 1)).toEqual([0, 0, 0, 0, 0.2])
  })

  it('availablePermits returns how many requests for one permit would pass at once', async () => {
    const limiter = create(5)
    expect(await limiter.availablePermits()).toBe(1)
    idle(400)
    expect(await limiter.availablePermits()).toBe(3)
    expect(await acquire(limiter, 1, 1, 1)).toEqual([0, 0, 0])
    expect(await limiter.availablePermits()).toBe(0)
    idle(60_000)
    expect(await limiter.availablePermits()).toBe(6)
    const warming = create(5, { warmUp: '4s' })
    expect(await warming.availablePermits()).toBe(1)
  })

  it('the request after a large one waits for it', async () => {
    expect(await acquire(create(1), 5, 1)).toEqual([0, 5])
  })

  it('permits that were taken before a change of rate are paid off at the old rate', async () => {
    const limiter = create(1)
    expect(await acquire(limiter, 1, 1)).toEqual([0, 1])
    limiter.setRate(2)
    expect(await acquire(limiter, 1, 2, 4, 1)).toEqual([1, 0.5, 1, 2])
  })

  it('a limiter that saves permits never bursts more than a second of work, whatever the rate becomes', async () => {
    for (const rates of [
      [1000, 1],
      [1, 1000],
      [10, 10],
    ] as const) {
      const limiter = create(rates[0])
      idle(1000)
      limiter.setRate(rates[1])
      const burst = await acquire(limiter, ...Array.from({ length: Math.ceil(rates[1]) + 1 }, () => 1))
      expect(burst.filter(wait => wait === 0).length).toBeLessThanOrEqual(Math.ceil(rates[1]) + 1)
    }
  })

  it('a limiter that saves permits saves as much as maxBurst says', async () => {
    const limiter = create(5, { maxBurst: '2s' })
    idle(10_000)
    expect((await acquire(limiter, ...Array.from({ length: 12 }, () => 1))).lastIndexOf(0)).toBe(10)
  })
})

describe('a limiter that warms up', () => {
  const cold = [0, 1.38, 1.13, 0.88, 0.63, 0.5, 0.5, 0.5]
  const eight = Array.from({ length: 8 }, () => 1)

  it('a limiter that warms up reaches its rate along the curve, and cools down while idle', async () => {
    const limiter = create(2, { warmUp: '4s' })
    expect(await acquire(limiter, ...eight)).toEqual(cold)
    idle(500 + 4000)
    expect(await acquire(limiter, ...eight)).toEqual(cold)
    idle(500 + 2000)
    expect(await acquire(limiter, ...eight)).toEqual([0, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5])
  })

  it('a limiter that warms up keeps its temperature when the rate is changed', async () => {
    const limiter = create(2, { warmUp: '4s' })
    await acquire(limiter, ...eight)
    idle(4500)
    expect(await acquire(limiter, 1, 1, 1)).toEqual([0, 1.38, 1.13])
    limiter.setRate(4)
    expect(await acquire(limiter, 1, 1, 1, 1, 1)).toEqual([0.88, 0.34, 0.28, 0.25, 0.25])
  })

  it('the duration of a warm-up does not depend on how its permits are split', async () => {
    for (const coldFactor of [2, 3, 10]) {
      for (const rate of [4, 2, 1, 0.5, 0.1]) {
        // so long that ten permits lie between cold and warm
        const warmUpMs = ((1 + coldFactor) * 10_000) / (2 * rate)
        for (const split of [[10], [5, 5], [1, 2, 3, 4], [9, 1]]) {
          const limiter = create(rate, { warmUp: `${warmUpMs}ms`, coldFactor })
          const waits = await acquire(limiter, ...split, 1)
          expect(waits.reduce((sum, wait) => sum + wait)).toBeCloseTo(warmUpMs / 1000, 1)
        }
      }
    }
  })
})

describe('tryAcquire', () => {
  it('tryAcquire takes nothing if the permits are not available in time', async () => {
    const limiter = create(1)
    expect(await limiter.tryAcquire(5)).toBe(true)
    idle(4900)
    expect(await limiter.tryAcquire(1)).toBe(false)
    idle(100)
    expect(await limiter.tryAcquire(1)).toBe(true)
  })

  it('acquire waits until its permit is due', async () => {
    const limiter = create(1)
    expect(await limiter.tryAcquire()).toBe(true)
    expect(await limiter.tryAcquire(1, { timeout: '999ms' })).toBe(false)
    const inTime = limiter.tryAcquire(1, { timeout: 1000 })
    await vi.advanceTimersByTimeAsync(1000)
    expect(await inTime).toBe(true)
  })
})

describe('an aborted acquire', () => {
  it('an aborted acquire refunds its permits, and later requests move up', async () => {
    const limiter = create(1)
    await limiter.acquire()
    const passed: string[] = []
    const giveUp = new AbortController()
    const abandoned = limiter
      .acquire(1, { signal: giveUp.signal })
      .catch((reason: unknown) => passed.push(String(reason)))
    const behind = limiter.acquire().then(waited => passed.push(`behind ${waited}`))
    giveUp.abort('gave up')
    await vi.advanceTimersByTimeAsync(1000)
    await Promise.all([abandoned, behind])
    expect(passed).toEqual(['gave up', 'behind 1000'])
    expect(await acquire(limiter, 1)).toEqual([1])
  })

  it('acquire with an aborted signal rejects at once', async () => {
    const limiter = create(1)
    await expect(limiter.acquire(1, { signal: AbortSignal.abort('late') })).rejects.toBe('late')
    expect(await acquire(limiter, 1)).toEqual([0])
  })
})

it('invalid options throw with a remedy', async () => {
  expect(() => create(0)).toThrow('permits per second must be a number above 0, not 0')
  expect(() => create(1, { warmUp: 'soon' })).toThrow('warmUp must be a duration such as 500ms or 4s, not "soon"')
  expect(() => create(1, { warmUp: '1s', maxBurst: '1s' })).toThrow('exclude each other')
  await expect(create(1).acquire(0)).rejects.toThrow('permits must be a whole number of 1 or more, not 0')
})
