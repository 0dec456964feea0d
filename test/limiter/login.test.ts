import { randomRuns } from '@test/random-runs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createLimiter } from '../../packages/limiter/src/create/create-limiter.ts'
import { MapStore } from '../../packages/limiter/src/testing/stores/map-store.ts'
import { useRedis } from '../helpers/servers/use-redis.ts'
import { RulesCenter } from '../helpers/sources/rules-center.ts'

const redis = useRedis()
type Kind = 'memory' | 'Redis' | 'ledgers'
const kinds: Kind[] = ['memory', 'Redis', 'ledgers']
const START_MS = 1_800_000_000_000
const MINUTE_MS = 60_000
const growth = { first: '1m', factor: 2, max: '5m', forgetAfter: '1h' }
let rules = 0

/** Limiters whose time is the test's, also in Redis, with one rule for logins; `processes` of them share a store. */
async function start(kind: Kind, options: object = {}, processes = 1) {
  const time = { ms: START_MS }
  const id = `login-${++rules}`
  const rule = {
    id,
    by: 'account',
    algorithm: 'sliding-log',
    limit: '3/10m',
    countWhen: 'failed',
    resetWhen: 'success',
  }
  const ledgers = new MapStore()
  const create = async () =>
    redis.closeLater(
      await createLimiter({
        clock: () => time.ms,
        rules: [{ ...rule, ...options } as never],
        ...(kind === 'Redis' ? { store: { redis: redis.server.client, timeout: '5s' } } : {}),
        ...(kind === 'ledgers' ? { store: ledgers } : {}),
      }),
    )
  const limiters = await Promise.all(Array.from({ length: processes }, create))
  const [limiter] = limiters as [Awaited<ReturnType<typeof create>>]
  // what ends a call, and a block, are messages of their own, which are answered before what is asked later
  const settled = async () => {
    if (kind !== 'memory') for (const one of limiters) await one.peek(of(kind === 'Redis' ? 'nobody' : 'ann'))
  }
  const attempt = async (status: number | undefined, account = 'ann', one = limiter, more: object = {}) => {
    const verdict = await one.check({ ...of(account), ...more })
    if (verdict.allowed) verdict.end({ status })
    await settled()
    return verdict
  }
  return { limiter, limiters, time, attempt, settled, id }
}

const of = (account: string) => ({ method: 'POST', path: '/login', attributes: { account } })

