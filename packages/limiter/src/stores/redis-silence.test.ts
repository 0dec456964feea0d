import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createLimiter } from '../create-limiter.ts'
import type { Limiter } from '../limiter.ts'
import { type RedisServer, startRedis } from '../sources/doubles/redis-server.ts'
import { type Relay, startRelay } from './doubles/relay.ts'

let server: RedisServer
const closing: (() => Promise<void>)[] = []

beforeAll(async () => {
  server = await startRedis()
  await server.client.config('SET', 'appendonly', 'no')
}, 30_000)
afterAll(() => server.close())
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
  await server.client.flushall()
})

async function startFleet(processes: number): Promise<{ relay: Relay; limiters: Limiter[] }> {
  const relay = await startRelay(server.authority)
  closing.push(() => relay.close())
  const limiters: Limiter[] = []
  for (let i = 0; i < processes; i++) {
    const limiter = await createLimiter({
      store: { redis: `redis://127.0.0.1:${relay.port}`, fleet: processes },
      rules: [{ id: 'all', limit: '1000/s' }],
    })
    closing.push(() => limiter.close())
    limiters.push(limiter)
  }
  for (const limiter of limiters) {
    limiter.events.on('store', () => {})
    await expect.poll(() => limiter.status().store?.fleet.size, { timeout: 5000 }).toBe(processes)
  }
  return { relay, limiters }
}

const ask = (limiter: Limiter) => limiter.check({ method: 'GET', path: '/' })

const areHealthy = (limiters: readonly Limiter[]): boolean[] =>
  limiters.map(limiter => limiter.status().store?.healthy === true)

/** When each limiter counts in Redis again, in milliseconds from now. */
async function untilBack(limiters: readonly Limiter[]): Promise<number[]> {
  const since = performance.now()
  return await Promise.all(
    limiters.map(async limiter => {
      while (!limiter.status().store?.healthy) await pause(2)
      return performance.now() - since
    }),
  )
}

describe('a connection to Redis that has become silent', () => {
  it.each([700, 1900])('lets 3 limiters come back together within a second after %d ms of silence', async ms => {
    const { relay, limiters } = await startFleet(3)
    relay.silence(true)
    await Promise.all(limiters.map(ask))
    await expect.poll(() => areHealthy(limiters)).toEqual([false, false, false])
    await pause(ms)
    relay.silence(false)
    const back = await untilBack(limiters)
    expect(Math.max(...back), `${back}`).toBeLessThan(1000)
    expect(Math.max(...back) - Math.min(...back), `${back}`).toBeLessThan(200)
  })

  it('is replaced within a second when a NAT has forgotten it, while new connections work', async () => {
    const { relay, limiters } = await startFleet(1)
    relay.forgetConnections()
    await Promise.all(limiters.map(ask))
    expect(areHealthy(limiters)).toEqual([false])
    const back = await untilBack(limiters)
    expect(Math.max(...back), `${back}`).toBeLessThan(1000)
  })

  it('is replaced if it never answers from the start', async () => {
    const relay = await startRelay(server.authority)
    closing.push(() => relay.close())
    relay.silence(true)
    const limiter = await createLimiter({
      store: { redis: `redis://127.0.0.1:${relay.port}` },
      rules: [{ id: 'all', limit: '1000/s' }],
    })
    closing.push(() => limiter.close())
    expect((await ask(limiter)).allowed).toBe(true)
    await pause(600)
    relay.silence(false)
    const back = await untilBack([limiter])
    expect(Math.max(...back), `${back}`).toBeLessThan(1000)
  })

  it('is replaced about twice a second as long as the new ones are silent too', async () => {
    const { relay, limiters } = await startFleet(1)
    const before = relay.accepted
    relay.silence(true)
    await Promise.all(limiters.map(ask))
    await pause(3000)
    const more = relay.accepted - before
    expect(more).toBeGreaterThanOrEqual(3)
    expect(more).toBeLessThanOrEqual(7)
    relay.silence(false)
    await untilBack(limiters)
  })
})
