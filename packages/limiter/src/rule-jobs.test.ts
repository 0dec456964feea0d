import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { startRedis } from '@test/servers/redis-server'
import { afterEach, describe, expect, it } from 'vitest'
import { createLimiter } from './create/create-limiter.ts'
import type { Limiter } from './limiter.ts'
import type { RuleOptions } from './rules/schema/options.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

async function limiterOf(rule: Omit<RuleOptions, 'id'>): Promise<Limiter> {
  const limiter = await createLimiter({ rules: [{ id: 'mail', match: 'none', ...rule } as RuleOptions] })
  closing.push(() => limiter.close())
  return limiter
}

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void
const pause = (ms: number): Promise<void> => new Promise(resolve => setTimeout(resolve, ms))

describe('jobs of a rule', () => {
  it('jobs of a rule wait until it lets them pass, in order of priority, and none is lost', async () => {
    const limiter = await limiterOf({ limit: '5/100ms', algorithm: 'fixed-window' })
    const begun: number[] = []
    const jobs = Array.from({ length: 20 }, (_, i) =>
      limiter.jobs('mail').schedule(() => void begun.push(i), { priority: i % 2 }),
    )
    await Promise.all(jobs)
    const waited = begun.filter(i => begun.indexOf(i) >= 5)
    const odd = waited.filter(i => i % 2 === 1)
    expect(begun).toHaveLength(20)
    expect(waited.slice(0, odd.length)).toEqual(odd)
    expect(odd).toEqual(odd.toSorted((one, other) => one - other))
    // a job that waits is no refused call
    expect(limiter.status().rules[0]!.waiting).toBe(0)
  })

  it('each key has a queue of its own, and the same key the same queue', async () => {
    const limiter = await limiterOf({ by: 'account', limit: '1/h' })
    await limiter.jobs('mail', 'ann').limit(() => 1)
    const waiting = limiter.jobs('mail', 'ann').limit(() => 1)
    waiting.catch(() => {})
    expect(await limiter.jobs('mail', 'bob').limit(() => 2)).toBe(2)
    expect(limiter.jobs('mail', 'ann').waiting).toBe(1)
    expect(limiter.jobs('mail', 'ann')).toBe(limiter.jobs('mail', 'ann'))
  })

  it('jobs of a concurrency rule begin when others end, also calls that are no jobs', async () => {
    const limiter = await limiterOf({ limit: 2, algorithm: 'concurrency' })
    const call = await limiter.consume('mail', [])
    const ends: (() => void)[] = []
    const jobs = [1, 2].map(() => limiter.jobs('mail').limit(() => new Promise<void>(resolve => ends.push(resolve))))
    expect(ends).toHaveLength(1)
    call.end()
    await pause(0)
    expect(ends).toHaveLength(2)
    for (const end of ends) end()
    await Promise.all(jobs)
    expect((await limiter.get('mail', [])).decisions[0]?.remaining).toBe(2)
  })

  it('a new rule of the same id holds for the jobs that wait', async () => {
    const limiter = await createLimiter({ rules: [] })
    closing.push(() => limiter.close())
    limiter.addRule({ id: 'mail', match: 'none', limit: '1/h' })
    const queue = limiter.jobs('mail')
    await queue.limit(() => 1)
    const removed = queue.limit(() => 2)
    limiter.removeRule('mail')
    await expect(removed).rejects.toThrow('there is no rule "mail"')
    limiter.addRule({ id: 'mail', match: 'none', limit: '2/h' })
    expect(await queue.limit(() => 3)).toBe(3)
  })

  it('a job that is heavier than the limit is rejected, and one by a limit of 0 waits', async () => {
    const limiter = await limiterOf({ limit: '5/s' })
    await expect(limiter.jobs('mail').schedule(() => 1, { weight: 6 })).rejects.toMatchObject({ code: 'LIMITED' })
    limiter.addRule({ id: 'paused', match: 'none', limit: '0/s' })
    const leaving = new AbortController()
    const paused = limiter.jobs('paused').schedule(() => 1, { signal: leaving.signal })
    await pause(20)
    expect(limiter.jobs('paused').waiting).toBe(1)
    leaving.abort('gave up')
    await expect(paused).rejects.toBe('gave up')
  })

  it('closing the limiter rejects the jobs that wait with CLOSED', async () => {
    const limiter = await limiterOf({ limit: '1/h' })
    await limiter.jobs('mail').limit(() => 1)
    const waiting = limiter.jobs('mail').limit(() => 2)
    await limiter.close()
    await expect(waiting).rejects.toMatchObject({ code: 'CLOSED' })
    expect(() => limiter.jobs('mail')).toThrow('closed')
  })

  it('jobs go on while Redis cannot be asked, and none is lost', async () => {
    const redis = await startRedis()
    const limiter = await createLimiter({
      store: { redis: `redis://${redis.authority}`, timeout: '50ms' },
      rules: [{ id: 'mail', match: 'none', limit: '20/100ms', algorithm: 'fixed-window' }],
    })
    closing.push(() => limiter.close())
    limiter.events.on('store', () => {})
    const done: number[] = []
    const jobs = Array.from({ length: 100 }, (_, i) =>
      limiter.jobs('mail').limit(() => {
        done.push(i)
      }),
    )
    await pause(120)
    await redis.close()
    await Promise.all(jobs)
    expect(done).toEqual(Array.from({ length: 100 }, (_, i) => i))
  })

  it('jobs that wait for a free slot, and a pause, are kept though nothing else holds their queue', async () => {
    const limiter = await limiterOf({ limit: 1, algorithm: 'concurrency' })
    const call = await limiter.consume('mail', [])
    const done: string[] = []
    const collectAll = async (): Promise<void> => {
      // a WeakRef holds its object until the turn ends
      for (let i = 0; i < 3; i++) {
        await pause(1)
        collect()
      }
    }
    limiter.jobs('mail').limit(() => void done.push('first'))
    await collectAll()
    call.end()
    await pause(0)
    expect(done).toEqual(['first'])
    limiter.jobs('mail').pause()
    await collectAll()
    const second = limiter.jobs('mail').limit(() => void done.push('second'))
    await collectAll()
    expect(done).toEqual(['first'])
    limiter.jobs('mail').resume()
    await second
  })

  it('clear and close reject jobs that Redis is being asked for, and no permit is lost', async () => {
    const redis = await startRedis()
    closing.push(() => redis.close())
    const limiter = await createLimiter({
      store: { redis: `redis://${redis.authority}` },
      rules: [{ id: 'mail', match: 'none', limit: '100/h', algorithm: 'fixed-window', lease: 'off' }],
    })
    closing.push(() => limiter.close())
    const queue = limiter.jobs('mail')
    const ten = (): Promise<unknown>[] => Array.from({ length: 10 }, () => queue.limit(() => 'ran'))
    const settled = async (jobs: Promise<unknown>[]): Promise<string[]> => {
      return [...new Set((await Promise.allSettled(jobs)).map(({ status }) => status))]
    }
    const cleared = settled(ten())
    expect(queue.clear('gone')).toBe(10)
    expect(await cleared).toEqual(['rejected'])
    await expect.poll(async () => (await limiter.get('mail', [])).decisions[0]?.remaining).toBe(100)
    expect(await settled(ten())).toEqual(['fulfilled'])
    const closed = settled(ten())
    await limiter.close()
    expect(await closed).toEqual(['rejected'])
  })
})
