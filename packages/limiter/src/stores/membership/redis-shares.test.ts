import { type RedisServer, startRedis } from '@test/servers/redis-server'
import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { SendCommand } from '../redis/send-command.ts'
import { RedisShares } from './redis-shares.ts'
import { ShareBook, type ShareClaim } from './shares.ts'

let server: RedisServer
const send: SendCommand = ([command, ...args]) => server.client.call(command!, ...args)
const claim: ShareClaim = { sequence: 1, seat: 0, size: 0, leastSize: 1, mayGrow: true, memberMs: 5000 }

beforeAll(async () => {
  server = await startRedis()
  await server.client.config('SET', 'appendonly', 'no')
}, 30_000)
afterAll(() => server.close())
beforeEach(() => server.client.flushall())

const step = fc.record({
  who: fc.nat(5),
  isStale: fc.integer({ min: 0, max: 9 }).map(n => n === 0),
  seat: fc.nat(6),
  size: fc.nat(6),
  leastSize: fc.integer({ min: 1, max: 3 }),
  mayGrow: fc.boolean(),
  passMs: fc.oneof(fc.integer({ min: 0, max: 1500 }), fc.constantFrom(4000, 20_000, -3000)),
  what: fc.constantFrom('claim', 'claim', 'claim', 'claim', 'claim as granted', 'claim as granted', 'leave'),
})

describe('the shares in Redis', () => {
  it('shares in Redis are granted exactly as by the in-process implementation', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 40 }), async steps => {
        await server.client.flushall()
        let now = 1_000_000
        const book = new ShareBook()
        const shares = new RedisShares(send, { name: 'test{fleet}', now: () => now })
        const granted = new Map<string, { seat: number; size: number }>()
        for (const [i, { who, isStale, passMs, what, ...rest }] of steps.entries()) {
          now += passMs
          const id = `process-${who}`
          if (what === 'leave') {
            book.leave(id)
            await shares.leave(id)
            continue
          }
          const known = what === 'claim as granted' ? granted.get(id) : undefined
          const { seat, size, leastSize, mayGrow } = { ...rest, ...known }
          const sequence = isStale ? 0 : i + 1
          const asked = { sequence, seat, size, leastSize, mayGrow, memberMs: 5000 }
          const grant = book.claim(id, asked, now)
          expect(await shares.claim(id, asked)).toEqual(grant)
          if (grant?.isGranted) granted.set(id, grant)
        }
        expect(await shares.count()).toBe(book.size)
      }),
      { numRuns: 60 },
    )
  })

  it('the shares in Redis live no longer than a day, and survive what others write into their keys', async () => {
    const shares = new RedisShares(send, { name: 'test{fleet}' })
    await shares.claim('one', claim)
    const keys = await server.client.keys('*')
    expect(keys.every(key => key.startsWith('test{fleet}:'))).toBe(true)
    for (const key of keys) expect(await server.client.pttl(key), key).toBeGreaterThan(86_000_000)
    for (const key of keys) await server.client.set(key, 'junk')
    expect(await shares.claim('one', { ...claim, sequence: 2 })).toEqual({ seat: 0, size: 1, isGranted: true })
  })

  it('the shares in Redis are reported in one line if what answers is not Redis', async () => {
    const shares = new RedisShares(async () => 'nonsense', { name: 'test{fleet}' })
    await expect(shares.claim('one', claim)).rejects.toThrow('Redis answered something other than a share')
  })

  it('cost Redis about the same for a heartbeat in a fleet of 3,000 as in a fleet of 3', async () => {
    const shares = new RedisShares(send, { name: 'test{fleet}' })
    const member = (i: number) => ({ ...claim, seat: i, size: 3000 })
    const usEach = async (sequence: number): Promise<number> => {
      await server.client.config('RESETSTAT')
      for (let i = 0; i < 100; i++) await shares.claim('process-0', { ...member(0), sequence: sequence + i })
      const stats = await server.client.info('commandstats')
      return Number(/cmdstat_evalsha:.*usec_per_call=([\d.]+)/.exec(stats)![1])
    }
    for (let i = 0; i < 3; i++) await shares.claim(`process-${i}`, member(i))
    const few = await usEach(2)
    await Promise.all(Array.from({ length: 3000 }, (_, i) => shares.claim(`process-${i + 3}`, member(i + 3))))
    expect(await usEach(1000)).toBeLessThan(few * 4)
  })
})
