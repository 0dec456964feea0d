import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type RedisServer, startRedis } from '@test/servers/redis-server'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { algorithms } from '../algorithms/index.ts'
import { createLimiter } from '../create/create-limiter.ts'
import type { Limiter } from '../limiter.ts'
import type { RuleOptions } from '../rules/schema/options.ts'
import { CountingServer } from '../stores/counting/server.ts'

const call = { method: 'POST', path: '/v1/chat', attributes: { account: 'u1' } }
const other = { ...call, attributes: { account: 'u2' } }
// the beginning of a minute
const start = 1_794_712_380_000
let redis: RedisServer
let prefixes = 0

const folder = mkdtempSync(join(tmpdir(), 'diana-reserve-'))
const servers: CountingServer[] = []

beforeAll(async () => {
  redis = await startRedis()
})
afterAll(async () => {
  await redis.close()
  await Promise.all(servers.map(server => server.close()))
  rmSync(folder, { recursive: true })
})

const stores = ['memory', 'redis', 'a counting process'] as const

type Place = (typeof stores)[number]

async function limiterIn(place: Place, ...rules: readonly Partial<RuleOptions>[]) {
  let now = start
  const socket = join(folder, `${prefixes++}.sock`)
  const counting =
    place === 'a counting process' ? new CountingServer({ algorithms, now: () => now * 1000 }) : undefined
  await counting?.listen(socket)
  if (counting) servers.push(counting)
  const limiter = await createLimiter({
    clock: () => now,
    ...(counting && { counting: socket }),
    ...(place === 'redis' && { store: { redis: redis.client, prefix: `reserve${prefixes++}`, timeout: '2s' } }),
    rules: rules.map((rule, i) => ({ id: `rule-${i}`, by: 'account', limit: '100/m', ...rule }) as RuleOptions),
  })
  const moveTo = (ms: number): void => {
    now = start + ms
  }
  return { limiter, moveTo }
}

const standing = async (limiter: Limiter, cost = 1, of = call) => {
  const { allowed, decisions, retryAfterMs } = await limiter.peek(of, { cost })
  return { allowed, remaining: decisions.map(({ remaining }) => remaining), retryAfterMs }
}

/** How long after a debt of twice the limit a call of cost 1 passes again; 100 are reserved at 0 s, and 200 more owed since 10 s. */
const debts = [
  { algorithm: 'fixed-window', waitMs: 50_000 },
  { algorithm: 'fixed-window', align: 'first-call', waitMs: 50_000 },
  { algorithm: 'sliding-window', waitMs: 60_000 },
  { algorithm: 'sliding-log', waitMs: 60_000 },
  { algorithm: 'token-bucket', waitMs: 110_600 },
  { algorithm: 'token-bucket', refill: 'interval', waitMs: 170_000 },
  { algorithm: 'leaky-bucket', burst: 99, waitMs: 110_600 },
  { algorithm: 'warm-up', warmUp: '10s', waitMs: undefined },
] as const

