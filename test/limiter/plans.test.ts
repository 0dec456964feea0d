import { afterEach, describe, expect, it } from 'vitest'
import { adminOf } from '../../packages/limiter/src/admin/limiter-admin.ts'
import { createLimiter } from '../../packages/limiter/src/create/create-limiter.ts'
import type { Limiter, RuleOptions } from '../../packages/limiter/src/index.ts'
import { MapStore } from '../../packages/limiter/src/testing/stores/map-store.ts'
import { type RedisServer, startRedis } from '../helpers/servers/redis-server.ts'

const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const START_MS = 1_794_744_000_000
let redis: RedisServer | undefined

const places = ['memory', 'Redis', 'ledgers', 'memory while Redis is away'] as const

async function limiterOf(where: (typeof places)[number], rule: object, clock: () => number): Promise<Limiter> {
  if (where === 'Redis') {
    redis = await startRedis()
    closing.push(() => redis!.close())
  }
  const limiter = await createLimiter({
    clock,
    ...(where === 'memory while Redis is away' && { store: { redis: 'redis://127.0.0.1:1', timeout: '5ms' } }),
    ...(where === 'ledgers' && { store: new MapStore() }),
    ...(where === 'Redis' && { store: { redis: `redis://${redis!.authority}`, timeout: '5s' } }),
    identify: { account: ['header:x-account'] },
    rules: [{ id: 'per-account', by: 'account', ...rule } as RuleOptions],
  })
  closing.push(() => limiter.close())
  return limiter
}

const callBy = (account: string, plan?: string) => ({
  method: 'GET',
  path: '/',
  headers: { 'x-account': account, ...(plan && { 'x-plan': plan }) },
})

/** How many of so many calls pass. */
async function passing(limiter: Limiter, calls: number, plan?: string, account = 'ann'): Promise<number> {
  let passed = 0
  for (let call = 0; call < calls; call++) if ((await limiter.check(callBy(account, plan))).allowed) passed++
  return passed
}

const values = { free: '10/h', pro: '50/h', suspended: '0/h' }
const limit = { by: 'header:x-plan', values, default: '5/h' }

describe.each(places)('a limit that depends on the caller, counted in %s', where => {
  describe.each(['sliding-window', 'sliding-log', 'fixed-window', 'token-bucket'])('by %s', algorithm => {
    it('an upgrade keeps what was used and takes effect at once, and a downgrade frees nothing', async () => {
      let nowMs = START_MS
      const limiter = await limiterOf(where, { limit, algorithm }, () => nowMs)
      expect(await passing(limiter, 20, 'free')).toBe(10)
      expect(await passing(limiter, 100, 'pro')).toBe(40)
      expect(await passing(limiter, 5, 'free')).toBe(0)
      expect(await passing(limiter, 5)).toBe(0)
      expect(await passing(limiter, 5, 'unknown')).toBe(0)
      nowMs += 1000
      expect(await passing(limiter, 5, 'pro')).toBe(0)
      expect(await passing(limiter, 20, 'free', 'bob')).toBe(10)
      expect(await passing(limiter, 20, undefined, 'carl')).toBe(5)
      expect(await passing(limiter, 20, 'suspended', 'carl')).toBe(0)
      nowMs += 2 * 3_600_000
      expect(await passing(limiter, 100, 'pro')).toBe(50)
      const { allowed, retryAfterMs } = await limiter.check(callBy('ann', 'suspended'))
      expect([allowed, retryAfterMs]).toEqual([false, Number.POSITIVE_INFINITY])
    })
  })
})

const url = () => `redis://${redis!.authority}`
const identify = { account: ['header:x-account'] }

/** Resolves as soon as a limit is in force. */
async function untilLimit(limiter: Limiter, limit: number, withinMs: number): Promise<void> {
  const until = Date.now() + withinMs
  for (;;) {
    const { decisions } = await limiter.peek(callBy('ann'))
    if (decisions[0]?.limit === limit) return
    if (Date.now() > until) throw new Error(`the limit is ${decisions[0]?.limit}, not ${limit}`)
    await new Promise(resolve => setTimeout(resolve, 20))
  }
}

