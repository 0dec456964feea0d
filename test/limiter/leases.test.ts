import { setTimeout as pause } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { afterEach, describe, expect, it } from 'vitest'
import { createLimiter } from '../../packages/limiter/src/create/create-limiter.ts'
import type { LimiterOptions } from '../../packages/limiter/src/create/limiter-options.ts'
import type { Limiter } from '../../packages/limiter/src/limiter.ts'
import type { RuleOptions } from '../../packages/limiter/src/rules/schema/options.ts'
import { type RedisServer, startRedis } from '../helpers/servers/redis-server.ts'
import { RulesCenter } from '../helpers/sources/rules-center.ts'

const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

async function start(
  rules: readonly RuleOptions[],
  processes = 2,
  more: Partial<LimiterOptions> = {},
): Promise<{ redis: RedisServer; limiters: Limiter[] }> {
  const redis = await startRedis()
  closing.push(() => redis.close())
  const limiters: Limiter[] = []
  for (let i = 0; i < processes; i++) {
    const limiter = await createLimiter({
      store: { redis: `redis://${redis.authority}`, timeout: '2s' },
      rules,
      ...more,
    })
    closing.push(() => limiter.close())
    limiters.push(limiter)
  }
  return { redis, limiters }
}

const ann = { method: 'GET', path: '/', attributes: { account: 'ann' } }

/** Calls by turns, until `isOver`; returns how many were admitted. */
async function hammer(limiters: readonly Limiter[], isOver: () => boolean): Promise<number> {
  let sum = 0
  for (let i = 0; !isOver(); i++) {
    const limiter = limiters[i % limiters.length]!
    if ((await limiter.check(ann)).allowed) sum++
    if (i % 50 === 0) await pause(1)
  }
  return sum
}

function within(ms: number): () => boolean {
  const endsAt = performance.now() + ms
  return () => performance.now() >= endsAt
}

const leasesOf = (limiter: Limiter) => limiter.status().store!.leases

