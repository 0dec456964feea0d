import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createLimiter } from '../../packages/limiter/src/create/create-limiter.ts'
import type { Limiter } from '../../packages/limiter/src/limiter.ts'
import type { CommonRuleOptions, RuleOptions } from '../../packages/limiter/src/rules/schema/options.ts'
import type { Verdict } from '../../packages/limiter/src/verdict.ts'
import { RulesCenter } from '../helpers/sources/rules-center.ts'

const limiters: Limiter[] = []

beforeEach(() => void vi.useFakeTimers({ now: Date.UTC(2026, 10, 15), toFake: ['Date', 'setTimeout', 'clearTimeout'] }))
afterEach(async () => {
  vi.useRealTimers()
  for (const limiter of limiters.splice(0)) await limiter.close()
})

/** A limiter whose rules are changed by a config center in this process. */
async function house(...rules: readonly RuleOptions[]) {
  const center = new RulesCenter(...rules)
  const limiter = await createLimiter({ ...center.options, clock: () => Date.now() })
  limiters.push(limiter)
  const change = (...rules: readonly RuleOptions[]): Promise<void> => center.change([limiter], ...rules)
  const call = (options?: { cost?: number; signal?: AbortSignal }): Verdict | Promise<Verdict> =>
    limiter.decide({ method: 'GET', path: '/' }, options)
  const waitingFor = (): Record<string, number> =>
    Object.fromEntries(limiter.status().rules.map(({ id, waiting }) => [id, waiting]))
  return { limiter, change, call, waitingFor, check: async () => (await call()).allowed }
}

const places = (limit: number, options: Partial<CommonRuleOptions> = {}): RuleOptions => {
  return { id: 'places', limit, algorithm: 'concurrency', ...options }
}
const queue = (limit: number): RuleOptions => places(limit, { whenFull: 'wait', queue: { timeout: '10s' } })

describe('calls during a change of rules', () => {
  it('the status has the source of each rule', async () => {
    const { limiter, change } = await house(places(1))
    await change(places(1), { id: 'more', limit: '5/s' })
    expect(limiter.status().rules).toMatchObject([
      { id: 'places', origin: 'center' },
      { id: 'more', origin: 'center' },
    ])
    expect(limiter.status().sources[1]).toMatchObject({ role: 'remote', version: '2', taken: 2 })
  })

  it('calls under way keep their slots over a change of rules, and each frees one', async () => {
    const { change, call } = await house(places(3))
    const underWay = [call(), call(), call()] as Verdict[]
    await change(places(2), { id: 'other', limit: '100/s' })
    expect((call() as Verdict).allowed).toBe(false)
    for (const verdict of underWay) {
      verdict.release()
      verdict.release()
    }
    const next = [call(), call(), call()] as Verdict[]
    expect(next.map(({ allowed }) => allowed)).toEqual([true, true, false])
  })

  it('a waiting call is admitted as soon as the rule has more slots', async () => {
    const { change, call, waitingFor } = await house(queue(1))
    const first = (await call()) as Verdict
    const waiting = [call(), call(), call()]
    expect(waitingFor()).toEqual({ places: 3 })
    await change(queue(3))
    expect((await waiting[0]!).allowed).toBe(true)
    expect((await waiting[1]!).allowed).toBe(true)
    expect(waitingFor()).toEqual({ places: 1 })
    first.release()
    expect((await waiting[2]!).allowed).toBe(true)
  })

  it('a call that waits for a slot of a removed rule passes', async () => {
    const { change, call } = await house(queue(1))
    await call()
    const waiting = call()
    await change({ id: 'other', limit: '5/s' })
    expect((await waiting).allowed).toBe(true)
    expect((await call()).allowed).toBe(true)
  })

  it('a waiting call is refused when its rule no longer lets calls wait', async () => {
    const { change, call } = await house(queue(1))
    await call()
    const waiting = call()
    await change(places(1))
    expect(await waiting).toMatchObject({ allowed: false, rule: 'places' })
  })

  it('a call that still waits after a reload is refused at its timeout', async () => {
    const { change, call } = await house(queue(1))
    await call()
    const waiting = call()
    await change(queue(1), { id: 'other', limit: '5/s' })
    await vi.advanceTimersByTimeAsync(10_000)
    expect(await waiting).toMatchObject({ allowed: false, reason: 'timeout' })
  })

  it('scheduled calls pass at their moment, whatever the new limit', async () => {
    const leaky = (limit: string): RuleOptions => {
      return { id: 'leaky', limit, algorithm: 'leaky-bucket', burst: 5, whenFull: 'wait' }
    }
    const { change, call, waitingFor } = await house(leaky('10/s'))
    const start = Date.now()
    const passed: number[] = []
    for (let i = 0; i < 4; i++) void Promise.resolve(call()).then(() => passed.push(Date.now() - start))
    await change(leaky('1/h'))
    await vi.advanceTimersByTimeAsync(1000)
    expect(passed).toEqual([0, 100, 200, 300])
    expect(waitingFor()).toEqual({ leaky: 0 })
  })

  it.each([
    ['slower', 10],
    ['smaller than the calls of others', 1],
  ])(
    'a call that gives up after a limit became %s delays no other call beyond its announced wait',
    async (_, burst) => {
      const bucket = (limit: string, burst: number): RuleOptions => {
        return { id: 'bucket', limit, algorithm: 'token-bucket', burst, whenFull: 'wait', queue: { timeout: '10s' } }
      }
      const { change, call } = await house(bucket('10/s', 10))
      await call({ cost: 10 })
      const controller = new AbortController()
      const gone = Promise.resolve(call({ cost: 5, signal: controller.signal })).catch(() => 'gone')
      const staying = call({ cost: 5 })
      await change(bucket('1/h', burst))
      controller.abort()
      expect(await gone).toBe('gone')
      await vi.advanceTimersByTimeAsync(1000)
      expect((await staying).allowed).toBe(true)
      await change(bucket('10/s', 10))
      // what was taken meanwhile is paid off at the rate of now
      await vi.advanceTimersByTimeAsync(1500)
      expect((await call({ cost: 10 })).allowed).toBe(true)
    },
  )

  it('a call is decided by one set of rules, and the next one by the new set', async () => {
    const { change, check } = await house({ id: 'a', limit: '3/h' })
    expect([await check(), await check()]).toEqual([true, true])
    await change({ id: 'a', limit: '2/h' })
    expect(await check()).toBe(false)
    await change({ id: 'a', limit: '4/h' })
    expect([await check(), await check(), await check()]).toEqual([true, true, false])
  })
})