describe.each(stores)('reservations in %s', place => {
  it.each(debts)('$algorithm counts a debt beyond the limit, and says when it is paid', async ({ waitMs, ...rule }) => {
    const { limiter, moveTo } = await limiterIn(place, { ...rule, cost: { overrun: 'debt' } } as Partial<RuleOptions>)
    const reservation = await limiter.reserve(call, { cost: 100 })
    expect(reservation.allowed).toBe(true)
    moveTo(10_000)
    await reservation.settle(300)
    const { allowed, remaining, retryAfterMs } = await standing(limiter)
    expect({ allowed, remaining }).toEqual({ allowed: false, remaining: [0] })
    if (waitMs !== undefined) expect(retryAfterMs).toBe(waitMs)
    moveTo(10_000 + retryAfterMs - 1)
    expect((await standing(limiter)).allowed).toBe(false)
    moveTo(10_000 + retryAfterMs)
    expect((await standing(limiter)).allowed).toBe(true)
    expect((await standing(limiter, 1, other)).allowed).toBe(true)
    await limiter.close()
  })

  it.each(debts)('$algorithm with clip counts up to the limit', async ({ waitMs, ...rule }) => {
    const { limiter } = await limiterIn(place, { ...rule, cost: { overrun: 'clip' } } as Partial<RuleOptions>)
    const reservation = await limiter.reserve(call, { cost: 50 })
    await reservation.settle(300)
    const { remaining, retryAfterMs } = await standing(limiter)
    expect(remaining).toEqual([0])
    if (waitMs !== undefined) expect(retryAfterMs).toBeLessThanOrEqual(60_000)
    await limiter.close()
  })

  it('all rules of a call are reserved together or none, and each is settled in its own unit', async () => {
    const held = { cost: { hold: '10m' } }
    const { limiter } = await limiterIn(
      place,
      { limit: '5/m', cost: 1 },
      { limit: '100/m', ...held },
      { limit: '150/d', ...held },
      { limit: '1000/m', count: 'local', ...held },
    )
    const one = await limiter.reserve(call, { cost: 80 })
    expect((await standing(limiter)).remaining).toEqual([4, 20, 70, 920])
    expect((await limiter.reserve(call, { cost: 21 })).allowed).toBe(false)
    expect((await standing(limiter)).remaining).toEqual([4, 20, 70, 920])
    await one.settle({ 'rule-1': 10, 'rule-2': 130 })
    expect((await standing(limiter)).remaining).toEqual([4, 90, 20, 920])
    await limiter.close()
  })

  it('a settlement counts once', async () => {
    const { limiter } = await limiterIn(place, { cost: { hold: '10m' } })
    const one = await limiter.reserve(call, { cost: 60 })
    await one.settle(20)
    await one.settle(90)
    await one.release()
    one.verdict.settle(3)
    one.verdict.end({ cost: 7 })
    await one.verdict.refund()
    expect((await standing(limiter)).remaining).toEqual([80])
    await limiter.close()
  })

  it('an unsettled reservation is released after hold, and a later settlement charges all that was used', async () => {
    const { limiter, moveTo } = await limiterIn(place, { limit: '100/d', cost: { hold: '30s' } })
    const one = await limiter.reserve(call, { cost: 60 })
    await limiter.reserve(call, { cost: 30, hold: '5s' })
    moveTo(4999)
    expect((await standing(limiter)).remaining).toEqual([10])
    moveTo(5000)
    expect((await standing(limiter)).remaining).toEqual([40])
    moveTo(29_999)
    expect((await standing(limiter)).remaining).toEqual([40])
    moveTo(30_000)
    expect((await standing(limiter)).remaining).toEqual([100])
    await one.settle(25)
    expect((await standing(limiter)).remaining).toEqual([75])
    await one.settle(25)
    expect((await standing(limiter)).remaining).toEqual([75])
    await limiter.close()
  })

  it('a block that uses a reservation releases it at its end, unless it was settled', async () => {
    const { limiter } = await limiterIn(place, { cost: { hold: '10m' } })
    {
      await using reservation = await limiter.reserve(call, { cost: 60 })
      expect(reservation.allowed).toBe(true)
    }
    expect((await standing(limiter)).remaining).toEqual([100])
    {
      await using reservation = await limiter.reserve(call, { cost: 60 })
      await reservation.settle(10)
    }
    expect((await standing(limiter)).remaining).toEqual([90])
    await limiter.close()
  })

  it('after a reset of the key nothing is refunded and no debt is charged', async () => {
    const { limiter, moveTo } = await limiterIn(place, { cost: { hold: '10m' } })
    const [less, more] = [await limiter.reserve(call, { cost: 30 }), await limiter.reserve(call, { cost: 30 })]
    moveTo(1)
    await limiter.reset('rule-0', call)
    moveTo(2)
    await limiter.check(call, { cost: 40 })
    await less.settle(5)
    await more.settle(500)
    expect((await standing(limiter)).remaining).toEqual([60])
    await limiter.close()
  })

  it('a call that ends without a cost keeps what was reserved', async () => {
    const { limiter, moveTo } = await limiterIn(place, { limit: '100/d', cost: { hold: '30s' } })
    const verdict = await limiter.check(call, { cost: 30 })
    expect(verdict.holds).toBe(true)
    verdict.end({ status: 200 })
    await (await limiter.reserve(call, { cost: 1 })).release()
    moveTo(60_000)
    expect((await standing(limiter)).remaining).toEqual([70])
    await limiter.close()
  })

  it('a debt is bounded, whatever the usage says', async () => {
    const { limiter } = await limiterIn(place, { algorithm: 'token-bucket', cost: { hold: '10m' } })
    const one = await limiter.reserve(call, { cost: 1 })
    await one.settle(Number.MAX_SAFE_INTEGER)
    const { retryAfterMs } = await standing(limiter)
    expect(retryAfterMs).toBe(99 * 60_000 + 600)
    await limiter.close()
  })

  it.each([-1, 2.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53])('a cost of %s is refused', async cost => {
    const { limiter } = await limiterIn(place, { cost: { hold: '10m' } })
    const one = await limiter.reserve(call, { cost: 60 })
    await expect(one.settle(cost)).rejects.toMatchObject({ code: 'BAD_CALL' })
    await expect(one.settle({ 'rule-0': cost })).rejects.toMatchObject({ code: 'BAD_CALL' })
    await expect(limiter.reserve(call, { hold: cost < 0 ? '-1s' : '2d' })).rejects.toMatchObject({ code: 'BAD_CALL' })
    await one.settle(10)
    expect((await standing(limiter)).remaining).toEqual([90])
    await limiter.close()
  })
})