describe.each(kinds)('logins that are counted in %s', kind => {
  it.each([
    [
      'a success clears what failed before',
      [401, 401, 200, 401, 401, 401],
      [true, true, true, true, true, true, false],
    ],
    ['a redirect is a success', [401, 401, 302, 401, 401, 401], [true, true, true, true, true, true, false]],
    ['failures of the service count, and clear nothing', [401, 500, 403], [true, true, true, false]],
    ['a caller who leaves before the answer fails', [401, 401, undefined], [true, true, true, false]],
  ])('%s', async (_title, statuses, expected) => {
    const { attempt } = await start(kind)
    const seen: boolean[] = []
    for (const status of [...statuses, 401]) seen.push((await attempt(status)).allowed)
    expect(seen).toEqual(expected)
  })

  it.each<[string, object]>([
    ['a method by a header', { headers: { 'x-http-method-override': 'GET' } }],
    ['a method by the query', { query: '_method=GET' }],
    ['a method that only asks', { headers: { 'x-http-method': 'HEAD' } }],
    ['a path with an encoded slash', { path: '/other/..%2flogin' }],
    ['a path with a parameter', { path: '/other/..;/../login' }],
    ['a path with a backslash', { path: '/other/..\\\\login' }],
    ['another host', { headers: { ':authority': 'b.test' } }],
  ])('%s that a service may take for another call clears nothing', async (_, odd) => {
    const { limiter, attempt, settled } = await start(kind, {
      match: { path: '/login', method: 'POST', host: 'a.test' },
    })
    const fails = async () => (await attempt(401, 'ann', limiter, { host: 'a.test' })).allowed
    expect([await fails(), await fails()]).toEqual([true, true])
    for (let times = 0; times < 3; times++) {
      const verdict = await limiter.check({ ...of('ann'), host: 'a.test', ...odd })
      if (verdict.allowed) verdict.end({ status: 200 })
      await settled()
    }
    expect([await fails(), await fails()]).toEqual([true, false])
  })

  it('of a hundred logins at the same time no more reach the service than may fail', async () => {
    const { limiters, settled } = await start(kind, { limit: '10/10m' }, kind === 'Redis' ? 3 : 1)
    const guess = (i: number) => limiters[i % limiters.length]!.check(of('ann'))
    const verdicts = await Promise.all(Array.from({ length: 100 }, (_, i) => guess(i)))
    const underWay = verdicts.filter(({ allowed }) => allowed)
    expect(underWay).toHaveLength(10)
    for (const verdict of underWay) verdict.end({ status: 401 })
    await settled()
    expect((await guess(0)).allowed).toBe(false)
  })

  it('blocks grow by the factor up to the longest, and begin again when none was set for a while', async () => {
    const { attempt, time } = await start(kind, { limit: '1/s', block: growth })
    const lengths: number[] = []
    for (const pauseMs of [0, 0, 0, 0, 59 * MINUTE_MS, 60 * MINUTE_MS]) {
      time.ms += pauseMs
      await attempt(401)
      const refused = await attempt(401)
      lengths.push(refused.retryAfterMs / MINUTE_MS)
      time.ms += refused.retryAfterMs - 1
      expect(await attempt(401)).toMatchObject({ allowed: false, reason: 'blocked', retryAfterMs: 1 })
      time.ms += 1
    }
    expect(lengths).toEqual([1, 2, 4, 5, 5, 1])
  })

  it('a block of any process holds in all, is listed and explained, and is over after unblock with what it had grown to', async () => {
    const count = kind === 'Redis' ? 2 : 1
    const { limiter, limiters, attempt, time, id } = await start(kind, { limit: '1/s', block: growth }, count)
    const last = limiters.at(-1)!
    for (let round = 0; round < 2; round++) {
      await attempt(401)
      await attempt(401)
      if (round === 0) time.ms += MINUTE_MS
    }
    expect(await attempt(200, 'ann', last)).toMatchObject({
      allowed: false,
      reason: 'blocked',
      retryAfterMs: 2 * MINUTE_MS,
    })
    expect(await last.blocks()).toEqual([{ rule: id, key: 'ann', leftMs: 2 * MINUTE_MS }])
    const { caller } = await last.explain(of('ann'))
    expect(caller).toMatchObject([{ is: 'blocked', rule: id, leftMs: 2 * MINUTE_MS }])
    await limiter.unblock(id, 'ann')
    expect(await last.blocks()).toEqual([])
    await attempt(401, 'ann', last)
    expect((await attempt(401, 'ann', last)).retryAfterMs).toBe(MINUTE_MS)
  })

  it('calls that are refused at the same time make a block longer once', async () => {
    const { limiters, settled, limiter } = await start(kind, { limit: '1/s', block: growth }, kind === 'memory' ? 1 : 2)
    await Promise.all(Array.from({ length: 20 }, (_, i) => limiters[i % limiters.length]!.check(of('ann'))))
    await settled()
    expect(await limiter.blocks()).toMatchObject([{ leftMs: MINUTE_MS }])
  })

  it('a rule whose blocks begin or cease to grow keeps the callers that it blocks', async () => {
    const id = `login-${++rules}`
    const ruleOf = (block: unknown) => ({ id, by: 'account', limit: '1/s', block })
    const center = new RulesCenter(ruleOf('10m'))
    const limiter = await createLimiter({
      ...center.options,
      clock: () => START_MS,
      ...(kind === 'Redis' ? { store: { redis: redis.server.client, timeout: '5s' } } : {}),
      ...(kind === 'ledgers' ? { store: new MapStore() } : {}),
    })
    redis.closeLater(limiter)
    for (let i = 0; i < 2; i++) await limiter.check(of('ann'))
    await limiter.peek(of('nobody'))
    for (const block of [growth, '3m', { ...growth, first: '2m' }]) {
      await center.change([limiter], ruleOf(block))
      expect(await limiter.blocks()).toEqual([{ rule: id, key: 'ann', leftMs: 10 * MINUTE_MS }])
    }
  })

  it.each([
    ['sliding-log', '3/10m'],
    ['sliding-window', '3/90d'],
    ['fixed-window', '3/90d'],
    ['token-bucket', '3/1h'],
    ['fixed-window', '3/month'],
  ])('after a growing block the right password passes: %s of %s', async (algorithm, limit) => {
    const { attempt, time } = await start(kind, { algorithm, limit, block: growth }, kind === 'Redis' ? 2 : 1)
    for (const minutes of [1, 2, 4, 5]) {
      for (let i = 0; i < 3; i++) expect((await attempt(401)).allowed).toBe(true)
      expect(await attempt(200)).toMatchObject({ allowed: false, retryAfterMs: minutes * MINUTE_MS })
      time.ms += minutes * MINUTE_MS - 1
      expect(await attempt(200)).toMatchObject({ allowed: false, reason: 'blocked', retryAfterMs: 1 })
      time.ms += 1
    }
    expect((await attempt(200)).allowed).toBe(true)
  })

  it('a block by hand of a rule whose blocks clear also clears the count', async () => {
    const { limiter, attempt, time, id } = await start(kind, { limit: '3/90d', block: growth })
    for (let i = 0; i < 3; i++) await attempt(401)
    await limiter.block(id, 'ann', '10s')
    expect(await attempt(200)).toMatchObject({ allowed: false, reason: 'blocked', retryAfterMs: 10_000 })
    time.ms += 10_000
    expect((await attempt(200)).allowed).toBe(true)
  })

  it('a call that costs more than the limit is never announced to pass after a block', async () => {
    const { limiter, id } = await start(kind, {
      limit: '3/1h',
      block: growth,
      countWhen: undefined,
      resetWhen: undefined,
    })
    const verdict = await limiter.consume(id, 'ann', { cost: 4 })
    expect(verdict).toMatchObject({ allowed: false, retryAfterMs: Number.POSITIVE_INFINITY })
  })

  it.each([true, false])(
    'a random walk of failures, successes, blocks and pardons equals a simple model, with clear: %s',
    async clear => {
      const move = fc.record({
        what: fc.constantFrom('fail', 'fail', 'fail', 'fail', 'succeed', 'block', 'pardon', 'abort'),
        passMs: fc.constantFrom(0, 1, 1000, MINUTE_MS, 2 * MINUTE_MS, 10 * MINUTE_MS, 60 * MINUTE_MS, 61 * MINUTE_MS),
      })
      const walk = fc.array(move, { minLength: 20, maxLength: 40, size: 'max' })
      await fc.assert(
        fc.asyncProperty(walk, async moves => {
          const { limiter, time, attempt, settled, id } = await start(kind, { block: { ...growth, clear } })
          const model = new Model(clear)
          for (const { what, passMs } of moves) {
            time.ms += passMs
            if (what === 'block') {
              await limiter.block(id, 'ann', '90s')
              model.block(time.ms, 90_000)
            } else if (what === 'pardon') {
              await limiter.unblock(id, 'ann')
              model.pardon()
            } else {
              const { allowed, retryAfterMs } = await attempt(
                what === 'fail' ? 401 : what === 'abort' ? undefined : 200,
              )
              expect({ allowed, retryAfterMs }).toEqual(model.attempt(time.ms, what === 'succeed'))
            }
            await settled()
            expect(await limiter.blocks()).toMatchObject(
              model.untilMs > time.ms ? [{ leftMs: model.untilMs - time.ms }] : [],
            )
          }
          await limiter.close()
        }),
        { numRuns: randomRuns(kind === 'Redis' ? 10 : 40) },
      )
    },
  )
})