describe('limits of single callers', () => {
  it('limits of single callers come from a function, which may be async, and the default counts until it has answered', async () => {
    const asked: unknown[] = []
    const from = async (caller: Readonly<Record<string, string>>) => {
      asked.push(caller)
      return caller.account === 'ann' ? '7/h' : undefined
    }
    const limiter = await createLimiter({
      identify,
      rules: [{ id: 'each', by: 'account', limit: { from, default: '3/h' } }],
    })
    closing.push(() => limiter.close())
    expect(await passing(limiter, 1)).toBe(1)
    await untilLimit(limiter, 7, 1000)
    expect([await passing(limiter, 10), await passing(limiter, 10, undefined, 'bob')]).toEqual([6, 3])
    const [explained] = await limiter.explain(callBy('ann'))
    expect([explained?.limitFrom, asked[0]]).toEqual(['function', { account: 'ann' }])
  })

  it('limits of single callers come from Redis, and an override is in force in all processes within a second, and after a restart', async () => {
    redis = await startRedis()
    closing.push(() => redis!.close())
    await redis.client.set('limits:ann', '{"limit":"8/h"}')
    const rule = {
      id: 'each',
      by: 'account',
      limit: { from: 'redis:limits:{account}', overrides: true, default: '3/h' },
    }
    const start = async () => {
      const limiter = await createLimiter({ identify, store: { redis: url(), timeout: '5s' }, rules: [rule] })
      closing.push(() => limiter.close())
      return limiter
    }
    const [one, other] = [await start(), await start()]
    await Promise.all([untilLimit(one, 8, 2000), untilLimit(other, 8, 2000)])
    const until = Date.now() + 3_600_000
    await adminOf(one).setOverride('each', 'ann', { limit: '20/h', until, setBy: 'eve', reason: 'launch' })
    await Promise.all([untilLimit(one, 20, 1000), untilLimit(other, 20, 1000)])
    expect(await adminOf(other).overrides()).toEqual([
      expect.objectContaining({ rule: 'each', key: 'ann', limit: '20/h', until, setBy: 'eve', reason: 'launch' }),
    ])
    expect((await passing(one, 15)) + (await passing(other, 15))).toBe(20)
    const later = await start()
    await untilLimit(later, 20, 2000)
    const [explained] = await later.explain(callBy('ann'))
    expect(explained?.limitFrom).toBe(`override until ${new Date(until).toISOString()}`)
    expect(await adminOf(later).removeOverride('each', 'ann')).toBe(true)
    await Promise.all([untilLimit(one, 8, 1000), untilLimit(later, 8, 1000)])
    expect(await passing(one, 5)).toBe(0)
  })

  it.each([
    ['nothing', 'rule "each": limit is missing: write one such as 5000/h', { limit: '' }],
    ['garbage', 'rule "each": limit "lots", which is no limit: write 5000/h', { limit: 'lots' }],
    ['a moment that is past', 'until is past: give a moment to come, or leave it out', { limit: '5/h', until: 1 }],
  ])('limits of single callers are not set to %s', async (_, message, options) => {
    const limit = { overrides: true, default: '3/h' }
    const limiter = await createLimiter({ identify, rules: [{ id: 'each', by: 'account', limit }] })
    closing.push(() => limiter.close())
    await expect(adminOf(limiter).setOverride('each', 'ann', options)).rejects.toThrow(message)
  })
})

describe('a limit that depends on the caller', () => {
  it.each([
    [
      'a value that is no limit',
      { limit: { ...limit, values: { pro: 'lots' } } },
      'limit.values.pro must be <count>/<period>, not "lots"',
    ],
    [
      'a value that cannot be counted',
      { algorithm: 'sliding-log', limit: { ...limit, values: { pro: '5000/h' } } },
      'limit.values.pro keeps every call, so at most 1000 per period',
    ],
    ['no default', { limit: { by: 'header:x-plan', values } }, 'limit.default is missing: write a count and a period'],
    ['an unknown dimension', { limit: { ...limit, by: 'plan' } }, 'limit.by "plan" is not a dimension'],
    [
      'values without by',
      { limit: { values, default: '5/h' } },
      'limit.values needs by, the dimension that has them: by: jwt:plan',
    ],
    [
      'by without values',
      { limit: { by: 'header:x-plan', default: '5/h' } },
      'limit.by needs values: write values: { pro: 5000/h }',
    ],
    [
      'a caller who is not counted',
      { limit: { from: 'redis:limits:{user}', default: '5/h' } },
      'limit.from names {user}, and the rule does not count by it: write {account}',
    ],
    [
      'a source of no kind',
      { limit: { from: 'ftp://x/{account}', default: '5/h' } },
      'limit.from must be redis:<key> or a URL with the caller in braces',
    ],
    [
      'a host that callers choose: all of it',
      { limit: { from: 'https://{account}/limits', default: '5/h' } },
      'limit.from must not let callers choose the host: write them into the path',
    ],
    [
      'a host that callers choose: a part',
      { limit: { from: 'http://plans.{account}:80/x', default: '5/h' } },
      'limit.from must not let callers choose the host: write them into the path',
    ],
    [
      'a host that callers choose: what stands before it',
      { limit: { from: 'https://{account}@plans/x', default: '5/h' } },
      'limit.from must not let callers choose the host: write them into the path',
    ],
    [
      'a password in the address',
      { limit: { from: 'https://eve:secret@plans/{account}', default: '5/h' } },
      'limit.from must not hold credentials',
    ],
    [
      'nothing to depend on',
      { limit: { default: '5/h' } },
      'limit depends on nothing: add by and values, from, or overrides: true',
    ],
    ['nobody to have it', { by: [], limit }, 'limit needs callers to have limits: add by, such as by: account'],
    [
      'a plan within a plan',
      { limit: { ...limit, values: { pro: { limit } } } },
      'limit.values.pro.limit must be <count>/<period>, not a map',
    ],
  ])(
    'an invalid limit that depends on the caller is refused with one line and the remedy: %s',
    async (_, rule, message) => {
      const rules = [{ id: 'per-account', by: 'account', ...rule } as RuleOptions]
      const failure = await createLimiter({ identify, rules }).then(
        limiter => limiter.close(),
        error => error as Error,
      )
      expect((failure as Error).message).toContain(message)
    },
  )
})
