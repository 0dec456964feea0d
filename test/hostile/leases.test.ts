import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { randomRuns } from '@test/random-runs'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createLimiter } from '../../packages/limiter/src/create/create-limiter.ts'
import type { Limiter } from '../../packages/limiter/src/limiter.ts'
import type { RuleOptions } from '../../packages/limiter/src/rules/schema/options.ts'
import { build } from '../helpers/program-rig.ts'
import { type RedisServer, startRedis } from '../helpers/servers/redis-server.ts'

// One caller spreads calls over processes that lease permits: never more than the limit pass, and all of it can be used.

let redis: RedisServer
let url: string
beforeAll(async () => {
  build()
  redis = await startRedis()
  url = `redis://${redis.authority}`
})
afterAll(() => redis.close())

const callOf = (account: string, path = '/sliding-window') => ({ method: 'GET', path, attributes: { account } })
const algorithms = ['sliding-window', 'sliding-log', 'fixed-window', 'token-bucket'] as const
const ruleOf = (algorithm: (typeof algorithms)[number], count: number): RuleOptions =>
  ({
    ...{ id: algorithm, match: { path: `/${algorithm}` }, by: 'account', algorithm, limit: `${count}/1d` },
    ...(algorithm === 'token-bucket' && { burst: count }),
    ...(algorithm === 'fixed-window' && { align: 'first-call' }),
  }) as RuleOptions

const steps = fc.array(
  fc.record({
    process: fc.nat(3),
    calls: fc.constantFrom(1, 5, 20, 60),
    refunds: fc.constantFrom(0, 0, 1, 2),
    pauseMs: fc.constantFrom(0, 0, 5, 30),
    isReset: fc.constantFrom(...Array<boolean>(30).fill(false), true),
  }),
  { minLength: 12, maxLength: 20 },
)

test('a caller who spreads bursts, refunds and resets over four processes gets the whole limit and no more', async () => {
  const limit = 400
  const limiters: Limiter[] = []
  for (let i = 0; i < 4; i++) {
    limiters.push(
      await createLimiter({ store: { redis: url, timeout: '2s' }, rules: algorithms.map(one => ruleOf(one, limit)) }),
    )
  }
  let runs = 0
  const walk = async (
    list: typeof steps extends fc.Arbitrary<infer T> ? T : never,
    algorithm: string,
  ): Promise<void> => {
    const call = callOf(`walk-${runs++}`, `/${algorithm}`)
    let used = 0
    for (const { process, calls, refunds, pauseMs, isReset } of list) {
      const limiter = limiters[process]!
      if (isReset) {
        // permits that are reserved at that moment stay counted: let the processes give them back first
        await pause(400)
        await limiter.reset(algorithm, call)
        used = 0
      }
      const verdicts = await Promise.all(Array.from({ length: calls }, () => limiter.check(call)))
      const passed = verdicts.filter(({ allowed }) => allowed)
      used += passed.length
      expect(used).toBeLessThanOrEqual(limit)
      const returned = passed.filter((_, n) => refunds > 0 && n % (3 - refunds) === 0)
      await Promise.all(returned.map(verdict => verdict.refund()))
      used -= returned.length
      await pause(pauseMs)
    }
    for (let tries = 0; used < limit && tries < 40; tries++) {
      const verdicts = await Promise.all(Array.from({ length: 100 }, () => limiters[tries % 4]!.check(call)))
      used += verdicts.filter(({ allowed }) => allowed).length
      expect(used).toBeLessThanOrEqual(limit)
      await pause(50)
    }
    // what is reserved at the moment of a reset stays counted: about a tenth of the limit, or a quarter of what is left of it
    const isPlain = list.every(({ isReset, refunds }) => !isReset && refunds === 0)
    const least = isPlain ? limit : limit * 0.75
    expect([algorithm, used >= least, used]).toEqual([algorithm, true, used])
  }
  // every second walk has neither refunds nor resets, so that the whole limit must be usable
  const lists = fc
    .sample(steps, randomRuns(8))
    .map((list, n) =>
      (n >> 2) % 2 === 0 ? list : list.map(step => ({ ...step, refunds: 0 as const, isReset: false })),
    )
  await Promise.all(lists.map((list, n) => walk(list, algorithms[n % algorithms.length]!)))
  await Promise.all(limiters.map(limiter => limiter.close()))
})

const program = fileURLToPath(new URL('lease-caller.mjs', import.meta.url))

function startCaller(
  rule: RuleOptions,
  ms: number,
): { child: ChildProcess; begun: Promise<unknown>; passed: () => number } {
  const child = spawn(process.execPath, [program, url, JSON.stringify(rule), `${ms}`], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let text = ''
  child.stdout!.setEncoding('utf8').on('data', piece => {
    text += piece
  })
  return { child, begun: once(child.stdout!, 'data'), passed: () => text.split('.').length - 1 }
}

test('a process that is killed or stopped with leased permits adds no calls, and takes a bounded part with it', async () => {
  const limit = 4000
  const rule = { ...ruleOf('sliding-window', limit), id: 'killed' }
  const own = await createLimiter({ store: { redis: url, timeout: '2s' }, rules: [rule] })
  const [killed, stopped] = [startCaller(rule, 10_000), startCaller(rule, 3200)]
  const ends = [killed, stopped].map(({ child }) => once(child, 'close'))
  try {
    await Promise.all([killed.begun, stopped.begun])
    await pause(500)
    stopped.child.kill('SIGSTOP')
    killed.child.kill('SIGKILL')
    // longer than a lease lasts
    await pause(1900)
    let passed = 0
    const ann = callOf('ann')
    const burst = async (): Promise<void> => {
      const verdicts = await Promise.all(Array.from({ length: 200 }, () => own.check(ann)))
      passed += verdicts.filter(({ allowed }) => allowed).length
    }
    for (let n = 0; n < 8; n++) await burst()
    stopped.child.kill('SIGCONT')
    for (let n = 0; n < 10; n++) {
      await burst()
      await pause(20)
    }
    await Promise.all(ends)
    for (let n = 0; n < 20; n++) {
      await burst()
      await pause(30)
    }
    const total = passed + killed.passed() + stopped.passed()
    expect(killed.passed()).toBeGreaterThan(50)
    expect(total).toBeLessThanOrEqual(limit)
    // what the two held counts as used: about a tenth of the limit at most
    expect(total).toBeGreaterThanOrEqual(limit * 0.88)
  } finally {
    for (const { child } of [killed, stopped]) child.kill('SIGKILL')
    await own.close()
  }
})