/** The simplest implementation of 3 failures in 10 minutes, and blocks of 1, 2, 4 and 5 minutes, which may clear the failures. */
class Model {
  untilMs = 0
  readonly #clears: boolean
  #failures: number[] = []
  #blocks = 0

  constructor(clears: boolean) {
    this.#clears = clears
  }

  attempt(nowMs: number, succeeds: boolean): { allowed: boolean; retryAfterMs: number } {
    this.#failures = this.#failures.filter(at => at + 10 * MINUTE_MS > nowMs)
    const limitMs = this.#failures.length < 3 ? 0 : this.#failures[0]! + 10 * MINUTE_MS - nowMs
    if (nowMs < this.untilMs) return { allowed: false, retryAfterMs: Math.max(limitMs, this.untilMs - nowMs) }
    if (limitMs === 0) {
      this.#failures = succeeds ? [] : [...this.#failures, nowMs]
      return { allowed: true, retryAfterMs: 0 }
    }
    this.#forget(nowMs)
    const blockMs = Math.min(5, 2 ** this.#blocks++) * MINUTE_MS
    this.untilMs = nowMs + blockMs
    this.#clear()
    return { allowed: false, retryAfterMs: this.#clears ? blockMs : Math.max(limitMs, blockMs) }
  }

  block(nowMs: number, ms: number): void {
    this.#forget(nowMs)
    this.untilMs = Math.max(this.untilMs, nowMs + ms)
    this.#clear()
  }

  #clear(): void {
    if (this.#clears) this.#failures = []
  }

  #forget(nowMs: number): void {
    if (nowMs >= this.untilMs + 60 * MINUTE_MS) this.#blocks = 0
  }

  pardon(): void {
    this.untilMs = 0
    this.#failures = []
    this.#blocks = 0
  }
}
