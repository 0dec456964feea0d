import { createHmac } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import type { Call } from '../../packages/limiter/src/call.ts'
import { createLimiter, type LimiterOptions } from '../../packages/limiter/src/create/create-limiter.ts'
import type { Limiter } from '../../packages/limiter/src/limiter.ts'
import { type RedisServer, startRedis } from '../helpers/servers/redis-server.ts'

const start = 1_794_712_345_678
let now = start
const limiters: Limiter[] = []

async function make(options: LimiterOptions): Promise<Limiter> {
  now = start
  const limiter = await createLimiter({ clock: () => now, ...options })
  limiters.push(limiter)
  return limiter
}
afterAll(async () => {
  for (const limiter of limiters) await limiter.close()
})

const from = (ip: string, more: Partial<Call> = {}): Call => ({ method: 'POST', path: '/login', ip, ...more })
const left = async (limiter: Limiter, call: Call) => (await limiter.peek(call)).decisions.map(one => one.remaining)
const rules = async (limiter: Limiter, call: Call) => (await limiter.peek(call)).decisions.map(one => one.rule)

describe('a call that gives a rule several values to count by', () => {
  const twice = from('192.0.2.1', { query: 'tenant=ann&tenant=bob' })

  it('a call that gives a rule several values to count by is refused by the rule with 400 and charged nowhere', async () => {
    const limiter = await make({
      rules: [
        { id: 'all', limit: '5/m' },
        { id: 'each', by: ['ip', 'query:tenant'], limit: '5/m', missing: 'skip', answer: { status: 429 } },
      ],
    })
    for (const verdict of [limiter.decide(twice), await limiter.peek(twice), await limiter.check(twice, { cost: 3 })]) {
      expect(verdict).toMatchObject({ allowed: false, reason: 'ambiguous', rule: 'each', answer: { status: 400 } })
    }
    expect(await left(limiter, from('192.0.2.1', { query: 'tenant=ann' }))).toEqual([5, 5])
  })

  it('an ambiguous call passes shadow rules, rules that exempt it, and rules by attributes', async () => {
    const limiter = await make({
      identify: { tenant: ['query:tenant'] },
      rules: [
        { id: 'watched', by: 'query:tenant', limit: '5/m', whenFull: 'shadow' },
        { id: 'let-off', by: 'query:tenant', limit: '5/m', allow: '192.0.2.1' },
        { id: 'told', by: 'tenant', limit: '5/m' },
      ],
    })
    expect(limiter.decide(twice)).toMatchObject({ allowed: false, rule: 'told' })
    expect(limiter.decide({ ...twice, attributes: { tenant: 'ann' } })).toMatchObject({ allowed: true })
  })
})

