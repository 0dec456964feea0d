import { randomRuns } from '@test/random-runs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { adminOf } from '../../packages/limiter/src/admin/limiter-admin.ts'
import { createLimiter } from '../../packages/limiter/src/create/create-limiter.ts'
import type { Limiter, RuleOptions } from '../../packages/limiter/src/index.ts'
import { SharedCredits } from '../../packages/limiter/src/stores/credits.ts'
import { creditInRedis } from '../../packages/limiter/src/stores/redis/redis-credits.ts'
import { MapStore } from '../../packages/limiter/src/testing/stores/map-store.ts'
import { useRedis } from '../helpers/servers/use-redis.ts'

const redis = useRedis()
const START_MS = Date.UTC(2026, 10, 17)
let prefixes = 0

type Place = 'memory' | 'Redis' | 'ledgers'
const ledgers = new Map<string, string>()

async function limiterOf(where: Place, rules: readonly object[], clock = () => START_MS, prefix = `c${prefixes++}`) {
  const limiter = await createLimiter({
    clock,
    ...(where === 'Redis' && { store: { redis: redis.url, timeout: '5s', prefix } }),
    ...(where === 'ledgers' && { store: Object.assign(new MapStore(ledgers), { timeout: '5s', prefix }) }),
    rules: rules as RuleOptions[],
  })
  redis.closeLater(limiter)
  return limiter
}

async function passing(limiter: Limiter, calls: number, rule = 'r', who = 'ann'): Promise<number> {
  const verdicts = await Promise.all(Array.from({ length: calls }, () => limiter.consume(rule, who)))
  return verdicts.filter(({ allowed }) => allowed).length
}

const ann = { method: 'GET', path: '/', attributes: { account: 'ann' } }
const algorithms = {
  'sliding-window': { limit: '3/h' },
  'sliding-log': { limit: '3/h' },
  'fixed-window': { limit: '3/h' },
  'token-bucket': { limit: '3/h' },
  'leaky-bucket': { limit: '3/h', burst: 2 },
  calendar: { limit: '3/month', algorithm: 'fixed-window' },
  plans: { limit: { by: 'attribute:plan', values: { pro: '9/h' }, default: '3/h' } },
}
const rulesBy = Object.entries(algorithms).map(([algorithm, rest]) => {
  const name = algorithm.includes('-') ? { algorithm } : {}
  return [algorithm, { id: 'r', by: 'account', ...name, ...rest }] as const
})

