import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { adminOf } from '../../packages/limiter/src/admin/index.ts'
import type { Algorithm } from '../../packages/limiter/src/algorithms/algorithm.ts'
import { fixedWindow } from '../../packages/limiter/src/algorithms/fixed-window.ts'
import { algorithms } from '../../packages/limiter/src/algorithms/index.ts'
import { createLimiter } from '../../packages/limiter/src/create/create-limiter.ts'
import type { Limiter } from '../../packages/limiter/src/limiter.ts'
import type { RuleOptions } from '../../packages/limiter/src/rules/schema/options.ts'
import { type RedisServer, startRedis } from '../helpers/servers/redis-server.ts'

const call = { method: 'POST', path: '/v1/chat', attributes: { account: 'u1' } }
const tokens = { id: 'tokens', by: 'account', algorithm: 'fixed-window', align: 'first-call' } as const
let server: RedisServer

beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.close())

const limiterOf = (limit: string, prefix: string, hold = '1m'): Promise<Limiter> => {
  return createLimiter({
    store: { redis: `redis://${server.authority}`, prefix, timeout: '3s' },
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

// `npm run long -- reserve` does the same with five processes, and kills one of them
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

it('a reservation in Redis that is settled while Redis is down is charged when it is back', async () => {
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

it('reservations and settlements travel with the calls: they cost no requests of their own', async () => {
  let requests = 0
  const send = ([command, ...args]: readonly string[]) => {
    if (command === 'FCALL' || command === 'EVALSHA') requests++
    return server.client.call(command!, ...args)
  }
  const limiter = await createLimiter({
    store: { redis: send, prefix: 'batches' },
    rules: [
      { ...tokens, limit: '1000/m', cost: { hold: '1m' } },
      { ...tokens, id: 'daily', limit: '1000/d', cost: { hold: '1m' } },
    ],
  })
  const during = async <T>(work: () => Promise<T>): Promise<{ result: T; requests: number }> => {
    const before = requests
    const result = await work()
    return { result, requests: requests - before }
  }
  await limiter.check(call)
  const reserved = await during(() => Promise.all(Array.from({ length: 8 }, () => limiter.reserve(call, { cost: 5 }))))
  expect(reserved.requests).toBe(1)
  const settled = await during(() => {
    const settlements = reserved.result.map((reservation, i) => reservation.settle(i * 2))
    return Promise.all([...settlements, limiter.check(call)])
  })
  expect(settled.requests).toBe(1)
  expect((await limiter.peek(call)).decisions.map(({ remaining }) => remaining)).toEqual([942, 942])
  await limiter.close()
})

it('an algorithm without a move for debts charges up to the limit', async () => {
  const plain: Algorithm = {
    ...fixedWindow,
    name: 'plain-window',
    meter: (...terms) => Object.assign(fixedWindow.meter(...terms), { overdraw: undefined }),
  }
  let now = 1_794_712_380_000
  const limiter = await createLimiter({
    clock: () => now,
    algorithms: [...algorithms, plain],
    rules: [
      {
        id: 'tokens',
        by: 'account',
        limit: '10/m',
        algorithm: 'plain-window',
        cost: { overrun: 'debt' },
      } as RuleOptions,
    ],
  })
  await (await limiter.reserve(call, { cost: 1 })).settle(50)
  expect((await limiter.peek(call)).decisions[0]!.remaining).toBe(0)
  now += 60_000
  expect((await limiter.peek(call)).decisions[0]!.remaining).toBe(10)
  await limiter.close()
})

it('reservations of a caller whose permits are leased add up, debts too', async () => {
  const rule = { ...tokens, limit: '100000/m' }
  const store = { redis: server.client, prefix: 'leased' }
  const limiter = await createLimiter({ store, rules: [rule] })
  let used = 0
  for (; limiter.status().rules[0]!.leased === 0 && used < 5000; used++) {
    await limiter.check(call)
    if (used % 50 === 0) await pause(5)
  }
  expect(limiter.status().rules[0]!.leased).toBeGreaterThan(0)
  for (let actual = 0; actual < 12; actual += 2) {
    const reservation = await limiter.reserve(call, { cost: 5 })
    expect(reservation.allowed).toBe(true)
    await reservation.settle(actual)
    used += actual
  }
  await limiter.close()
  expect(await counted('leased')).toBe(used)
})

it('a call that waits, and moves up when another one leaves the queue, keeps its reservation', async () => {
  const limiter = await createLimiter({
    rules: [
      { id: 'tokens', by: 'account', limit: '10/s', algorithm: 'token-bucket', whenFull: 'wait', cost: { hold: '1m' } },
    ],
  })
  const first = await limiter.reserve(call, { cost: 10 })
  const abort = new AbortController()
  const gone = limiter.reserve(call, { cost: 6, signal: abort.signal }).catch(error => error)
  const behind = limiter.reserve(call, { cost: 2 })
  abort.abort()
  expect(await gone).toMatchObject({ name: 'AbortError' })
  const moved = await behind
  expect(moved.verdict.waitMs).toBeLessThan(500)
  await Promise.all([first.settle(10), moved.settle(2)])
  const { amounts } = adminOf(limiter).stats().rules[0]!
  expect(amounts).toEqual({ reserved: 18, settled: 12, released: 6, expired: 0, overrun: 0 })
  await limiter.close()
})