describe('lists of callers', () => {
  it('a deny list refuses at once and charges no counter', async () => {
    const limiter = await make({
      allow: '10.0.0.0/8',
      deny: { ip: ['203.0.113.0/24', '10.6.6.6'], account: 'mallory' },
      rules: [{ id: 'all', limit: '5/m', answer: { status: 429 } }],
    })
    const denied = [
      from('203.0.113.9'),
      from('::ffff:203.0.113.9'),
      from('10.6.6.6'),
      from('192.0.2.1', { attributes: { account: 'mallory' } }),
    ]
    for (const call of denied) {
      for (const verdict of [limiter.decide(call), await limiter.peek(call), limiter.decide(call, { cost: 0 })]) {
        expect(verdict).toMatchObject({ allowed: false, reason: 'denied', answer: { status: 403 }, decisions: [] })
        expect(verdict).toMatchObject({ rule: undefined, retryAfterMs: Number.POSITIVE_INFINITY, holds: false })
      }
    }
    expect(await limiter.explain(denied[0]!)).toEqual([])
    expect(await left(limiter, from('192.0.2.1'))).toEqual([5])
    for (let i = 0; i < 9; i++) expect(limiter.decide(from('10.0.0.1'))).toMatchObject({ allowed: true, decisions: [] })
    expect(await left(limiter, from('192.0.2.1'))).toEqual([5])
  })

  it('an allow list exempts no ambiguous call, and a deny list refuses every one', async () => {
    const limiter = await make({
      allow: { 'query:plan': ['gold'] },
      deny: { 'query:tenant': ['mallory'] },
      rules: [{ id: 'all', limit: '5/m' }],
    })
    const asks = (query: string) => limiter.decide(from('192.0.2.1', { query }))
    for (const query of ['tenant=mallory&tenant=ann', 'tenant=ann&tenant=mallory', 'tenant=ann&Tenant[]=mallory']) {
      expect(asks(query)).toMatchObject({ allowed: false, reason: 'denied', answer: { status: 403 } })
    }
    expect(asks('plan=gold')).toMatchObject({ decisions: [] })
    expect(asks('plan=gold&plan=free')).toMatchObject({ decisions: [{ rule: 'all' }] })
  })

  it('allow and deny lists of a rule affect that rule alone', async () => {
    const limiter = await make({
      rules: [
        { id: 'all', limit: '5/m' },
        { id: 'login', match: { path: '/login' }, by: 'ip', limit: '2/m', allow: ['10.0.0.0/8'], deny: '203.0.113.9' },
        { id: 'watched', limit: '2/m', whenFull: 'shadow', deny: '198.51.100.1' },
      ],
    })
    expect(await limiter.check(from('203.0.113.9'))).toMatchObject({ allowed: false, reason: 'denied', rule: 'login' })
    expect(await rules(limiter, from('203.0.113.9', { path: '/' }))).toEqual(['all', 'watched'])
    expect(await rules(limiter, from('10.0.0.1'))).toEqual(['all', 'watched'])
    expect((await limiter.check(from('198.51.100.1'))).allowed).toBe(true)
    expect(await left(limiter, from('192.0.2.1'))).toEqual([4, 2, 1])
  })

  it('a denied caller does not wait in the queue', async () => {
    const limiter = await make({
      deny: '203.0.113.9',
      rules: [{ id: 'busy', limit: 1, algorithm: 'concurrency', whenFull: 'wait' }],
    })
    const first = await limiter.check(from('192.0.2.1'))
    const second = limiter.check(from('192.0.2.2'))
    expect(limiter.decide(from('203.0.113.9'))).toMatchObject({ reason: 'denied' })
    first.end()
    ;(await second).end()
  })
})

describe('an explanation', () => {
  it('an explanation says that a caller is on a list, and what that means', async () => {
    const limiter = await make({
      allow: '10.0.0.0/8',
      deny: '203.0.113.9',
      rules: [
        { id: 'all', limit: '5/m' },
        { id: 'login', by: 'ip', limit: '2/m', allow: '192.0.2.7', deny: '192.0.2.8' },
      ],
    })
    const reasonsFor = async (ip: string) => {
      const { caller } = await limiter.explain(from(ip))
      return caller.map(({ is, rule, means }) => [is, rule, means])
    }
    expect(await reasonsFor('10.1.2.3')).toEqual([
      ['allowed', undefined, 'on the allow list: every call passes, and no rule counts it'],
    ])
    expect(await reasonsFor('203.0.113.9')).toEqual([
      ['denied', undefined, expect.stringContaining('on the deny list: every call is refused with status 403')],
    ])
    expect(await reasonsFor('192.0.2.7')).toEqual([
      ['allowed', 'login', expect.stringContaining('on the allow list of rule "login": this rule neither counts')],
    ])
    expect(await reasonsFor('192.0.2.8')).toEqual([
      ['denied', 'login', expect.stringContaining('deny list of rule "login"')],
    ])
    expect(await reasonsFor('192.0.2.9')).toEqual([])
    expect((await limiter.explain(from('192.0.2.7'))).map(({ rule }) => rule)).toEqual(['all'])
  })

  it('an explanation says that a caller is blocked, by which rule and for how long', async () => {
    const limiter = await make({ rules: [{ id: 'login', by: 'ip', limit: '2/m', block: '10m' }] })
    for (let i = 0; i < 3; i++) await limiter.check(from('192.0.2.1'))
    now += 60_000
    const explained = await limiter.explain(from('192.0.2.1'))
    expect(explained.caller).toEqual([
      {
        is: 'blocked',
        rule: 'login',
        leftMs: 540_000,
        means: 'blocked by rule "login" for another 9m: every call that this rule is about is refused until then',
      },
    ])
    expect(explained.map(({ rule }) => rule)).toEqual(['login'])
  })
})

