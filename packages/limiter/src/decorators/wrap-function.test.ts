import { type RedisServer, startRedis } from '@test/servers/redis-server'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { LimitedError } from '../answers/limited-error.ts'
import { createLimiter } from '../create/create-limiter.ts'
import type { Limiter } from '../limiter.ts'
import { RateLimit } from './rate-limit.ts'
import { rateLimited } from './wrap-function.ts'

describe('a limited function', () => {
  it('a limited function returns and throws as the original, until its limit is reached', () => {
    const add = rateLimited((a: number, b: number) => a + b, { limit: '2/h' })
    expect([add(1, 2), add(3, 4)]).toEqual([3, 7])
    expect(() => add(1, 2)).toThrow(LimitedError)
    const fail = rateLimited(
      () => {
        throw new TypeError('mine')
      },
      { limit: '1/h' },
    )
    expect(fail).toThrow('mine')
    expect(fail).toThrow('refuses this call')
  })

  it('a limited function is counted per key, and by its cost', () => {
    const send = rateLimited((to: string, text: string) => `${to}: ${text}`, {
      limit: '5/h',
      key: to => to,
      cost: (_, text) => text.length,
    })
    expect(send('u1', 'hello')).toBe('u1: hello')
    expect(() => send('u1', 'a')).toThrow('refuses')
    expect(send('u2', 'hi')).toBe('u2: hi')
    expect(() => send('u3', 'longer')).toThrow('try again later')
  })

  it('calls of a limited function without a key are counted together', () => {
    const read = rateLimited((user: { id: string } | undefined) => user?.id, { limit: '1/h', key: user => user!.id })
    expect([read({ id: 'u1' }), read(undefined)]).toEqual(['u1', undefined])
    expect(() => read(undefined)).toThrow('refuses')
    expect(read({ id: 'u2' })).toBe('u2')
  })

  it('a limited function with several limits is charged by all or none', () => {
    const go = rateLimited(
      (who: string) => who,
      [
        { id: 'per-key', limit: '1/h', key: who => who, fallback: (who: string) => `${who} waits` },
        { id: 'all', limit: '3/h' },
      ],
    )
    expect([go('a'), go('a'), go('a'), go('b'), go('c')]).toEqual(['a', 'a waits', 'a waits', 'b', 'c'])
    expect(() => go('d')).toThrow('rule "all"')
  })

  it('a limited function may wait for its turn', async () => {
    const pace = rateLimited((n: number) => n, {
      limit: '20/s',
      algorithm: 'leaky-bucket',
      burst: 5,
      whenFull: 'wait',
    })
    const started = performance.now()
    expect(await Promise.all([pace(1), pace(2), pace(3)])).toEqual([1, 2, 3])
    expect(performance.now() - started).toBeGreaterThan(95)
  })

  it('calls of a limited function wait in a queue for jobs, unless its options have another queue', async () => {
    const limiter = await createLimiter({ rules: [] })
    const options = { limiter, limit: 1, algorithm: 'concurrency', whenFull: 'wait' } as const
    await rateLimited(() => 1, { ...options, id: 'jobs' })()
    await rateLimited(() => 1, { ...options, id: 'short', queue: { timeout: '1s' } })()
    await rateLimited(() => 1, { limiter, limit: '9/s', id: 'refuses' })()
    expect(limiter.rules.map(({ id, queue }) => [id, queue.size, queue.timeoutMs])).toEqual([
      ['jobs', 100_000, 86_400_000],
      ['short', 1000, 1000],
      ['refuses', 1000, undefined],
    ])
    await limiter.close()
  })

  it('a limited function keeps this, its name and its length', () => {
    const counter = {
      n: 0,
      up: rateLimited(
        function up(this: { n: number }, by: number) {
          this.n += by
          return this.n
        } as (by: number) => number,
        { limit: '9/h' },
      ),
    }
    expect([counter.up(2), counter.up(3)]).toEqual([2, 5])
    expect([counter.up.name, counter.up.length]).toEqual(['up', 1])
  })

  it('a limited function throws at its first call if its options are invalid, and runs unlimited after its limiter was closed', async () => {
    expect(rateLimited(() => 1, { limit: 'often' })).toThrow('limit')
    expect(() => rateLimited(() => 1, { limit: '1/s', by: 'account' })).toThrow('say key')
    const limiter = await createLimiter({ rules: [] })
    const other = await createLimiter({ rules: [] })
    const both = rateLimited(
      () => 1,
      [
        { limit: '1/h', limiter },
        { limit: '1/h', limiter: () => other },
      ],
    )
    expect(both).toThrow('the same limiter')
    const one = rateLimited(() => 1, { limit: '1/h', limiter: () => limiter })
    expect(one()).toBe(1)
    await limiter.close()
    expect(one()).toBe(1)
    await other.close()
  })
})

describe('a limited function that is async', () => {
  const words = { limit: '1/h', algorithm: 'fixed-window' } as const
  const outcome = async (call: () => unknown): Promise<unknown> => {
    const promise = call() as Promise<unknown>
    return await promise.then(String, (error: { code?: string }) => error.code)
  }

  it('a limited async function rejects when it is refused, and never throws', async () => {
    const declared = rateLimited(async () => 'done', words)
    expect([await outcome(declared), await outcome(declared)]).toEqual(['done', 'LIMITED'])
    const undeclared = rateLimited(() => Promise.resolve('done'), words)
    expect([await outcome(undeclared), await outcome(undeclared)]).toEqual(['done', 'LIMITED'])
  })

  it('a limited async function rejects for invalid options, and resolves to its fallback', async () => {
    expect(await outcome(rateLimited(async () => 1, { limit: 'often' }))).toBe('BAD_RULES')
    const falling = rateLimited(async () => 'done', { ...words, fallback: 'later' })
    expect([await outcome(falling), await outcome(falling)]).toEqual(['done', 'later'])
  })

  it('an async method of a limited class rejects from its first refused call', async () => {
    class Jobs {
      async run(): Promise<string> {
        return 'ran'
      }
    }
    const decorate = RateLimit({ ...words, cost: 2 }) as unknown as (target: object) => void
    decorate(Jobs)
    expect(await outcome(() => new Jobs().run())).toBe('LIMITED')
  })
})

describe('a limited function of the fleet', () => {
  let server: RedisServer
  let limiters: Limiter[]
  beforeAll(async () => {
    server = await startRedis()
    const join = () => createLimiter({ store: { redis: server.client, timeout: '2s' }, rules: [] })
    limiters = [await join(), await join()]
  }, 30_000)
  afterAll(async () => {
    for (const limiter of limiters) await limiter.close()
    await server.close()
  })

  it('a limited function of a fleet is limited for all processes together', async () => {
    const [one, two] = limiters.map(limiter => {
      return rateLimited(async (user: string) => user, { id: 'job', limit: '3/h', key: user => user, limiter })
    })
    expect(await Promise.all([one!('u1'), two!('u1'), one!('u1'), two!('u2')])).toEqual(['u1', 'u1', 'u1', 'u2'])
    await expect(two!('u1')).rejects.toThrow('refuses')
  })
})
