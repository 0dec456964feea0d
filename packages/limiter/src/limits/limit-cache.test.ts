import { describe, expect, it } from 'vitest'
import { LimitCache, readLimit } from './limit-cache.ts'

const ann = () => ({ account: 'ann' })
/** What is known of a caller, who is asked for if that is due. */
function look(cache: LimitCache, key: string, caller: typeof ann, now: number) {
  const entry = cache.find(key)
  if (cache.isDue(entry, now)) cache.ask(key, caller(), now)
  return entry?.known
}

const settled = () => new Promise(resolve => setImmediate(resolve))

describe('limits of single callers', () => {
  it('limits of single callers are asked for once at a time, used for a while, and asked for again', async () => {
    let asked = 0
    const cache = new LimitCache({ ask: async () => `${++asked}00/h`, refreshMs: 1000, onTrouble: () => {} })
    expect(look(cache, 'ann', ann, 0)).toBeUndefined()
    look(cache, 'ann', ann, 0)
    await settled()
    expect(look(cache, 'ann', ann, 999)?.limit.count).toBe(100)
    expect(look(cache, 'ann', ann, 1000)?.limit.count).toBe(100)
    await settled()
    expect(look(cache, 'ann', ann, 1001)?.limit.count).toBe(200)
    cache.refresh('ann')
    look(cache, 'ann', ann, 1002)
    await settled()
    expect([asked, look(cache, 'ann', ann, 1003)?.limit.count]).toEqual([3, 300])
  })

  const throwing = (): Promise<unknown> => {
    throw new Error('boom')
  }
  const sources: readonly (readonly [string, () => Promise<unknown>])[] = [
    ['away', () => Promise.reject(new Error('connection refused'))],
    ['slow', () => new Promise(() => {})],
    ['sending garbage', async () => '<html>'],
    ['sending too much', async () => 'x'.repeat(1_000_000)],
    ['throwing', throwing],
  ]
  it.each(sources)('stay as they were when their source is %s, which is reported once', async (_, fails) => {
    let ask: () => Promise<unknown> = async () => '50/h'
    const troubles: string[] = []
    const cache = new LimitCache({ ask: () => ask(), refreshMs: 1, timeoutMs: 5, onTrouble: one => troubles.push(one) })
    look(cache, 'ann', ann, 0)
    await settled()
    ask = fails
    for (let now = 1; now < 5; now++) {
      look(cache, 'ann', ann, now * 10)
      look(cache, 'new', ann, now * 10)
      await new Promise(resolve => setTimeout(resolve, 8))
    }
    expect(look(cache, 'ann', ann, 100)?.limit.count).toBe(50)
    expect(look(cache, 'new', ann, 100)).toBeUndefined()
    expect(troubles).toHaveLength(1)
  })

  it('limits of single callers are kept up to a bound', async () => {
    const cache = new LimitCache({ ask: async () => '5/h', refreshMs: 1000, most: 10, onTrouble: () => {} })
    for (let i = 0; i < 1000; i++) look(cache, `caller-${i}`, ann, i)
    expect(cache.size).toBe(10)
    await settled()
  })

  it.each([
    ['5000/h', 5000, 3_600_000],
    [' 5000/h\n', 5000, 3_600_000],
    ['"20/s"', 20, 1000],
    ['{"limit":"20/s"}', 20, 1000],
    [{ limit: '20/s' }, 20, 1000],
    ['50', 50, 0],
    [50, 50, 0],
    ['0/h', 0, 3_600_000],
  ])('limits of single callers are read from %j', (answer, count, periodMs) => {
    expect(readLimit(answer)?.limit).toEqual({ count, periodMs })
  })

  it('limits of single callers may end', () => {
    expect(readLimit('{"limit":"20/s","until":"2026-12-01T00:00:00Z"}')?.untilMs).toBe(Date.UTC(2026, 11, 1))
  })

  it.each(['', null, undefined, '  '])('limits of single callers are left out by %j', answer => {
    expect(readLimit(answer)).toBeUndefined()
  })

  it.each([
    'many',
    '-5/h',
    '5/eon',
    '{"limit":',
    '{"limit":"x"}',
    '[]',
    '{"limit":"5/h","until":"soon"}',
    '1e99/h',
    -1,
    1.5,
    true,
  ])('limits of single callers are not read from %j', answer => {
    expect(() => readLimit(answer)).toThrow(/which is no limit: write 5000\/h/)
  })
})