describe('a rule about callers who lack a dimension', () => {
  it('a rule about callers who lack a dimension skips them, counts them together, or by address', async () => {
    const by = ['account', 'header:x-shop']
    const limiter = await make({
      rules: [
        { id: 'skip', by, limit: '5/m', missing: 'skip' },
        { id: 'shared', by: 'account', limit: '5/m', missing: 'shared' },
        { id: 'address', by: 'header:x-shop', limit: '5/m', missing: 'address' },
      ],
    })
    const whole = { attributes: { account: 'u1' }, headers: { 'x-shop': 's' } }
    expect(await rules(limiter, from('192.0.2.1', whole))).toEqual(['skip', 'shared', 'address'])
    expect(await rules(limiter, from('192.0.2.1', { attributes: { account: 'u1' } }))).toEqual(['shared', 'address'])
    await limiter.check(from('192.0.2.1'))
    await limiter.check(from('192.0.2.2'))
    expect(await left(limiter, from('192.0.2.1'))).toEqual([3, 4])
    expect(await left(limiter, from('192.0.2.1', whole))).toEqual([5, 5, 5])
  })
})

describe('functions instead of names', () => {
  it('functions may identify the caller and set the cost, and one that throws is ignored', async () => {
    const limiter = await make({
      identify: { account: [call => call.headers?.session as string, 'header:x-account'], tenant: () => 42 },
      rules: [
        { id: 'account', by: 'account', limit: '9/m' },
        { id: 'first', by: [call => call.path.split('/')[1]!.at(99)!.toString(), 'tenant'], limit: '9/m' },
        { id: 'sized', limit: '9/m', cost: call => Number(call.headers?.size) },
      ],
    })
    const call = from('192.0.2.1', { headers: { session: 's1', 'x-account': 'u1', size: '4' } })
    const { allowed, decisions } = await limiter.check(call)
    expect([allowed, ...decisions.map(one => one.remaining)]).toEqual([true, 8, 8, 5])
    const explained = await limiter.explain(call)
    expect(explained.map(({ key }) => key)).toEqual([
      { account: { countedBy: 'value', value: 's1' } },
      { 'function:first.by.0': { countedBy: 'absence', value: '' }, tenant: { countedBy: 'value', value: '42' } },
      {},
    ])
    expect(await left(limiter, from('192.0.2.9', { headers: { 'x-account': 's1', size: '-1' } }))).toEqual([8, 8, 5])
    await limiter.check(from('192.0.2.1', { headers: { size: 'much' } }))
    expect((await left(limiter, call))[2]).toBe(4)
  })

  it('functions may be used in addRule, and not in a rule file', async () => {
    const limiter = await make({ rules: [] })
    limiter.addRule({ id: 'late', by: call => call.ip, limit: '9/m', cost: () => 0 })
    expect((await limiter.check(from('192.0.2.1'))).decisions[0]!.remaining).toBe(9)
    await expect(make({ rules: [{ id: 'a', by: 'function:late.by', limit: '1/s' }] })).rejects.toThrow(
      'not a dimension',
    )
  })
})

describe('a token', () => {
  const key = 'a secret of thirty-two bytes, or more'
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const bearer = (sub: string, secret = key) => {
    const signed = `${part({ alg: 'HS256' })}.${part({ sub, exp: start / 1000 + 60 })}`
    const signature = createHmac('sha256', secret).update(signed).digest('base64url')
    return { headers: { authorization: `Bearer ${signed}.${signature}` } }
  }

  it('a valid token identifies the caller; an invalid one gets no count of its own', async () => {
    const limiter = await make({
      jwt: { key },
      identify: { account: 'jwt:sub' },
      rules: [{ id: 'account', by: 'account', limit: '9/m' }],
    })
    await limiter.check(from('192.0.2.1', bearer('u1')))
    await limiter.check(from('192.0.2.2', bearer('u1')))
    expect(await left(limiter, from('192.0.2.3', bearer('u1')))).toEqual([7])
    await limiter.check(from('192.0.2.1', bearer('u2', `${key}!`)))
    await limiter.check(from('192.0.2.1', bearer('u3', `${key}!`)))
    expect(await left(limiter, from('192.0.2.1'))).toEqual([7])
    now = start + 60_000
    expect((await limiter.explain(from('192.0.2.1', bearer('u1'))))[0]!.key.account!.countedBy).toBe('address')
  })

  it('jwt without a key is a mistake, and so is an unusable key', async () => {
    const rules = [{ id: 'account', by: 'jwt:sub', limit: '9/m' }]
    await expect(make({ rules })).rejects.toThrow('finds nothing without jwt')
    await expect(make({ rules, jwt: {} })).rejects.toThrow('needs a key to verify tokens by')
    await expect(make({ rules, jwt: { key, verified: true } })).rejects.toThrow('not both')
    await expect(make({ rules, jwt: { key: 'short' } })).rejects.toThrow('HS256 needs 32')
  })
})