describe.each(['memory', 'Redis', 'ledgers'] as const)('credit in %s', where => {
  it.each(rulesBy)('credit admits calls that the limit refuses, and stays until it is used: %s', async (_, rule) => {
    let nowMs = START_MS
    const limiter = await limiterOf(where, [{ ...rule, credit: true }], () => nowMs)
    expect(await limiter.grant('r', 'ann', 4)).toBe(4)
    expect(await limiter.grant('r', 'ann', 1)).toBe(5)
    expect(await passing(limiter, 5)).toBe(5)
    expect((await limiter.explain(ann))[0]).toMatchObject({ credit: 3, decisions: [{ allowed: true, remaining: 0 }] })
    nowMs += 32 * 86_400_000
    expect(await passing(limiter, 9)).toBe(6)
    expect((await limiter.explain(ann))[0]).toMatchObject({ credit: 0, decisions: [{ remaining: 0 }] })
    expect(await passing(limiter, 3, 'r', 'bob')).toBe(3)
    expect((await limiter.get('r', 'ann')).allowed).toBe(false)
    await limiter.grant('r', 'ann', 1)
    expect((await limiter.get('r', 'ann')).allowed).toBe(true)
    expect(await passing(limiter, 2)).toBe(1)
  })

  it('credit pays a call by all rules that refuse it or by none, and the other rules count it', async () => {
    const credit = { algorithm: 'fixed-window', by: 'account', credit: true }
    const rules = [
      { ...credit, id: 'hour', limit: '1/h' },
      { ...credit, id: 'day', limit: '2/d', cost: 2 },
      { id: 'all', limit: '3/h', algorithm: 'fixed-window', count: 'local' },
    ]
    const limiter = await limiterOf(where, rules)
    const left = async () => (await limiter.explain(ann)).map(({ credit }) => credit)
    await limiter.grant('hour', 'ann', 9)
    await limiter.grant('day', 'ann', 3)
    expect((await limiter.check(ann)).allowed).toBe(true)
    expect(await left()).toEqual([9, 3, undefined])
    const paid = await limiter.check(ann)
    expect([paid.allowed, await left()]).toEqual([true, [8, 1, undefined]])
    expect([(await limiter.check(ann)).rule, await left()]).toEqual(['day', [8, 1, undefined]])
    await limiter.grant('day', 'ann', 9)
    expect([(await limiter.check(ann)).allowed, await left()]).toEqual([true, [7, 8, undefined]])
    // the last rule, which has no credit, refuses
    expect([(await limiter.check(ann)).rule, await left()]).toEqual([expect.any(String), [7, 8, undefined]])
    await paid.refund()
    expect(await left()).toEqual([8, 10, undefined])
    const { total, rules: byRule } = adminOf(limiter).stats()
    expect(total).toMatchObject({ allowed: 2, refused: 2 })
    expect(byRule.map(({ refused }) => refused).reduce((a, b) => a + b)).toBe(2)
  })

  it('credit is settled at what a call has cost in the end', async () => {
    const limiter = await limiterOf(where, [{ id: 'r', by: 'account', limit: '1/h', credit: true }])
    const left = async () => (await limiter.explain(ann))[0]!.credit
    await limiter.grant('r', 'ann', 10)
    const verdict = await limiter.consume('r', 'ann', { cost: 6 })
    expect([verdict.allowed, await left()]).toEqual([true, 4])
    verdict.settle(3)
    expect(await left()).toBe(7)
    verdict.settle(5)
    expect(await left()).toBe(5)
    verdict.settle(50)
    expect(await left()).toBe(0)
    expect(await passing(limiter, 2)).toBe(1)
  })

  it('credit of a suspended caller is kept and not used', async () => {
    const limit = { by: 'attribute:plan', values: { suspended: '0/h' }, default: '1/h' }
    const limiter = await limiterOf(where, [{ id: 'r', by: 'account', limit, credit: true }])
    await limiter.grant('r', 'ann', 5)
    const suspended = { ...ann, attributes: { account: 'ann', plan: 'suspended' } }
    expect((await limiter.check(suspended)).allowed).toBe(false)
    await limiter.reset('r', 'ann')
    expect((await limiter.explain(ann))[0]!.credit).toBe(5)
  })

  it('credit of no whole number, of too many permits or for no rule is an error', async () => {
    const limiter = await limiterOf(where, [{ id: 'r', by: 'account', limit: '1/h', credit: true }])
    for (const permits of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, '5', 1e16, undefined]) {
      await expect(limiter.grant('r', 'ann', permits as number)).rejects.toMatchObject({ code: 'BAD_CALL' })
    }
    expect(await limiter.grant('r', 'ann', 1e15)).toBe(1e15)
    await expect(limiter.grant('r', 'ann', 1)).rejects.toMatchObject({ code: 'BAD_CALL' })
    await expect(limiter.grant('none', 'ann', 1)).rejects.toMatchObject({ code: 'BAD_CALL' })
  })

  const walked = [
    ...rulesBy,
    ['warm-up', { id: 'r', by: 'account', algorithm: 'warm-up', limit: '3/h', warmUp: '1h' }],
  ] as const

  it.each(walked)(
    'credit gives what a plain limit and a balance beside it give, for any calls: %s',
    async (_, rule) => {
      const move = fc.oneof(
        { weight: 5, arbitrary: fc.record({ consume: fc.integer({ min: 1, max: 4 }) }) },
        fc.record({ grant: fc.integer({ min: 1, max: 5 }) }),
        fc.record({ pass: fc.constantFrom(1, 600_000, 3_600_000) }),
        fc.constant({ reset: true }),
      )
      await fc.assert(
        fc.asyncProperty(fc.array(move, { maxLength: 25 }), async moves => {
          let nowMs = START_MS
          const limiter = await limiterOf(where, [{ ...rule, credit: true }], () => nowMs)
          const plain = await limiterOf('memory', [rule], () => nowMs)
          let balance = 0
          for (const one of moves) {
            if ('pass' in one) nowMs += one.pass
            else if ('grant' in one) {
              balance += one.grant
              expect(await limiter.grant('r', 'ann', one.grant)).toBe(balance)
            } else if ('reset' in one) await Promise.all([limiter, plain].map(each => each.reset('r', 'ann')))
            else {
              const { allowed } = await plain.consume('r', 'ann', { cost: one.consume })
              const isPaid = !allowed && balance >= one.consume
              if (isPaid) balance -= one.consume
              expect((await limiter.consume('r', 'ann', { cost: one.consume })).allowed).toBe(allowed || isPaid)
            }
          }
          expect((await limiter.explain(ann))[0]!.credit).toBe(balance)
        }),
        { numRuns: randomRuns(where === 'memory' ? 8 : 1) },
      )
    },
  )
})