describe('permits of a busy caller that processes hold in advance', () => {
  it('permits held in advance decide most calls without Redis, and the limit is used up exactly', async () => {
    const rule = { id: 'each', by: 'account', limit: '5000/h', algorithm: 'fixed-window' } as const
    const { limiters } = await start([rule], 3)
    let refused = 0
    let admitted = 0
    while (refused < 200) {
      for (const limiter of limiters) {
        if ((await limiter.check(ann)).allowed) admitted++
        else refused++
      }
      // others give back what they do not use
      if (refused > 0) await pause(20)
    }
    expect(admitted).toBe(5000)
    const leased = limiters.reduce((sum, limiter) => sum + leasesOf(limiter).decided, 0)
    expect(leased).toBeGreaterThan(2500)
  })

  it('a rule with lease: off asks Redis for every call', async () => {
    const { limiters } = await start([{ id: 'each', by: 'account', limit: '5000/h', lease: 'off' }], 1)
    await hammer(limiters, within(200))
    expect(leasesOf(limiters[0]!)).toMatchObject({ keys: 0, permits: 0, decided: 0, requests: 0 })
  })

  it('permits of a process that ends without notice are free again within two seconds', async () => {
    const rule = { id: 'each', by: 'account', limit: '1000/s', algorithm: 'token-bucket', burst: 1000 } as const
    const { redis, limiters } = await start([rule], 1)
    const client = new Redis(`redis://${redis.authority}`)
    const dying = await createLimiter({ store: { redis: client, timeout: '100ms' }, rules: [rule] })
    await hammer([dying], () => leasesOf(dying).permits > 0)
    client.disconnect()
    closing.push(() => dying.close())
    const remaining = async () => (await limiters[0]!.peek(ann)).decisions[0]!.remaining
    await expect.poll(remaining, { timeout: 2500, interval: 50 }).toBe(1000)
  })

  it('permits held in advance are given back when the limit is lowered, and no call beyond the new limit passes', async () => {
    const rule = { id: 'each', by: 'account', limit: '5000/h', algorithm: 'fixed-window' } as const
    const center = new RulesCenter(rule)
    const { limiters } = await start([], 2, center.options)
    const before = await hammer(limiters, () => limiters.every(limiter => leasesOf(limiter).permits > 0))
    const limit = before + 50
    await center.change(limiters, { ...rule, limit: `${limit}/h` })
    const after = await hammer(limiters, within(500))
    expect(after).toBeLessThanOrEqual(50)
    expect(after).toBeGreaterThan(0)
  })

  it('permits of a caller that another process blocks or resets are gone within a second', async () => {
    const rule = { id: 'each', by: 'account', limit: '100000/h', block: 'manual' } as const
    const { limiters } = await start([rule])
    const [one, other] = limiters as [Limiter, Limiter]
    const isLate = within(10_000)
    await hammer([one], () => leasesOf(one).decided > 100 || isLate())
    expect(leasesOf(one).decided).toBeGreaterThan(100)
    await other.block('each', 'ann', '1h')
    await pause(1000)
    expect((await one.check(ann)).allowed).toBe(false)
    await other.unblock('each', 'ann')
    await other.reset('each', 'ann')
    await pause(1200)
    expect((await other.peek(ann)).decisions[0]!.remaining).toBeGreaterThan(99_000)
  })

  it('permits that a refunded call had used are free again', async () => {
    const { limiters } = await start([{ id: 'each', by: 'account', limit: '5000/h', countWhen: 'failed' }], 1)
    const [limiter] = limiters as [Limiter]
    for (let i = 0; i < 2000; i++) {
      const verdict = await limiter.check(ann)
      await (verdict as { end(outcome: { status: number }): unknown }).end({ status: i % 4 === 0 ? 500 : 200 })
      if (i % 100 === 0) await pause(5)
    }
    expect(leasesOf(limiter).decided).toBeGreaterThan(500)
    await pause(400)
    expect((await limiter.peek(ann)).decisions[0]!.remaining).toBe(4500)
  })

  it('permits of a window that has not begun, after a reset, are not counted as written by another program', async () => {
    const rule = { id: 'first', by: 'account', limit: '400/h', algorithm: 'fixed-window', align: 'first-call' } as const
    const { limiters } = await start([rule])
    const warnings: string[] = []
    const note = ({ name, message }: Error): void => void warnings.push(`${name}: ${message}`)
    process.on('warning', note)
    const [one, other] = limiters as [Limiter, Limiter]
    for (const quietMs of [5, 20, 60, 150, 400, 900]) {
      await Promise.all(Array.from({ length: 60 }, () => one.check(ann)))
      await pause(20)
      await Promise.all(Array.from({ length: 60 }, () => one.check(ann)))
      await other.reset('first', ann)
      await pause(quietMs)
    }
    process.off('warning', note)
    expect(warnings.filter(text => text.includes('reservations'))).toEqual([])
  })

  it('permits held in advance are ignored, and reported, if another program has written to them', async () => {
    const limit = 10_000_000
    const rule = { id: 'each', by: 'account', limit: `${limit}/h`, algorithm: 'fixed-window' } as const
    const { redis, limiters } = await start([rule], 1)
    const warnings: string[] = []
    const listen = (warning: Error & { code?: string }) => warnings.push(warning.code ?? '')
    process.on('warning', listen)
    // three numbers as msgpack has them
    const huge = Buffer.alloc(27, 0xcb)
    for (const [i, number] of [1e300, 1e12, Number.MAX_VALUE].entries()) huge.writeDoubleBE(number, i * 9 + 1)
    let admitted = 0
    try {
      admitted += await hammer(limiters, () => leasesOf(limiters[0]!).permits > 0)
      const isOver = within(5000)
      for (let i = 0; !warnings.includes('DIANA_RESERVATION_IGNORED') && !isOver(); i++) {
        const holders = await redis.client.keys('diana:each:*}:*')
        for (const name of holders) await redis.client.set(name, i % 2 === 0 ? huge : 'garbage')
        admitted += await hammer(limiters, within(50))
      }
      expect(warnings).toContain('DIANA_RESERVATION_IGNORED')
    } finally {
      process.off('warning', listen)
    }
    // what the holder had used counts all the same, as soon as its reservation has ended
    await pause(2000)
    expect((await limiters[0]!.peek(ann)).decisions[0]!.remaining).toBeLessThanOrEqual(limit - admitted)
  })
})
