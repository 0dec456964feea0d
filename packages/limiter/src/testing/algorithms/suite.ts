import assert from 'node:assert/strict'
import type { Algorithm, PassResult } from '../../algorithms/algorithm.ts'
import { capacityOf } from '../../algorithms/algorithm.ts'
import { RedisStore } from '../../stores/redis/redis-store.ts'
import type { SendCommand } from '../../stores/redis/send-command.ts'
import { compileRule } from '../compile-rule.ts'
import { OneKey } from '../one-key.ts'
import { StoreComparison } from '../stores/comparison.ts'
import type { SuiteTest } from '../suite-test.ts'
import type { TimelineRule } from '../timeline.ts'
import { type Dice, nextMoment, randomDice } from '../walk.ts'
import { answersOf, momentsAfter, passesOf, type WalkedMeter, walk } from './key-walk.ts'

export interface AlgorithmSuiteOptions {
  readonly algorithm: Algorithm
  /** Rules to test it with: several limits, and every form of its options. */
  readonly rules: readonly Omit<TimelineRule, 'algorithm'>[]
  /** Sends a command to a Redis that may be emptied: the Lua is then compared with the TypeScript. */
  readonly sendToRedis?: SendCommand | undefined
  /** By how much moments may differ after a refund, for arithmetic that rounds; default: 0. */
  readonly toleranceUs?: number | undefined
  /** The number of random walks of each test; default: 50. */
  readonly walks?: number | undefined
}

const STEPS = 40

/** Lists the promises of every algorithm, as tests for any test runner. */
export function algorithmSuite(options: AlgorithmSuiteOptions): readonly SuiteTest[] {
  const { algorithm, rules, sendToRedis, toleranceUs = 0, walks = 50 } = options
  return rules.flatMap(own => {
    const rule = { ...own, algorithm: algorithm.name } as TimelineRule
    const title = `${algorithm.name} with ${JSON.stringify(own)}`
    const subjects = (): WalkedMeter[] => subjectsOf(rule, algorithm)
    const add = (name: string, test: (subject: WalkedMeter, steps: Dice[], start: number) => void): SuiteTest => ({
      name: `${title}: ${name}`,
      run: async () => {
        for (let seed = 1; seed <= walks; seed++) {
          const next = randomDice(seed)
          for (const subject of subjects()) test(subject, Array.from({ length: STEPS }, next), seed)
        }
      },
    })
    const tests = [
      add('delay, remaining and idleAt change no state, and a cost of 0 passes', readsOnly),
      add('a refused call passes at the moment that delay announces, and not before', announcesMoments),
      add('a key that is forgotten once it is idle gets the same answers', forgetsIdleKeys),
      add('what remains passes at once, and one more does not', remainingPasses),
      add('a refund frees at most what the call took', (...walked) => refundsAtMost(...walked, toleranceUs)),
      add('pass gives the answers of delay, take, remaining and idleAt', passAgrees),
    ]
    if (!sendToRedis) return tests
    const name = `${title}: Redis and memory give the same answers`
    return [...tests, { name, run: () => luaAgrees(rule, algorithm, sendToRedis, walks) }]
  })
}

function subjectsOf(rule: TimelineRule, algorithm: Algorithm): WalkedMeter[] {
  const { limits, meters } = compileRule(rule, {}, [algorithm])
  return meters.map((meter, level) => {
    const { count, periodMs } = limits[level]!
    const limit = { count: Math.max(1, count), periodMs: periodMs || 1000 }
    return { limit, meter, most: Math.min(capacityOf(meter), 1_000_000) }
  })
}

function readsOnly(subject: WalkedMeter, steps: readonly Dice[], start: number): void {
  walk(subject, start, steps, (key, now) => {
    const before = key.bits()
    answersOf(key, now, subject)
    key.idleAt()
    assert.equal(key.delay(now, 0), 0, 'the delay of a call with cost 0')
    assert.equal(key.bits(), before, 'the state after it was read')
  })
}

function announcesMoments(subject: WalkedMeter, steps: readonly Dice[], start: number): void {
  const { maxWaitUs } = subject.meter
  walk(subject, start, steps, (key, now, cost) => {
    const delay = key.delay(now, cost)
    if (delay <= maxWaitUs || delay === Number.POSITIVE_INFINITY) return
    const retryAt = now + delay - maxWaitUs
    assert.equal(key.delay(retryAt, cost), maxWaitUs, `the delay at ${retryAt}, the announced moment`)
    assert.equal(key.delay(retryAt - 1, cost), maxWaitUs + 1, `the delay a microsecond before ${retryAt}`)
  })
}

