import { setTimeout as pause } from 'node:timers/promises'
import { afterEach, describe, expect, it } from 'vitest'
import { createLimiter } from '../../packages/limiter/src/create/create-limiter.ts'
import type { Limiter } from '../../packages/limiter/src/limiter.ts'
import { type RedisServer, startRedis } from '../helpers/servers/redis-server.ts'

const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

async function start(
  rules: readonly object[],
  processes: number,
): Promise<{ redis: RedisServer; limiters: Limiter[] }> {
  const redis = await startRedis()
  closing.push(() => redis.close())
  const limiters: Limiter[] = []
  for (let i = 0; i < processes; i++) {
    const limiter = await createLimiter({
      // a busy machine is not to be taken for a silent Redis
      store: { redis: `redis://${redis.authority}`, timeout: '2s', fleet: processes },
      rules: rules as never,
    })
    closing.push(() => limiter.close())
    limiters.push(limiter)
  }
  for (const limiter of limiters) {
    await expect.poll(() => limiter.status().store?.fleet.size, { timeout: 5000 }).toBe(processes)
  }
  return { redis, limiters }
}

const of = (account: string, path = '/') => ({ method: 'GET', path, attributes: { account } })
const isAllowed = async (limiter: Limiter, account: string, path?: string) =>
  (await limiter.check(of(account, path))).allowed

async function areHealthy(limiters: readonly Limiter[]): Promise<void> {
  for (const limiter of limiters) await expect.poll(() => limiter.status().store?.healthy, { timeout: 8000 }).toBe(true)
}

const algorithms = ['sliding-window', 'sliding-log', 'fixed-window', 'token-bucket', 'leaky-bucket'] as const

describe('a Redis that is flushed while processes are connected', () => {
  it('a Redis without its counts gets them back for rules of all algorithms: callers at their limit stay refused', async () => {
    const rules = algorithms.map(algorithm => {
      const burst = algorithm === 'leaky-bucket' ? { burst: 19 } : {}
      return { id: algorithm, match: { path: `/${algorithm}` }, by: 'account', algorithm, limit: '20/h', ...burst }
    })
    const { redis, limiters } = await start(rules, 2)
    const [one, other] = limiters as [Limiter, Limiter]
    for (const algorithm of algorithms) {
      const path = `/${algorithm}`
      for (let i = 0; i < 10; i++) {
        expect([await isAllowed(one, 'ann', path), await isAllowed(other, 'ann', path)]).toEqual([true, true])
        await isAllowed(one, 'bob', path)
      }
      expect(await isAllowed(one, 'ann', path)).toBe(false)
    }
    let admitted = 0
    const tryAll = async () => {
      for (const algorithm of algorithms) {
        for (let i = 0; i < 5; i++) {
          for (const limiter of [other, one]) if (await isAllowed(limiter, 'ann', `/${algorithm}`)) admitted++
        }
      }
    }
    await redis.client.flushall()
    await tryAll()
    // one that refuses without asking Redis learns of it by its next heartbeat
    for (const limiter of limiters) {
      await expect.poll(() => limiter.status().store?.outages.length, { timeout: 5000 }).toBe(1)
    }
    await areHealthy(limiters)
    await tryAll()
    expect(admitted).toBe(0)
    for (const algorithm of algorithms) {
      const { decisions } = await one.peek(of('bob', `/${algorithm}`))
      expect(decisions[0]!.remaining).toBe(10)
    }
    expect(one.status().store?.outages.at(-1)).toMatchObject({ kind: 'lost' })
  })

  it('a process without calls notices a flushed Redis with its next heartbeat', async () => {
    const { redis, limiters } = await start([{ id: 'each', by: 'account', limit: '20/h' }], 2)
    const [one, other] = limiters as [Limiter, Limiter]
    for (let i = 0; i < 20; i++) await isAllowed(one, 'ann')
    await redis.client.flushall()
    await expect.poll(() => one.status().store?.outages.length, { timeout: 5000 }).toBe(1)
    await areHealthy(limiters)
    expect(await isAllowed(other, 'ann')).toBe(false)
  })

  it('a Redis that has evicted the key that shows that counts were lost gets them back, too', async () => {
    const { redis, limiters } = await start([{ id: 'each', by: 'account', limit: '20/h' }], 1)
    const one = limiters[0]!
    for (let i = 0; i < 15; i++) await isAllowed(one, 'ann')
    await redis.client.del('diana:era', 'diana:each:account{ann}')
    let admitted = 0
    for (let i = 0; i < 10; i++) if (await isAllowed(one, 'ann')) admitted++
    await areHealthy(limiters)
    for (let i = 0; i < 10; i++) if (await isAllowed(one, 'ann')) admitted++
    expect(admitted).toBe(5)
  })

  it('three busy processes admit no more than the limit, and the few calls under way, when Redis is flushed', async () => {
    const { redis, limiters } = await start([{ id: 'all', limit: '450/h' }], 3)
    let [admitted, calls] = [0, 0]
    const until = performance.now() + 2000
    const busy = limiters.map(async limiter => {
      while (performance.now() < until) {
        calls++
        if (await isAllowed(limiter, 'anyone')) admitted++
        await pause(5)
      }
    })
    await pause(500)
    await redis.client.flushall()
    await Promise.all(busy)
    await areHealthy(limiters)
    for (const limiter of limiters) for (let i = 0; i < 450; i++) if (await isAllowed(limiter, 'anyone')) admitted++
    expect(calls).toBeGreaterThan(100)
    expect(admitted).toBeLessThanOrEqual(450 + 3)
    expect(admitted).toBeGreaterThanOrEqual(400)
  })
})

