import { randomRuns } from '@test/random-runs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createLimiter } from '../../packages/limiter/src/create/create-limiter.ts'
import { engineOf } from '../../packages/limiter/src/engine/engine-of.ts'
import type { Limiter } from '../../packages/limiter/src/limiter.ts'
import type { Verdict } from '../../packages/limiter/src/verdict.ts'
import { RulesCenter } from '../helpers/sources/rules-center.ts'

interface Settings {
  readonly algorithm: 'adaptive' | 'concurrency'
  readonly limit: number
  readonly min: number
  readonly whenFull: 'refuse' | 'shadow' | 'wait'
}

type Step =
  | { readonly do: 'call'; readonly key: number; readonly level: string; readonly cost: number }
  | { readonly do: 'end'; readonly which: number; readonly how: Ending; readonly twice: Ending | undefined }
  | { readonly do: 'leave'; readonly which: number }
  | { readonly do: 'pass'; readonly ms: number }
  | { readonly do: 'burst'; readonly key: number; readonly calls: number; readonly ms: number }
  | { readonly do: 'change'; readonly settings: Settings }

type Ending = 'answered' | 'failed' | 'late' | 'left' | 'thrown' | 'released' | 'refunded'

const KEYS = 12
const levels = ['default', 'critical', 'sheddable'] as const
const endings: readonly Ending[] = ['answered', 'failed', 'late', 'left', 'thrown', 'released', 'refunded']
const priority = (['critical', 'sheddable'] as const).map(level => ({ match: { path: `/${level}` }, level }))
const first: Settings = { algorithm: 'adaptive', limit: 20, min: 2, whenFull: 'refuse' }

const ending = fc.constantFrom(...endings)
const key = fc.nat(KEYS - 1)
const settings: fc.Arbitrary<Settings> = fc
  .record({
    algorithm: fc.constantFrom('adaptive', 'adaptive', 'concurrency'),
    limit: fc.integer({ min: 1, max: 40 }),
    min: fc.integer({ min: 1, max: 8 }),
    whenFull: fc.constantFrom('refuse', 'refuse', 'shadow', 'wait'),
  })
  .map(all => ({
    ...all,
    min: Math.min(all.min, all.limit),
    // in shadow, a call that costs more than the limit of `concurrency` passes uncounted
    whenFull: all.algorithm === 'concurrency' && all.whenFull === 'shadow' ? 'refuse' : all.whenFull,
  }))
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('call'),
      key,
      level: fc.constantFrom(...levels),
      cost: fc.integer({ min: 0, max: 3 }),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('end'),
      which: fc.nat(),
      how: ending,
      twice: fc.option(ending, { nil: undefined }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('leave'), which: fc.nat() }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('pass'), ms: fc.oneof(fc.nat(200), fc.constantFrom(700_000, 7_200_000)) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('burst'),
      key,
      calls: fc.integer({ min: 1, max: 60 }),
      ms: fc.integer({ min: 1, max: 300 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('change'), settings }) },
) as fc.Arbitrary<Step>

interface Held {
  readonly key: string
  readonly cost: number
  readonly verdict: Verdict
  /** How often the algorithm had changed: another algorithm begins to count again. */
  readonly era: number
}

/** A limiter in virtual time whose rule for each account changes, and the calls that are in flight. */
class Walk {
  readonly held: Held[] = []
  readonly #time: { ms: number }
  readonly #limiter: Limiter
  readonly #change: (settings: Settings) => Promise<void>
  readonly #maxKeys: number
  readonly #waiting: AbortController[] = []
  #settings = first
  #era = 0

  private constructor(
    limiter: Limiter,
    change: (settings: Settings) => Promise<void>,
    time: { ms: number },
    maxKeys: number,
  ) {
    this.#limiter = limiter
    this.#change = change
    this.#time = time
    this.#maxKeys = maxKeys
  }

  static async start(maxKeys: number): Promise<Walk> {
    const time = { ms: 1_000_000_000 }
    const center = new RulesCenter(ruleBy(first))
    const options = {
      ...center.options,
      priority,
      maxKeys,
      clock: () => time.ms,
    }
    const limiter = await createLimiter(options)
    let last = ruleBy(first)
    const change = async (settings: Settings): Promise<void> => {
      const rule = ruleBy(settings)
      // rules that stay the same are not reported
      if (JSON.stringify(rule) === JSON.stringify(last)) return
      last = rule
      await center.change([limiter], rule)
    }
    return new Walk(limiter, change, time, maxKeys)
  }

