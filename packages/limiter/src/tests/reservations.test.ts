import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { adminOf } from '../admin/index.ts'
import { createLimiter } from '../create/create-limiter.ts'
import type { Limiter } from '../limiter.ts'
import { type RedisServer, startRedis } from '../sources/servers/redis-server.ts'

const call = { method: 'POST', path: '/v1/chat', attributes: { account: 'u1' } }
const tokens = { id: 'tokens', by: 'account', algorithm: 'fixed-window', align: 'first-call' } as const
let server: RedisServer

beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.close())

const limiterOf = (limit: string, prefix: string, hold = '1m'): Promise<Limiter> => {
  return createLimiter({
    store: { redis: `redis://${server.authority}`, prefix, timeout: '300ms' },
    rules: [{ ...tokens, limit, cost: { hold } }],
  })
}

/** What is counted, read by a limit that no debt exceeds. */
async function counted(prefix: string): Promise<number> {
  const limiter = await limiterOf('1000000/m', prefix)
  const { remaining } = (await limiter.peek(call)).decisions[0]!
  await limiter.close()
  return 1_000_000 - remaining
}

// `npm run reserve` does the same with five processes, and kills one of them
it('of 50 calls of unknown cost on 100/m no more is admitted than was reserved, and what was used adds up', async () => {
  const fleet = await Promise.all(Array.from({ length: 5 }, () => limiterOf('100/m', 'fleet')))
  const all = await Promise.all(
    Array.from({ length: 50 }, (_, i) => fleet[i % fleet.length]!.reserve(call, { cost: 10 })),
  )
  const allowed = all.filter(reservation => reservation.allowed)
  expect(allowed).toHaveLength(10)
  const used = allowed.map((_, i) => (i * 7) % 31)
  await Promise.all(allowed.map((reservation, i) => reservation.settle(used[i]!)))
  await Promise.all(allowed.map(reservation => reservation.settle(1000)))
  const sum = used.reduce((total, one) => total + one, 0)
  expect(sum).toBeGreaterThan(100)
  expect(await counted('fleet')).toBe(sum)
  expect((await fleet[0]!.peek(call)).decisions[0]).toMatchObject({ allowed: false, remaining: 0 })
  const amounts = fleet.map(limiter => adminOf(limiter).stats().rules[0]!.amounts)
  const total = (name: 'reserved' | 'settled' | 'released' | 'expired' | 'overrun') => {
    return amounts.reduce((all, one) => all + (one?.[name] ?? 0), 0)
  }
  expect([total('reserved'), total('settled'), total('expired')]).toEqual([100, sum, 0])
  expect(total('settled')).toBe(total('reserved') - total('released') + total('overrun'))
  for (const limiter of fleet) await limiter.close()
})

it('more reservations of one caller than are listed are settled, too', async () => {
  const limiter = await limiterOf('2000/m', 'many')
  const all = await Promise.all(Array.from({ length: 1100 }, () => limiter.reserve(call, { cost: 1 })))
  expect(all.every(({ allowed }) => allowed)).toBe(true)
  await Promise.all(all.map((reservation, i) => reservation.settle(i % 3)))
  expect(await counted('many')).toBe(all.reduce((sum, _, i) => sum + (i % 3), 0))
  await limiter.close()
})

it('what was reserved in Redis and is settled while Redis is away is settled when it is back', async () => {
  const limiter = await limiterOf('100/m', 'away')
  limiter.events.on('store', () => {})
  const [less, more] = [await limiter.reserve(call, { cost: 30 }), await limiter.reserve(call, { cost: 10 })]
  await server.stop()
  const settled = Promise.all([less.settle(5), more.settle(70)])
  // calls are still decided
  expect((await limiter.reserve({ ...call, attributes: { account: 'u2' } }, { cost: 1 })).allowed).toBe(true)
  await server.start()
  await settled
  await vi.waitFor(() => expect(limiter.status().store?.healthy).toBe(true), 10_000)
  expect(await counted('away')).toBe(75)
  await limiter.close()
})