describe('a Redis that loses its counts while processes are connected', () => {
  it.each(['is flushed', 'is killed and started empty'] as const)(
    'a Redis that %s gets back what plans, calendar windows, refunds and slots have left',
    async how => {
      const limited = [
        { id: 'plan', limit: { by: 'header:x-plan', values: { pro: '60/h' }, default: '30/h' } },
        { id: 'calendar', limit: '30/month', zone: 'Asia/Tokyo' },
        { id: 'slots', algorithm: 'concurrency', limit: 5 },
        ...algorithms.map(algorithm => {
          const burst = algorithm === 'leaky-bucket' ? { burst: 29 } : {}
          return { id: `refunds-${algorithm}`, algorithm, limit: '30/d', countWhen: 'failed', ...burst }
        }),
      ]
      const rules = limited.map(rule => ({ by: 'account', ...rule, match: { path: `/${rule.id}` } }))
      const { redis, limiters } = await start(rules, 2)
      const callOf = (id: string, plan = 'free') => ({ ...of('ann', `/${id}`), headers: { 'x-plan': plan } })
      const ask = (i: number, id: string, plan?: string) => limiters[i % 2]!.check(callOf(id, plan))
      const left = async () => {
        const ofEach = limiters.map(async limiter => {
          const peeks = rules.map(async ({ id }) => [id, (await limiter.peek(callOf(id))).decisions[0]!.remaining])
          const pro = await limiter.peek(callOf('plan', 'pro'))
          return { ...Object.fromEntries(await Promise.all(peeks)), pro: pro.decisions[0]!.remaining }
        })
        return await Promise.all(ofEach)
      }
      const held = [await ask(0, 'slots'), await ask(1, 'slots'), await ask(0, 'slots')]
      for (let i = 0; i < 20; i++) {
        for (const { id } of rules.filter(rule => rule.id !== 'slots')) {
          const verdict = await ask(i, id, i % 2 === 0 ? 'pro' : 'free')
          expect(verdict.allowed).toBe(true)
          // every other pair of calls succeeds, so that both processes refund some
          await verdict.end({ status: i % 4 < 2 ? 200 : 500 })
        }
      }
      const before = await left()
      const refunded = Object.fromEntries(algorithms.map(algorithm => [`refunds-${algorithm}`, 20]))
      expect(before[0]).toEqual({ plan: 10, pro: 40, calendar: 10, slots: 2, ...refunded })
      expect(before[1]).toEqual(before[0])
      await redis.client.flushall()
      if (how !== 'is flushed') {
        await redis.stop('SIGKILL')
        await redis.start()
      }
      for (const limiter of limiters) {
        await expect.poll(() => limiter.status().store?.outages.length, { timeout: 5000 }).toBeGreaterThan(0)
      }
      await areHealthy(limiters)
      expect(await left()).toEqual(before)
      for (const verdict of held) await verdict.end({ status: 200 })
      await expect.poll(async () => (await left())[0].slots, { timeout: 3000 }).toBe(5)
    },
  )
})