function forgetsIdleKeys(subject: WalkedMeter, steps: readonly Dice[], start: number): void {
  const forgetful = new OneKey(subject.meter)
  walk(subject, start, steps, (key, now, cost) => {
    if (forgetful.idleAt() <= now) forgetful.forget()
    forgetful.begin(now)
    assert.deepEqual(answersOf(forgetful, now, subject), answersOf(key, now, subject), `the answers at ${now}`)
    forgetful.take(now, cost)
  })
}

function remainingPasses(subject: WalkedMeter, steps: readonly Dice[], start: number): void {
  // an algorithm may admit any cost at once, and make the next call wait for it
  const admitsAny = new OneKey(subject.meter).delay(0, Number.MAX_SAFE_INTEGER) === 0
  walk(subject, start, steps, (key, now) => {
    const remaining = key.remaining(now)
    assert.equal(key.delay(now, remaining), 0, `the delay of a call with cost ${remaining}, which remains`)
    if (!admitsAny)
      assert.ok(key.delay(now, remaining + 1) > 0, `cost ${remaining + 1} passes, but ${remaining} remains`)
  })
}

function refundsAtMost(subject: WalkedMeter, steps: readonly Dice[], start: number, toleranceUs: number): void {
  walk(subject, start, steps, (without, now, cost, [kind = 0, size = 0]) => {
    const kept = without.clone()
    const moment = kept.take(now, cost)
    if (moment === undefined || cost === 0) return
    const refunded = kept.clone()
    const later = nextMoment(now, [kind % 8, size], subject.limit, 0)
    refunded.giveBack(later, cost, moment)
    if (subject.meter.rate?.start && momentsAfter(later, subject).some(at => without.idleAt() <= at)) return
    const [earliest, latest] = [passesOf(without, later, subject), passesOf(kept, later, subject)]
    passesOf(refunded, later, subject).forEach((passes, i) => {
      const isBetween = passes >= earliest[i]! - toleranceUs && passes <= latest[i]! + toleranceUs
      assert.ok(
        isBetween,
        `refunded at ${later}, cost ${cost} of ${moment}: a call passes at ${passes}, not from ${earliest[i]} to ${latest[i]}`,
      )
    })
  })
}

function passAgrees(subject: WalkedMeter, steps: readonly Dice[], start: number): void {
  const { meter } = subject
  if (!meter.memory) return
  const state = new Float64Array(meter.slots)
  const result: PassResult = { delay: 0, remaining: 0, idleAt: 0 }
  walk(subject, start, steps, (key, now, cost) => {
    if (cost === 0) return
    const before = state.slice()
    const passes = meter.memory!.pass(state, 0, now, cost, result)
    assert.equal(passes, key.delay(now, cost) === 0, `whether cost ${cost} passes at ${now}`)
    if (!passes) assert.equal(result.delay, key.delay(now, cost), 'the delay of a refused call')
    if (!passes) assert.deepEqual(state, before, 'the state after a refused call')
    const expected = key.clone()
    if (passes) expected.take(now, cost)
    assert.equal(result.remaining, expected.remaining(now), `what remains at ${now}`)
    state.set((key.delay(now, cost) <= meter.maxWaitUs ? takenOf(key, now, cost) : key).numbers())
  })
}

function takenOf(key: OneKey, now: number, cost: number): OneKey {
  const taken = key.clone()
  taken.take(now, cost)
  return taken
}

async function luaAgrees(rule: TimelineRule, algorithm: Algorithm, send: SendCommand, walks: number): Promise<void> {
  const compiled = compileRule(rule, {}, [algorithm])
  assert.ok(
    compiled.meters.every(({ redis }) => redis),
    'a meter has no Lua, so its rules are counted in one process only',
  )
  for (let seed = 1; seed <= walks; seed++) {
    const clock = { now: 0 }
    const store = new RedisStore(send, { prefix: `suite${seed}`, now: () => clock.now })
    try {
      await send(['FLUSHALL'])
      const comparison = new StoreComparison(store, clock, [compiled], seed)
      const next = randomDice(seed)
      for (let step = 0; step < STEPS; step++) await comparison.step(next())
    } finally {
      store.close()
    }
  }
}
