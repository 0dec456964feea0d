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
  limit: string | readonly string[],
  { processes = 1, timeout = '50ms', lease = 'auto' as 'auto' | 'off' } = {},
) {
  const redis = await startRedis()
  closing.push(() => redis.close())
  const limiters: Limiter[] = []
  for (let i = 0; i < processes; i++) {
    const limiter = await createLimiter({
      store: { redis: `redis://${redis.authority}`, timeout, fleet: processes },
      rules: [{ id: 'each', by: 'account', limit: limit as string, lease }],
    })
    closing.push(() => limiter.close())
    limiters.push(limiter)
  }
  return { redis, limiters, limiter: limiters[0]! }
}

const of = (account: string) => ({ method: 'GET', path: '/', attributes: { account } })

async function admitted(limiter: Limiter, account: string, calls: number): Promise<number> {
  let sum = 0
  for (let i = 0; i < calls; i++) if ((await limiter.check(of(account))).allowed) sum++
  return sum
}

async function restartEmpty(redis: RedisServer, limiters: readonly Limiter[], meanwhile: () => Promise<void>) {
  // a server that is killed has all of it on disk, so it forgets first
  await redis.client.flushall()
  await redis.stop('SIGKILL')
  await meanwhile()
  await redis.start()
  for (const limiter of limiters) await expect.poll(() => limiter.status().store?.healthy, { timeout: 5000 }).toBe(true)
}

const remaining = async (limiter: Limiter, account: string) =>
  (await limiter.peek(of(account))).decisions.map(decision => decision.remaining)

/** Calls at full speed, with some in flight at any time, until stopped; returns how many were admitted. */
function hammer(limiters: readonly Limiter[], account: string): () => Promise<number> {
  let isOver = false
  let sum = 0
  const work = async (limiter: Limiter): Promise<void> => {
    while (!isOver) {
      if ((await limiter.check(of(account))).allowed) sum++
      else await new Promise(setImmediate)
    }
  }
  const working = limiters.flatMap(limiter => Array.from({ length: 4 }, () => work(limiter)))
  return async () => {
    isOver = true
    await Promise.all(working)
    return sum
  }
}

describe('the cause of an outage', () => {
  it('all processes name the same cause of a killed Redis, whatever each was doing', async () => {
    const { redis, limiters } = await start('1000000/h', { processes: 4, lease: 'off' })
    // two of them are asked all the time, the others by nobody
    const calling = setInterval(() => limiters.slice(0, 2).forEach(limiter => void limiter.check(of('ann'))), 1)
    closing.push(async () => clearInterval(calling))
    await pause(100)
    await redis.stop('SIGKILL')
    const words = () => limiters.map(limiter => limiter.status().store).map(store => `${store?.what}: ${store?.remedy}`)
    const expected = 'Redis refuses connections: start Redis, or correct host and port in store.redis'
    await expect.poll(words, { timeout: 5000 }).toEqual(limiters.map(() => expected))
  })
})

describe('processes that have just started', () => {
  it.each([
    [5, 0],
    [5, 100],
    [8, 30],
    [8, 1100],
  ])('%i processes keep the shared limit when Redis stops %i ms after their start', async (processes, ms) => {
    const redis = await startRedis()
    closing.push(() => redis.close())
    const store = { redis: `redis://${redis.authority}` }
    const rules = [{ id: 'each', by: 'account', limit: '500/h' }]
    const limiters = await Promise.all(Array.from({ length: processes }, () => createLimiter({ store, rules })))
    for (const limiter of limiters) closing.push(() => limiter.close())
    await pause(ms)
    // every process has heard of the caller, and knows how much is left but for the calls under way
    let before = 0
    for (let i = 0; i < 5; i++) for (const limiter of limiters) before += await admitted(limiter, 'ann', 1)
    const stop = hammer(limiters, 'ann')
    await redis.stop('SIGKILL')
    await pause(200)
    const total = before + (await stop())
    expect(total).toBeLessThanOrEqual(500)
    // while shares change hands, some of the limit is held by no process
    expect(total).toBeGreaterThan(before)
  })
})

/** Processes that reach Redis each by a connection of its own, which can be cut. */
async function startApart(limit: string, processes: number) {
  const redis = await startRedis()
  closing.push(() => redis.close())
  const all = await Promise.all(
    Array.from({ length: processes }, async () => {
      const way = { isCut: false }
      const send = async ([command, ...args]: readonly string[]) => {
        if (way.isCut) throw new Error('connect ECONNREFUSED')
        return await redis.client.call(command!, ...args)
      }
      const limiter = await createLimiter({
        store: { redis: send, fleet: processes },
        rules: [{ id: 'each', by: 'account', limit }],
      })
      closing.push(() => limiter.close())
      return { limiter, way }
    }),
  )
  const cut = (isCut: boolean, which = all) => {
    for (const { way } of which) way.isCut = isCut
  }
  const back = async () => {
    for (const { limiter } of all)
      await expect.poll(() => limiter.status().store?.healthy, { timeout: 5000 }).toBe(true)
  }
  return { limiters: all.map(({ limiter }) => limiter), all, cut, back }
}

