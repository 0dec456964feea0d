import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createLimiter } from '../../packages/limiter/src/create/create-limiter.ts'
import { MapStore } from '../../packages/limiter/src/testing/stores/map-store.ts'
import { useRedis } from '../helpers/servers/use-redis.ts'

const redis = useRedis()

type Kind = 'memory' | 'Redis' | 'ledgers'
const kinds: Kind[] = ['memory', 'Redis', 'ledgers']
let rules = 0

/** A limiter whose time is the test's, also in Redis, with one rule of its own. */
async function start(kind: Kind, options: { limit?: string; block?: string; algorithm?: string } = {}) {
  const time = { ms: 1_800_000_000_000 }
  const rule = `rule-${++rules}`
  const limiter = await createLimiter({
    clock: () => time.ms,
    rules: [{ id: rule, by: 'account', limit: '2/10s', block: '6s', algorithm: 'fixed-window', ...options } as never],
    ...(kind === 'Redis' ? { store: { redis: redis.server.client, timeout: '5s' } } : {}),
    ...(kind === 'ledgers' ? { store: new MapStore() } : {}),
  })
  redis.closeLater(limiter)
  const settled = async (account: string) => {
    // a block is set by a message of its own, which is answered before what is asked later: in ledgers, of the same caller
    if (kind !== 'memory') await limiter.peek(of(kind === 'Redis' ? 'nobody' : account))
  }
  const check = async (account = 'ann') => {
    const verdict = await limiter.check(of(account))
    await settled(account)
    return verdict
  }
  return { limiter, time, check, rule }
}

const of = (account: string) => ({ method: 'GET', path: '/', attributes: { account } })

describe.each(kinds)('a block kept in %s', kind => {
  it('a block ends at its first announced moment, however often the caller calls meanwhile', async () => {
    const { time, check } = await start(kind)
    for (const allowed of [true, true, false]) expect((await check()).allowed).toBe(allowed)
    const table: [atMs: number, retryAfterMs: number][] = []
    for (const atMs of [1000, 2500, 4000, 5999]) {
      time.ms = 1_800_000_000_000 + atMs
      const verdict = await check()
      expect(verdict).toMatchObject({ allowed: false })
      table.push([atMs, verdict.retryAfterMs])
    }
    // the window of the limit lasts longer than the block
    expect(table).toEqual([
      [1000, 9000],
      [2500, 7500],
      [4000, 6000],
      [5999, 4001],
    ])
    time.ms = 1_800_000_000_000 + 10_000
    expect((await check()).allowed).toBe(true)
  })

  it('a block is not extended by calls that are refused while it lasts, beyond the end of the window', async () => {
    const { time, check } = await start(kind, { limit: '2/4s' })
    for (let i = 0; i < 3; i++) await check()
    for (const atMs of [1000, 3999]) {
      time.ms = 1_800_000_000_000 + atMs
      expect(await check()).toMatchObject({ allowed: false, reason: 'blocked', retryAfterMs: 6000 - atMs })
    }
    time.ms = 1_800_000_000_000 + 5999
    expect(await check()).toMatchObject({ allowed: false, retryAfterMs: 1 })
    time.ms = 1_800_000_000_000 + 6000
    expect((await check()).allowed).toBe(true)
  })

  it('a block is over after unblock: as many calls pass as the limit allows', async () => {
    const { limiter, check, rule } = await start(kind)
    for (let i = 0; i < 3; i++) await check()
    await limiter.unblock(rule, 'ann')
    const allowed = []
    for (let i = 0; i < 3; i++) allowed.push((await check()).allowed)
    expect(allowed).toEqual([true, true, false])
  })

  it('a block is listed with its caller and its end, whether a rule or the application set it', async () => {
    const { limiter, time, check, rule } = await start(kind)
    for (let i = 0; i < 3; i++) await check('ann')
    await limiter.block(rule, 'bob', '1m')
    await check('cid')
    time.ms += 1000
    const blocks = await limiter.blocks()
    expect(blocks.toSorted((a, b) => a.leftMs - b.leftMs)).toEqual([
      { rule, key: 'ann', leftMs: 5000 },
      { rule, key: 'bob', leftMs: 59_000 },
    ])
    await limiter.unblock(rule, 'ann')
    expect((await limiter.blocks()).map(({ key }) => key)).toEqual(['bob'])
    time.ms += 60_000
    expect(await limiter.blocks()).toEqual([])
  })

  it('random calls, blocks and unblocks are answered as a simple model predicts', async () => {
    const step = fc.oneof(
      { weight: 6, arbitrary: fc.record({ do: fc.constant('call' as const) }) },
      {
        weight: 3,
        arbitrary: fc.record({ do: fc.constant('pass' as const), ms: fc.constantFrom(1, 999, 3000, 7000) }),
      },
      { weight: 1, arbitrary: fc.record({ do: fc.constant('block' as const), ms: fc.constantFrom(500, 8000) }) },
      { weight: 1, arbitrary: fc.record({ do: fc.constant('unblock' as const) }) },
    )
    const { limiter, time, check, rule } = await start(kind)
    let walk = 0
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), async steps => {
        const account = `walker-${++walk}`
        let [used, windowEnd, blockedUntil] = [0, 0, 0]
        for (const now of steps) {
          if (now.do === 'pass') time.ms += now.ms
          if (now.do === 'unblock') {
            await limiter.unblock(rule, account)
            ;[used, blockedUntil] = [0, 0]
          }
          if (now.do === 'block') {
            await limiter.block(rule, account, now.ms)
            blockedUntil = Math.max(blockedUntil, time.ms + now.ms)
          }
          if (now.do !== 'call') continue
          if (time.ms >= windowEnd) used = 0
          const isBlocked = blockedUntil > time.ms
          const isOver = used >= 2
          const verdict = await check(account)
          expect(verdict.allowed).toBe(!isBlocked && !isOver)
          if (verdict.allowed) {
            used++
            windowEnd = (Math.floor(time.ms / 10_000) + 1) * 10_000
            continue
          }
          if (!isBlocked) blockedUntil = time.ms + 6000
          const retryAt = Math.max(blockedUntil, isOver ? windowEnd : 0)
          expect(verdict.retryAfterMs).toBe(retryAt - time.ms)
        }
      }),
      { numRuns: kind === 'Redis' ? 30 : 200 },
    )
  })
})

