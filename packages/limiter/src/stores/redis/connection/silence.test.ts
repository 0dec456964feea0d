import { setTimeout as pause } from 'node:timers/promises'
import { type RedisServer, startRedis } from '@test/servers/redis-server'
import { type Relay, startRelay } from '@test/servers/relay'
import { afterAll, beforeAll, describe, expect, it, type TestContext, vi } from 'vitest'
import { createLimiter } from '../../../create/create-limiter.ts'
import type { Limiter } from '../../../limiter.ts'

let server: RedisServer
let fleets = 0

beforeAll(async () => {
  server = await startRedis()
  await server.client.config('SET', 'appendonly', 'no')
}, 30_000)
afterAll(() => server.close())

type Finish = TestContext['onTestFinished']

/** Limiters that are a fleet of their own, behind a relay of their own. */
async function startFleet(processes: number, onFinish: Finish): Promise<{ relay: Relay; limiters: Limiter[] }> {
  const relay = await startRelay(server.authority)
  onFinish(() => relay.close())
  const prefix = `fleet${++fleets}`
  const limiters: Limiter[] = []
  for (let i = 0; i < processes; i++) {
    const limiter = await createLimiter({
      store: { redis: `redis://127.0.0.1:${relay.port}`, fleet: processes, prefix },
      rules: [{ id: 'all', limit: '1000/s' }],
    })
    onFinish(() => limiter.close())
    limiters.push(limiter)
  }
  for (const limiter of limiters) {
    limiter.events.on('store', () => {})
    await vi.waitFor(() => expect(limiter.status().store?.fleet.size).toBe(processes), { timeout: 5000 })
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

describe.concurrent('a connection to Redis that has become silent', () => {
  it.for([700, 1900])(
    'lets 3 limiters come back together within a second after %d ms of silence',
    async (ms, { onTestFinished }) => {
      const { relay, limiters } = await startFleet(3, onTestFinished)
      relay.silence(true)
      await Promise.all(limiters.map(ask))
      await vi.waitFor(() => expect(areHealthy(limiters)).toEqual([false, false, false]))
      await pause(ms)
      relay.silence(false)
      const back = await untilBack(limiters)
      expect(Math.max(...back), `${back}`).toBeLessThan(1000)
      expect(Math.max(...back) - Math.min(...back), `${back}`).toBeLessThan(200)
    },
  )

  it('a connection that a NAT has forgotten is replaced within a second, while new connections work', async ({
    onTestFinished,
  }) => {
    const { relay, limiters } = await startFleet(1, onTestFinished)
    relay.forgetConnections()
    await Promise.all(limiters.map(ask))
    expect(areHealthy(limiters)).toEqual([false])
    const back = await untilBack(limiters)
    expect(Math.max(...back), `${back}`).toBeLessThan(1000)
  })

  it('a connection that never answers is replaced', async ({ onTestFinished }) => {
    const relay = await startRelay(server.authority)
    onTestFinished(() => relay.close())
    relay.silence(true)
    const limiter = await createLimiter({
      store: { redis: `redis://127.0.0.1:${relay.port}`, prefix: 'never' },
      rules: [{ id: 'all', limit: '1000/s' }],
    })
    onTestFinished(() => limiter.close())
    expect((await ask(limiter)).allowed).toBe(true)
    await pause(600)
    relay.silence(false)
    const back = await untilBack([limiter])
    expect(Math.max(...back), `${back}`).toBeLessThan(1000)
  })

  it('a silent connection is replaced about twice a second while new ones are silent, too', async ({
    onTestFinished,
  }) => {
    const { relay, limiters } = await startFleet(1, onTestFinished)
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
