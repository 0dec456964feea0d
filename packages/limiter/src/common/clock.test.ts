import { describe, expect, it } from 'vitest'
import { createLimiter } from '../create/create-limiter.ts'
import { inMicroseconds } from './clock.ts'

describe('an injected clock', () => {
  it('an injected clock that is set back continues from where it was', () => {
    let nowMs = 1_000_000_000
    const now = inMicroseconds(() => nowMs)
    expect(now()).toBe(1_000_000_000_000)
    nowMs -= 3600_000
    expect(now()).toBe(1_000_000_000_000)
    nowMs += 5
    expect(now()).toBe(1_000_000_005_000)
    nowMs += 3600_000
    expect(now()).toBe(1_003_600_005_000)
  })

  it('an injected clock with jitter is used unchanged', () => {
    const moments = [100_000, 99_999, 100_001, 99_998, 100_002]
    const now = inMicroseconds(() => moments.shift()!)
    expect(Array.from({ length: 5 }, now)).toEqual([100_000_000, 99_999_000, 100_001_000, 99_998_000, 100_002_000])
  })

  it.each(['sliding-window', 'sliding-log', 'fixed-window', 'token-bucket', 'leaky-bucket'])(
    'a %s refuses no caller for longer because the clock was set back by a day',
    async algorithm => {
      let nowMs = 1_794_744_000_000
      const burst = algorithm === 'leaky-bucket' ? { burst: 4 } : {}
      const limiter = await createLimiter({
        clock: () => nowMs,
        rules: [{ id: 'all', algorithm, limit: '5/m', ...burst } as never],
      })
      const admitted = async () => {
        let sum = 0
        for (let i = 0; i < 10; i++) if ((await limiter.check({ method: 'GET', path: '/' })).allowed) sum++
        return sum
      }
      expect(await admitted()).toBe(5)
      nowMs -= 86_400_000
      expect(await admitted()).toBe(0)
      nowMs += 60_000
      expect(await admitted()).toBe(5)
      await limiter.close()
    },
  )
})