describe('a rule that counts failures', () => {
  it('a rule that counts failures keeps only the charges of failed or aborted calls', async () => {
    const limiter = await make({
      rules: [
        { id: 'login', by: 'ip', limit: '3/m', countWhen: 'failed' },
        { id: 'all', limit: '20/m' },
      ],
    })
    const call = from('192.0.2.1')
    const end = async (outcome: object | undefined) => {
      const verdict = await limiter.check(call)
      expect(verdict.holds).toBe(true)
      verdict.end(outcome)
      verdict.end({ status: 200 })
      return left(limiter, call)
    }
    expect(await end({ status: 200 })).toEqual([3, 19])
    expect(await end({ status: 204 })).toEqual([3, 18])
    expect(await end({ status: 401 })).toEqual([2, 17])
    expect(await end({})).toEqual([1, 16])
    const open = await limiter.check(call)
    expect((await limiter.check(call)).allowed).toBe(false)
    open.release()
    open.settle(0)
    open.end({ status: 200 })
    expect(await left(limiter, call)).toEqual([1, 16])
    expect(await end(undefined)).toEqual([0, 15])
    expect((await limiter.check(call)).allowed).toBe(false)
  })

  it('many guesses at once do not pass a limit on failures', async () => {
    const limiter = await make({ rules: [{ id: 'login', limit: '3/m', countWhen: [401, 403] }] })
    const verdicts = Array.from({ length: 9 }, () => limiter.decide(from('192.0.2.1')))
    expect(verdicts.map(verdict => 'allowed' in verdict && verdict.allowed)).toEqual([
      ...[true, true, true],
      ...[false, false, false, false, false, false],
    ])
  })
})

describe('a blocked caller', () => {
  it('a blocked caller is refused for the block time, even below the limit, and others are not', async () => {
    const limiter = await make({
      rules: [
        { id: 'login', by: 'ip', limit: '2/s', block: '10m' },
        { id: 'all', limit: '50/h' },
      ],
    })
    const call = from('192.0.2.1')
    for (let i = 0; i < 2; i++) expect((await limiter.check(call)).allowed).toBe(true)
    expect(await limiter.check(call)).toMatchObject({ reason: 'limit', rule: 'login', retryAfterMs: 600_000 })
    now = start + 5000
    const blocked = await limiter.check(call)
    expect(blocked).toMatchObject({ allowed: false, reason: 'blocked', rule: 'login', retryAfterMs: 595_000 })
    expect(blocked.decisions[0]).toMatchObject({ allowed: false, remaining: 0, retryAfterMs: 595_000 })
    expect((await limiter.check(from('192.0.2.2'))).allowed).toBe(true)
    now = start + 599_999
    expect((await limiter.check(call)).reason).toBe('blocked')
    now = start + 600_000
    expect((await limiter.check(call)).allowed).toBe(true)
    expect(await left(limiter, from('192.0.2.9'))).toEqual([2, 46])
  })

  it('a caller is not blocked by a peek, by a rule with room, or by a shadow rule', async () => {
    const limiter = await make({
      rules: [
        { id: 'tight', by: 'ip', limit: '1/s' },
        { id: 'wide', by: 'ip', limit: '9/s', block: '10m' },
        { id: 'shadow', by: 'ip', limit: '1/s', block: '10m', whenFull: 'shadow' },
      ],
    })
    const call = from('192.0.2.1')
    await limiter.check(call)
    await limiter.check(call)
    await limiter.peek(call, { cost: 50 })
    now = start + 5000
    expect((await limiter.check(call)).allowed).toBe(true)
  })

  it('the application blocks and unblocks a caller by a call or a value', async () => {
    const limiter = await make({
      rules: [
        { id: 'address', by: 'ip', limit: '9/m', block: 'manual' },
        { id: 'account', by: 'account', limit: '9/m', block: '1m' },
        { id: 'both', by: ['account', 'ip'], limit: '9/m', block: 'manual' },
        { id: 'none', by: 'ip', limit: '9/m' },
      ],
    })
    const call = from('2001:db8:1:2::9', { attributes: { account: 'u1' } })
    const reason = async (of = call) => (await limiter.peek(of)).rule
    await limiter.block('address', '2001:db8:1:2:3::4', '5m')
    expect(await reason()).toBe('address')
    expect(await reason({ ...call, ip: '2001:db8:1:3::9' })).toBeUndefined()
    await limiter.unblock('address', call)
    expect(await reason()).toBeUndefined()
    await limiter.block('account', 'u1')
    expect(await reason({ ...call, ip: '192.0.2.1' })).toBe('account')
    now = start + 60_000
    expect(await reason()).toBeUndefined()
    await limiter.block('both', call, 1000)
    expect(await reason()).toBe('both')
    await limiter.block('both', call, 10)
    now = start + 60_500
    expect(await reason()).toBe('both')
    await expect(limiter.block('both', 'u1', 5)).rejects.toThrow('give a call of the caller')
    await expect(limiter.block('none', call, 5)).rejects.toThrow('does not block callers')
    await expect(limiter.block('unknown', call, 5)).rejects.toThrow('there is no rule "unknown"')
    await expect(limiter.block('address', call)).rejects.toThrow('the time of a block must be')
    for (const time of ['soon', 0, -1, 1.5, Number.NaN]) {
      await expect(limiter.block('address', call, time)).rejects.toThrow('the time of a block must be')
    }
  })

  it('a caller in the overflow counter is refused by the limit, and blocks no other caller', async () => {
    const limiter = await make({ maxKeys: 3, rules: [{ id: 'login', by: 'ip', limit: '1/h', block: '2h' }] })
    for (let i = 0; i < 9; i++) await limiter.check(from(`192.0.2.${i}`))
    await limiter.check(from('192.0.2.1'))
    await limiter.check(from('192.0.2.200'))
    expect((await limiter.peek(from('192.0.2.201'))).reason).toBe('limit')
    now = start + 3_700_000
    expect((await limiter.check(from('192.0.2.201'))).allowed).toBe(true)
    await expect(limiter.block('login', '192.0.2.250')).resolves.toBeUndefined()
  })

  it('a blocked caller stays blocked when the rule’s limit changes', async () => {
    const limiter = await make({ rules: [{ id: 'login', by: 'ip', limit: '1/s', block: '10m' }] })
    await limiter.block('login', '192.0.2.1')
    limiter.addRule({ id: 'other', limit: '5/s' })
    expect((await limiter.check(from('192.0.2.1'))).reason).toBe('blocked')
  })
})

