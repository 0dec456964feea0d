import { type RedisServer, startRedis } from '@test/servers/redis-server'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { adminOf } from '../admin/limiter-admin.ts'
import { createLimiter } from '../create/create-limiter.ts'
import type { Limiter } from '../limiter.ts'

let server: RedisServer
const limiters: Limiter[] = []
const call = { method: 'GET', path: '/' }

beforeAll(async () => {
  server = await startRedis()
}, 30_000)
afterAll(async () => {
  for (const limiter of limiters) await limiter.close()
  await server.close()
})

async function join(...rules: readonly object[]): Promise<Limiter> {
  const limiter = await createLimiter({
    store: { redis: server.client, timeout: '2s' },
    rules: rules.map((rule, i) => ({ id: `rule-${i}`, limit: '5/h', ...rule })),
  })
  limiters.push(limiter)
  return limiter
}

const remaining = async (limiter: Limiter) => (await limiter.peek(call)).decisions.map(decision => decision.remaining)

describe('limiters on one Redis', () => {
  it('limiters on one Redis share one count', async () => {
    const rule = { id: 'shared', limit: '5/h', algorithm: 'token-bucket' }
    const [one, other] = [await join(rule), await join(rule)]
    const allowed: boolean[] = []
    for (let i = 0; i < 8; i++) allowed.push((await (i % 2 ? one : other).check(call)).allowed)
    expect(allowed).toEqual([true, true, true, true, true, false, false, false])
  })

  it('a call refused by the fleet charges no local rule, and a call refused locally charges no shared rule', async () => {
    const limiter = await join({ id: 'fleet', limit: '1/h' }, { id: 'here', limit: '3/h', count: 'local' })
    expect((await limiter.check(call)).allowed).toBe(true)
    expect(await limiter.check(call)).toMatchObject({ allowed: false, rule: 'fleet' })
    expect(await remaining(limiter)).toEqual([0, 2])
    const narrow = await join({ id: 'wide', limit: '9/h' }, { id: 'narrow', limit: '0/h', count: 'local' })
    const refused = await narrow.check(call)
    expect(refused).toMatchObject({ allowed: false, rule: 'narrow' })
    expect(refused.decisions.map(({ rule }) => rule)).toEqual(['narrow'])
    expect(await remaining(narrow)).toEqual([9, 0])
  })

  it('limiters on one Redis report what each rule allowed and refused, over the whole fleet', async () => {
    const rule = { id: 'told', limit: '2/h' }
    const [one, other] = [await join(rule), await join(rule)]
    for (const limiter of [one, other, one]) await limiter.check(call)
    for (const limiter of [one, other]) await limiter.close()
    const reader = await join(rule)
    const read = async () => (await adminOf(reader).fleetHistory!.read({ lengthMs: 60_000 })).rules.get('told')
    // the step in which the calls were reported is read when it has ended
    await expect.poll(read, { timeout: 15_000 }).toMatchObject({ allowed: 2, refused: 1 })
  })

  it('a reset in one limiter clears the key in Redis for all', async () => {
    const limiter = await join({ id: 'forgetful', limit: '1/h' })
    await limiter.check(call)
    expect((await limiter.peek(call)).allowed).toBe(false)
    await limiter.reset('forgetful', call)
    expect((await limiter.peek(call)).allowed).toBe(true)
    await expect(limiter.reset('unknown', call)).rejects.toThrow('there is no rule "unknown"')
  })

  it('a slot that is released in one process admits a waiting call in another', async () => {
    const rule = { id: 'house', limit: 1, algorithm: 'concurrency', whenFull: 'wait', queue: { timeout: '5s' } }
    const [one, other] = [await join(rule), await join(rule)]
    const first = await one.check(call)
    expect(first).toMatchObject({ allowed: true, holds: true })
    const second = other.check(call)
    first.release()
    first.release()
    expect(await second).toMatchObject({ allowed: true, holds: true })
    ;(await second).release()
  })

  it('limiters on one Redis count locally while it is down, as each rule says, and return when it is back', async () => {
    const told: boolean[] = []
    const limiter = await createLimiter({
      store: { redis: `redis://${server.authority}`, timeout: '200ms' },
      rules: [
        { id: 'counted', match: { path: '/counted' }, limit: '2/h', whenStoreDown: 'local' },
        { id: 'open', match: { path: '/open' }, limit: '0/h', whenStoreDown: 'allow' },
        { id: 'shut', match: { path: '/shut' }, limit: '9/h', whenStoreDown: 'refuse' },
      ],
    })
    limiters.push(limiter)
    limiter.events.on('store', ({ healthy }) => told.push(healthy))
    const ask = async (path: string) => (await limiter.check({ method: 'GET', path })).allowed
    await expect.poll(() => ask('/shut')).toBe(true)
    told.length = 0
    await server.stop()
    expect([await ask('/counted'), await ask('/counted'), await ask('/counted')]).toEqual([true, true, false])
    expect([await ask('/open'), await ask('/shut')]).toEqual([true, false])
    expect(limiter.status().store).toMatchObject({ healthy: false })
    await server.start()
    await expect.poll(() => ask('/shut'), { timeout: 10_000 }).toBe(true)
    expect(told).toEqual([false, true])
  }, 20_000)

  it('limiters take their shares of what is left while Redis is down, and report all calls when it is back', async () => {
    const store = { redis: `redis://${server.authority}` }
    const rules = [{ id: 'parts', limit: '12/h' }]
    const fleet = await Promise.all([1, 2, 3].map(() => createLimiter({ store, rules })))
    limiters.push(...fleet)
    const sizes = () => fleet.map(limiter => limiter.status().store?.fleet.size ?? 0)
    await expect.poll(() => Math.min(...sizes()), { timeout: 5000 }).toBeGreaterThanOrEqual(3)
    const admitted = async (calls: number) => {
      let sum = 0
      for (let i = 0; i < calls; i++) for (const limiter of fleet) if ((await limiter.check(call)).allowed) sum++
      return sum
    }
    expect(await admitted(2)).toBe(6)
    await server.stop()
    const meanwhile = await admitted(10)
    expect(meanwhile).toBeLessThanOrEqual(6)
    expect(fleet.map(limiter => limiter.status().store)).toMatchObject(
      fleet.map(() => ({ healthy: false, kind: 'down', rules: ['parts'] })),
    )
    await server.start()
    await expect.poll(() => fleet.every(limiter => limiter.status().store?.healthy), { timeout: 10_000 }).toBe(true)
    expect(meanwhile + (await admitted(10))).toBe(6)
  }, 30_000)
})