it('calls that are refused together set one block, which begins with the first', async () => {
  const { limiter, time, rule } = await start('Redis')
  await Promise.all(Array.from({ length: 20 }, () => limiter.check(of('ann'))))
  time.ms += 5000
  await Promise.all(Array.from({ length: 20 }, () => limiter.check(of('ann'))))
  expect(await limiter.blocks()).toEqual([{ rule, key: 'ann', leftMs: 1000 }])
})

describe('a block of a plain value', () => {
  it.each([
    ['host', 'API.example.com:443', { host: 'api.example.com' }],
    ['method', 'get', { method: 'HEAD' }],
    ['ip', '2001:DB8:0::1', { ip: '2001:db8::2' }],
    ['resource', '/orders/:id', { resource: '/orders/:id' }],
  ])('a rule by %s blocks the value %s in every spelling', async (by, value, call) => {
    const limiter = await createLimiter({ rules: [{ id: 'one', by, limit: '9/m', block: '1m' }] })
    await limiter.block('one', value)
    expect((await limiter.check({ method: 'GET', path: '/', ...call })).allowed).toBe(false)
    await limiter.close()
  })

  it('a rule blocks an address that identify reads from a header', async () => {
    const identify = { ip: ['header:x-real-ip'] }
    const limiter = await createLimiter({ identify, rules: [{ id: 'one', by: 'ip', limit: '9/m', block: '1m' }] })
    await limiter.block('one', '203.0.113.9')
    const call = { method: 'GET', path: '/', ip: '10.0.0.1', headers: { 'x-real-ip': '203.0.113.9' } }
    expect((await limiter.check(call)).allowed).toBe(false)
    await limiter.close()
  })
})