describe('credit of several processes on one Redis', () => {
  it('credit is used once by calls that come at the same time', async () => {
    const rule = { id: 'r', by: 'account', limit: '3/h', algorithm: 'fixed-window', credit: true }
    const both = await Promise.all([1, 2].map(() => limiterOf('Redis', [rule], () => START_MS, 'both')))
    await both[0]!.grant('r', 'ann', 20)
    const passed = await Promise.all(both.map(limiter => passing(limiter, 40)))
    expect(passed[0]! + passed[1]!).toBe(23)
    expect((await both[1]!.explain(ann))[0]!.credit).toBe(0)
  })

  it('credit that one process grants is used by the others within a second, and outlasts them', async () => {
    const rule = { id: 'r', by: 'account', limit: '1/h', algorithm: 'fixed-window', credit: true }
    const [one, other] = await Promise.all([1, 2].map(() => limiterOf('Redis', [rule], () => START_MS, 'later')))
    expect(await passing(other!, 3)).toBe(1)
    await one!.grant('r', 'ann', 2)
    await expect.poll(() => passing(other!, 1), { timeout: 1000, interval: 50 }).toBe(1)
    await Promise.all([one!, other!].map(limiter => limiter.close()))
    expect(await passing(await limiterOf('Redis', [rule], () => START_MS, 'later'), 3)).toBe(1)
  })
})

describe('credit in a Redis that is away', () => {
  it('credit in a Redis that is down refuses without a wait, says so when it is granted, and is left out of explanations', async () => {
    const store = { redis: 'redis://127.0.0.1:1', timeout: '5ms' }
    const limiter = await createLimiter({ store, rules: [{ id: 'r', by: 'account', limit: '2/h', credit: true }] })
    redis.closeLater(limiter)
    expect(await passing(limiter, 4)).toBe(2)
    await expect(limiter.grant('r', 'ann', 1)).rejects.toThrow()
    const [rule] = await limiter.explain(ann)
    expect([rule!.credit, rule!.decisions[0]!.allowed]).toEqual([undefined, false])
  })

  it('credit in a Redis that is down is asked once, and an answer that comes too late is undone', async () => {
    let nowMs = 0
    const answers: ((reply: unknown) => void)[] = []
    const commands: (readonly string[])[] = []
    const send = (command: readonly string[]) => {
      commands.push(command)
      return new Promise(resolve => answers.push(resolve))
    }
    const credits = new SharedCredits({ move: creditInRedis(send, 'p'), timeoutMs: 1, nowMs: () => nowMs })
    expect(await credits.take('r', 'ann', 3)).toBe(false)
    expect(credits.take('r', 'bob', 3)).toBe(false)
    answers[0]!(['3', '4'])
    await expect.poll(() => commands.length, { interval: 1 }).toBe(2)
    expect(commands[1]!.slice(-3, -1)).toEqual(['add', '3'])
    nowMs = 1001
    const asked = credits.take('r', 'ann', 9)
    answers[2]!(['0', '7'])
    expect([await asked, credits.take('r', 'ann', 8), commands.length]).toEqual([false, false, 3])
    await expect(credits.left('r', 'ann')).rejects.toThrow('in time')
  })
})

it('decisions of a limiter with credit are timed as those of others, and a timed call is paid as well', async () => {
  const limiter = await limiterOf('memory', [{ id: 'r', by: 'account', limit: '2/h', credit: true }])
  await limiter.grant('r', 'ann', 400)
  expect(await passing(limiter, 410)).toBe(402)
  expect(
    adminOf(limiter)
      .stats()
      .durations.memory.counts.reduce((sum, count) => sum + count),
  ).toBeGreaterThan(0)
})

it.each([
  [{ limit: 5, algorithm: 'concurrency' }, 'credit is not for concurrency'],
  [{ limit: ['5/s', '9/m'] }, 'credit is for rules with one limit'],
  [{ limit: '5/s', block: '1m' }, 'credit is not for rules that block callers'],
  [{ limit: '5/s', whenFull: 'shadow' }, 'credit is for rules that refuse calls'],
])('a rule that cannot have credit says so: %j', async (rule, message) => {
  await expect(limiterOf('memory', [{ id: 'r', by: 'ip', credit: true, ...rule }])).rejects.toThrow(message)
  const plain = await limiterOf('memory', [{ id: 'r', by: 'ip', ...rule }])
  await expect(plain.grant('r', '::1', 1)).rejects.toThrow('rule "r" has no credit: add credit: true to it')
})