describe('across the fleet', () => {
  let server: RedisServer
  beforeAll(async () => {
    server = await startRedis()
  }, 30_000)
  afterAll(() => server.close())
  const join = async (rule: object) => {
    const limiter = await createLimiter({
      store: { redis: server.client, timeout: '2s' },
      rules: [{ id: 'x', limit: '2/h', ...rule }],
    })
    limiters.push(limiter)
    return limiter
  }

  it('a caller blocked by one process is blocked by all, until any process unblocks them', async () => {
    const rule = { id: 'fleet', by: 'ip', limit: '2/100ms', block: '10m' }
    const [one, two] = [await join(rule), await join(rule)]
    const call = from('192.0.2.1')
    for (let i = 0; i < 5; i++) await one.check(call)
    await vi.waitFor(async () => expect((await two.check(call)).reason).toBe('blocked'))
    expect((await two.check(call)).retryAfterMs).toBeGreaterThan(590_000)
    expect((await two.check(from('192.0.2.2'))).allowed).toBe(true)
    await two.unblock('fleet', '192.0.2.1')
    await vi.waitFor(async () => expect((await one.peek(call)).allowed).toBe(true))
    expect((await one.check(call)).allowed).toBe(true)
    await two.block('fleet', '192.0.2.3', '1h')
    expect(await one.check(from('192.0.2.3'))).toMatchObject({ allowed: false, reason: 'blocked' })
  })

  it('a refunded success is forgotten by all processes', async () => {
    const rule = { id: 'failures', limit: '2/h', countWhen: 'failed', cost: 'header:x-cost' }
    const [one, two] = [await join(rule), await join(rule)]
    const call = from('192.0.2.1', { headers: { 'x-cost': '2' } })
    const verdict = await one.check(call)
    expect((await two.check(call)).allowed).toBe(false)
    expect((await one.check(call)).allowed).toBe(false)
    verdict.end({ status: 200 })
    const next = await one.check(call)
    expect(next.allowed).toBe(true)
    next.end({ status: 204 })
    await vi.waitFor(async () => expect(await left(two, call)).toEqual([2]))
    // a process that was refused asks again within a second
    const failed = await vi.waitFor(async () => {
      const again = await two.check(call)
      expect(again.allowed).toBe(true)
      return again
    }, 5000)
    failed.end({ status: 401 })
    expect((await one.check(call)).allowed).toBe(false)
  })
})