  async take(step: Step): Promise<void> {
    const before = this.#counts()
    if (step.do === 'call') this.#call(before, `u${step.key}`, step.level, step.cost)
    else if (step.do === 'burst') this.#burst(`u${step.key}`, step.calls, step.ms)
    else if (step.do === 'end') this.#end(step.which, step.how, step.twice)
    else if (step.do === 'leave') this.#waiting.splice(step.which % (this.#waiting.length + 1), 1)[0]?.abort()
    else if (step.do === 'pass') this.#pass(step.ms)
    else {
      if (step.settings.algorithm !== this.#settings.algorithm) this.#era++
      await this.#change(step.settings)
      this.#settings = step.settings
    }
    await settled()
    this.#check(before)
  }

  /** Ends everything, and closes the limiter. */
  async finish(): Promise<void> {
    for (const leaving of this.#waiting) leaving.abort()
    while (this.held.length > 0) {
      this.#end(0, 'answered', undefined)
      await settled()
    }
    expect([...this.#counts().values()].filter(count => count !== 0)).toEqual([])
    expect(this.#limiter.status().rules[0]?.waiting).toBe(0)
    this.#pass(7_200_000)
    expect(engineOf(this.#limiter).store.keys).toBe(0)
    await this.#limiter.close()
  }

  #call(before: ReadonlyMap<string, number>, key: string, level: string, cost: number): void {
    const leaving = new AbortController()
    const call = { method: 'GET', path: `/${level}`, ip: '203.0.113.9', attributes: { account: key } }
    const decided = this.#limiter.decide(call, { cost, signal: leaving.signal })
    const { algorithm, min } = this.#settings
    if (algorithm === 'adaptive' && (before.get(key) ?? 0) + cost <= min && this.#maxKeys > KEYS) {
      expect(decided).toMatchObject({ allowed: true })
    }
    const hold = (verdict: Verdict): void => {
      if (verdict.allowed) this.held.push({ key, cost, verdict, era: this.#era })
    }
    if (!(decided instanceof Promise)) hold(decided)
    else {
      this.#waiting.push(leaving)
      decided.then(hold, () => {})
    }
  }

  /** Calls one after another, so that the rule learns something. */
  #burst(key: string, calls: number, ms: number): void {
    const call = { method: 'GET', path: '/default', ip: '203.0.113.9', attributes: { account: key } }
    for (let i = 0; i < calls; i++) {
      const verdict = this.#limiter.decide(call, { signal: AbortSignal.abort() })
      this.#time.ms += ms
      if (!(verdict instanceof Promise)) verdict.end({ status: 200 })
      else verdict.catch(() => {})
    }
  }

  #end(which: number, how: Ending, twice: Ending | undefined): void {
    if (this.held.length === 0) return
    const [{ verdict }] = this.held.splice(which % this.held.length, 1) as [Held]
    for (const way of twice === undefined ? [how] : [how, twice]) endBy(verdict, way)
  }

  #pass(ms: number): void {
    this.#time.ms += ms
    engineOf(this.#limiter).store.sweep(1000, this.#time.ms * 1000)
  }

  /** What the rule counts as in flight, by key. */
  #counts(): Map<string, number> {
    const { table } = engineOf(this.#limiter).decider.rules[0]!
    const nowUs = this.#time.ms * 1000
    const counts = new Map<string, number>()
    for (const [key] of table.entries()) {
      const slot = table.find(key)
      // both algorithms count at the beginning of their state
      counts.set(key, table.state(slot)[table.base(slot)]!)
      const estimate = table.meters[0]!.held?.learns?.estimate(table.state(slot), table.base(slot), nowUs)
      if (estimate) this.#checkEstimate(estimate)
    }
    return counts
  }

  #checkEstimate({
    limit,
    inFlight,
    perSecond,
    baseMs,
  }: {
    limit: number
    inFlight: number
    perSecond: number
    baseMs: number
  }): void {
    expect(limit).toBeGreaterThanOrEqual(this.#settings.min)
    expect(limit).toBeLessThanOrEqual(this.#settings.limit)
    for (const number of [inFlight, perSecond, baseMs])
      expect(number >= 0 && Number.isFinite(number), `${inFlight} ${perSecond} ${baseMs}`).toBe(true)
  }

  #check(before: ReadonlyMap<string, number>): void {
    const counts = this.#counts()
    const held = this.held.reduce((sum, { cost, era }) => (era === this.#era ? sum + cost : sum), 0)
    expect([...counts.values()].reduce((sum, count) => sum + count, 0)).toBe(held)
    for (const [key, count] of counts) {
      // what shadow or a higher limit has admitted stays; nothing is added to it
      if (this.#settings.whenFull !== 'shadow') {
        expect(count).toBeLessThanOrEqual(Math.max(this.#settings.limit, before.get(key) ?? 0))
      }
    }
    expect(engineOf(this.#limiter).store.keys).toBeLessThanOrEqual(this.#maxKeys + 1)
  }
}

function endBy(verdict: Verdict, how: Ending): void {
  if (how === 'refunded') void verdict.refund()
  else if (how === 'released') verdict.release()
  else if (how === 'thrown') verdict.end({ failed: true })
  else verdict.end({ status: { answered: 200, failed: 500, late: 504, left: undefined }[how] })
}

function ruleBy({ algorithm, limit, min, whenFull }: Settings): object {
  const wait = whenFull === 'wait' ? { queue: { size: 5, timeout: '1h' } } : {}
  return {
    id: 'service',
    algorithm,
    by: 'account',
    limit,
    whenFull,
    ...(algorithm === 'adaptive' ? { min } : {}),
    ...wait,
  }
}

const settled = (): Promise<void> => new Promise(resolve => setImmediate(resolve))

describe('random walks of an adaptive rule by key', () => {
  it.each([
    ['with room for all keys', 1000],
    ['with more keys than memory may hold', 5],
  ])('slots never leak, and limit and min are kept: %s', async (_title, maxKeys) => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 120 }), async steps => {
        const walk = await Walk.start(maxKeys)
        for (const step of steps) await walk.take(step)
        await walk.finish()
      }),
      { numRuns: randomRuns(24) },
    )
  })
})