async function sumOf(limiters: readonly Limiter[], account: string, calls: number): Promise<number> {
  let sum = 0
  for (let i = 0; i < calls; i++) for (const limiter of limiters) sum += await admitted(limiter, account, 1)
  return sum
}

describe('what an outage can cost', () => {
  it('an outage for one of three processes costs one share of the limit, also after its return', async () => {
    const { limiters, all, cut, back } = await startApart('24/h', 3)
    let total = await sumOf(limiters, 'ann', 3)
    cut(true, [all[2]!])
    total += await sumOf(limiters.slice(0, 2), 'ann', 24)
    expect(total).toBe(24)
    total += await sumOf([limiters[2]!], 'ann', 24)
    expect(total).toBeLessThanOrEqual(24 + 8)
    cut(false)
    await back()
    expect(await sumOf(limiters, 'ann', 5)).toBe(0)
  })

  it('an outage costs the shares of processes that did not know a caller who moves to them', async () => {
    const { limiters, cut } = await startApart('24/h', 3)
    let total = await sumOf([limiters[0]!], 'ann', 30)
    expect(total).toBe(24)
    cut(true)
    total += await sumOf(limiters, 'ann', 30)
    expect(total).toBeLessThanOrEqual(24 + 8 + 8)
  })

  it('an outage costs nothing for new callers, or callers that all processes knew', async () => {
    const { limiters, cut, back } = await startApart('24/h', 3)
    let total = await sumOf(limiters, 'ann', 2)
    cut(true)
    total += await sumOf(limiters, 'ann', 24)
    const meanwhile = await sumOf(limiters, 'new', 24)
    expect(meanwhile).toBe(24)
    cut(false)
    await back()
    total += await sumOf(limiters, 'ann', 24)
    expect(total).toBe(24)
    expect(await sumOf(limiters, 'new', 3)).toBe(0)
  })
})

describe('after an outage of Redis', () => {
  it('when Redis comes back empty, a caller of several levels is charged exactly the admitted calls', async () => {
    const { redis, limiter, limiters } = await start(['1000/s', '20000/m', '500000/h'])
    expect(await admitted(limiter, 'ann', 5)).toBe(5)
    await restartEmpty(redis, limiters, async () => {
      expect(await admitted(limiter, 'ann', 6)).toBe(6)
    })
    const [, perMinute, perHour] = await remaining(limiter, 'ann')
    expect([perMinute, perHour]).toEqual([20_000 - 11, 500_000 - 11])
    expect(limiter.status().store?.outages).toMatchObject([{ calls: 6, over: 0 }])
  })

  it('exactly the missed calls are charged when Redis comes back with its counts', async () => {
    const { redis, limiter } = await start(['1000/s', '20000/m', '500000/h'])
    await admitted(limiter, 'ann', 5)
    await redis.stop('SIGKILL')
    await admitted(limiter, 'ann', 6)
    await admitted(limiter, 'bob', 1)
    await redis.start()
    await expect.poll(() => limiter.status().store?.healthy, { timeout: 5000 }).toBe(true)
    expect((await remaining(limiter, 'ann')).slice(1)).toEqual([20_000 - 11, 500_000 - 11])
    expect((await remaining(limiter, 'bob')).slice(1)).toEqual([20_000 - 1, 500_000 - 1])
    expect(limiter.status().store?.outages).toMatchObject([{ over: 0 }])
  })

  it('when Redis comes back empty, an exhausted caller stays refused, also one who did not call meanwhile', async () => {
    const { redis, limiter, limiters } = await start(['10/h', '20/d'])
    expect(await admitted(limiter, 'ann', 12)).toBe(10)
    expect(await admitted(limiter, 'bob', 12)).toBe(10)
    await restartEmpty(redis, limiters, async () => {
      expect(await admitted(limiter, 'ann', 3)).toBe(0)
    })
    expect(await admitted(limiter, 'ann', 3)).toBe(0)
    expect(await admitted(limiter, 'bob', 3)).toBe(0)
    expect(await remaining(limiter, 'bob')).toEqual([0, 10])
  })

  it('an empty Redis gets what the fleet has used, however the calls were spread over its processes', async () => {
    // permits that were held when Redis lost them count as used
    const { redis, limiters } = await start(['100/h', '1000/d'], { processes: 2, lease: 'off' })
    const [one, other] = limiters as [Limiter, Limiter]
    await admitted(one, 'ann', 30)
    await admitted(other, 'ann', 7)
    await admitted(one, 'bob', 60)
    await restartEmpty(redis, limiters, async () => {
      expect(await admitted(one, 'ann', 2)).toBe(2)
      expect(await admitted(other, 'ann', 3)).toBe(3)
    })
    expect(await remaining(one, 'ann')).toEqual([100 - 42, 1000 - 42])
    expect(await remaining(other, 'bob')).toEqual([100 - 60, 1000 - 60])
  })
})
