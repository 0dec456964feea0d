import { randomRuns } from '@test/random-runs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createTestDecider } from '../testing/test-decider.ts'
import type { TimelineRule } from '../testing/timeline.ts'
import type { Decider } from './decider.ts'
import type { Receipt } from './receipt.ts'

const aMomentIn2026 = 1_794_712_345_678_901
const SECOND = 1_000_000

const callOf = (key: string) => ({ method: 'GET', path: '/', attributes: { key } })

/** Every bit that a judge has counted for some keys, and for those it does not know. */
function bitsOf(judge: Decider, keys: readonly string[]): string {
  const parts = judge.rules.flatMap(({ table }) => {
    const slots = [0, ...keys.map(key => table.find(key))]
    const numbers = table.meters.reduce((sum, meter) => sum + meter.slots, 0)
    const states = slots.map(slot => table.state(slot).slice(table.base(slot), table.base(slot) + numbers))
    return [table.keys, ...slots, ...states.map(state => Buffer.from(state.buffer).toString('latin1'))]
  })
  return parts.join(' ')
}

const rule: fc.Arbitrary<TimelineRule> = fc.constantFrom<TimelineRule>(
  { limit: '3/s' },
  { limit: ['30/s', '7/100ms'] },
  { limit: ['40/s', '25/100ms'] },
  { limit: '5/s', algorithm: 'sliding-log' },
  { limit: ['9/s', '2/100ms'], algorithm: 'sliding-log' },
  { limit: '2/s', algorithm: 'fixed-window' },
  { limit: ['9/s', '4/50ms'], algorithm: 'fixed-window', align: 'first-call' },
  { limit: '3/s', burst: 5, algorithm: 'token-bucket' },
  { limit: ['3/s', '2/100ms'], algorithm: 'token-bucket', start: 'empty' },
  { limit: ['9/s', '2/100ms'], algorithm: 'token-bucket', refill: 'interval' },
  { limit: '3/s', burst: 2, algorithm: 'leaky-bucket' },
  { limit: '3/s', algorithm: 'warm-up', warmUp: '2s' },
  { limit: 4, algorithm: 'concurrency' },
)
const waitingRule: fc.Arbitrary<TimelineRule> = fc.constantFrom<TimelineRule>(
  { limit: '3/s', whenFull: 'wait', queue: { timeout: '300ms' } },
  { limit: ['30/s', '7/100ms'], whenFull: 'wait' },
  { limit: '2/s', algorithm: 'fixed-window', whenFull: 'wait' },
  { limit: '3/s', burst: 5, algorithm: 'token-bucket', whenFull: 'wait' },
  { limit: '3/s', burst: 5, algorithm: 'token-bucket', refill: 'interval', whenFull: 'wait' },
  { limit: '3/s', burst: 2, algorithm: 'leaky-bucket', whenFull: 'wait' },
  { limit: '3/s', algorithm: 'warm-up', warmUp: '2s', whenFull: 'wait' },
)
const rules = fc.array(fc.oneof(rule, waitingRule), { minLength: 1, maxLength: 6 })
const steps = fc.array(
  fc.record({
    key: fc.constantFrom('a', 'b'),
    gapUs: fc.oneof(fc.constant(0), fc.constant(0), fc.nat(200_000), fc.nat(3 * SECOND)),
    cost: fc.constantFrom(1, 1, 1, 0, 2, 5, 100),
  }),
  { minLength: 1, maxLength: 40, size: 'max' },
)

describe('a call judged by several rules', () => {
  it('a call that one of several rules refuses is charged by none', () => {
    const judge = createTestDecider([
      { limit: '100/s' },
      { limit: '50/m', algorithm: 'token-bucket' },
      { limit: '2/h' },
      { limit: '9/d' },
    ])
    const remaining = (): number[] =>
      judge.lookLocal(callOf('a'), 0, aMomentIn2026).decisions.map(decision => decision.remaining)
    expect([1, 2].map(() => judge.takeLocal(callOf('a'), 1, aMomentIn2026).allowed)).toEqual([true, true])
    expect(remaining()).toEqual([98, 48, 0, 7])
    for (let again = 0; again < 50; again++) {
      expect(judge.takeLocal(callOf('a'), 1, aMomentIn2026)).toMatchObject({
        allowed: false,
        rule: 'rule-2',
        reason: 'limit',
      })
    }
    expect(remaining()).toEqual([98, 48, 0, 7])
  })

  it('a refused call, or one of cost 0, leaves every state unchanged, for any rules', () => {
    const property = fc.property(rules, steps, (rules, steps) => {
      // a bucket that starts empty stores when its first call came
      const judge = createTestDecider(rules.filter(({ start }) => start !== 'empty'))
      let now = aMomentIn2026
      for (const { key, gapUs, cost } of judge.rules.length === 0 ? [] : steps) {
        now += gapUs
        const before = bitsOf(judge, ['a', 'b'])
        const { allowed } = judge.takeLocal(callOf(key), cost, now)
        if (!allowed || cost === 0) expect(bitsOf(judge, ['a', 'b'])).toBe(before)
        else expect(bitsOf(judge, ['a', 'b'])).not.toBe(before)
      }
    })
    fc.assert(property, { numRuns: randomRuns(150) })
  })

  it('a call starts an initially empty bucket once, also if another rule refuses it, and a peek never does', () => {
    const empty = { limit: '1/s', burst: 5, algorithm: 'token-bucket', start: 'empty' }
    const judge = createTestDecider([{ limit: '0/s', algorithm: 'fixed-window' }, empty])
    const untouched = bitsOf(judge, ['a'])
    judge.lookLocal(callOf('a'), 1, aMomentIn2026)
    judge.takeLocal(callOf('a'), 0, aMomentIn2026)
    expect(bitsOf(judge, ['a'])).toBe(untouched)
    judge.takeLocal(callOf('a'), 1, aMomentIn2026)
    const begun = bitsOf(judge, ['a'])
    expect(begun).not.toBe(untouched)
    const { decisions } = judge.takeLocal(callOf('a'), 1, aMomentIn2026 + 3 * SECOND)
    expect(bitsOf(judge, ['a'])).toBe(begun)
    expect(decisions.map(({ remaining }) => remaining)).toEqual([0, 3])
  })

  it('a peek changes nothing and returns the answer that the call will get', () => {
    const property = fc.property(rules, steps, (rules, steps) => {
      const judge = createTestDecider(rules)
      let now = aMomentIn2026
      for (const { key, gapUs, cost } of steps) {
        now += gapUs
        const before = bitsOf(judge, ['a', 'b'])
        const { allowed, waitMs, retryAfterMs, rule } = judge.lookLocal(callOf(key), cost, now)
        expect(bitsOf(judge, ['a', 'b'])).toBe(before)
        expect(judge.takeLocal(callOf(key), cost, now)).toMatchObject({ allowed, waitMs, retryAfterMs, rule })
      }
    })
    fc.assert(property, { numRuns: randomRuns(100) })
  })

  it('a refused call passes at its announced moment, and not a microsecond before, by all its rules and levels', () => {
    const property = fc.property(rules, steps, (rules, steps) => {
      const judge = createTestDecider(rules)
      let now = aMomentIn2026
      for (const { key, gapUs, cost } of steps) {
        now += gapUs
        const { allowed, retryAfterMs } = judge.takeLocal(callOf(key), cost, now)
        if (allowed) expect(retryAfterMs).toBe(0)
        if (allowed || retryAfterMs === Number.POSITIVE_INFINITY) continue
        const retry = now + Math.round(retryAfterMs * 1000)
        expect(judge.lookLocal(callOf(key), cost, retry).allowed).toBe(true)
        expect(judge.lookLocal(callOf(key), cost, retry - 1).allowed).toBe(false)
        if (retry - 1000 > now) expect(judge.lookLocal(callOf(key), cost, retry - 1000).allowed).toBe(false)
      }
    })
    fc.assert(property, { numRuns: randomRuns(150) })
  })

  it('a refused call gets the rule that takes longest', () => {
    const judge = createTestDecider([
      { limit: '1/s', algorithm: 'token-bucket' },
      { limit: '1/m', algorithm: 'token-bucket' },
      { limit: '1/10s', algorithm: 'token-bucket' },
    ])
    judge.takeLocal(callOf('a'), 1, aMomentIn2026)
    const verdict = judge.takeLocal(callOf('a'), 1, aMomentIn2026)
    expect(verdict).toMatchObject({ allowed: false, rule: 'rule-1', retryAfterMs: 60_000 })
    expect(verdict.decisions.map(decision => decision.retryAfterMs)).toEqual([1000, 60_000, 10_000])
  })
})

describe('a shadow rule', () => {
  it('a shadow rule refuses nothing, counts what passes, and reports what it would have refused', () => {
    const judge = createTestDecider([{ limit: '2/s', whenFull: 'shadow' }])
    const answers = [1, 2, 3].map(() => judge.takeLocal(callOf('a'), 1, aMomentIn2026))
    expect(answers.map(({ allowed, rule, retryAfterMs }) => [allowed, rule, retryAfterMs])).toEqual(
      Array(3).fill([true, undefined, 0]),
    )
    expect(answers.map(({ decisions: [decision] }) => [decision!.allowed, decision!.remaining])).toEqual([
      [true, 1],
      [true, 0],
      [false, 0],
    ])
    expect(answers[2]!.decisions[0]).toMatchObject({ shadow: true, retryAfterMs: 1000 })
  })

  it('a shadow rule changes nothing for enforced rules', () => {
    const property = fc.property(
      rules,
      fc.array(rule, { minLength: 1, maxLength: 3 }),
      steps,
      (rules, shadows, steps) => {
        const alone = createTestDecider(rules)
        const shadowed = createTestDecider([
          ...rules,
          ...shadows.map(shadow => ({ ...shadow, whenFull: 'shadow' as const })),
        ])
        let now = aMomentIn2026
        for (const { key, gapUs, cost } of steps) {
          now += gapUs
          const [one, other] = [alone.takeLocal(callOf(key), cost, now), shadowed.takeLocal(callOf(key), cost, now)]
          const parts = ({ allowed, rule, reason, waitMs, retryAfterMs }: typeof one) => [
            allowed,
            rule,
            reason,
            waitMs,
            retryAfterMs,
          ]
          expect(parts(other)).toEqual(parts(one))
          expect(other.decisions.filter(({ shadow }) => !shadow)).toEqual(one.decisions)
        }
      },
    )
    fc.assert(property, { numRuns: randomRuns(100) })
  })
})

describe('concurrency slots', () => {
  it('a concurrency slot is released exactly once', () => {
    const released: (readonly Receipt[])[] = []
    const judge = createTestDecider([{ limit: 2, algorithm: 'concurrency' }, { limit: '100/s' }], receipts =>
      released.push(receipts),
    )
    const first = judge.takeLocal(callOf('a'), 1, aMomentIn2026)
    first.release()
    first.release()
    expect(released).toHaveLength(1)
    expect(released[0]!.map(({ state, key, cost }) => [state.rule.id, key, cost])).toEqual([
      ['rule-0', 'a', 1],
      ['rule-1', 'a', 1],
    ])
  })

  it('a refused call holds no concurrency slot', () => {
    const released: (readonly Receipt[])[] = []
    const judge = createTestDecider([{ limit: 2, algorithm: 'concurrency' }, { limit: '0/s' }], receipts =>
      released.push(receipts),
    )
    judge.takeLocal(callOf('a'), 1, aMomentIn2026).release()
    expect(released.flat()).toEqual([])
    expect(judge.lookLocal(callOf('a'), 1, aMomentIn2026).decisions[0]!.remaining).toBe(2)
  })

  it('a call may wait for a concurrency slot if only that is missing', () => {
    const house: TimelineRule = { limit: 1, algorithm: 'concurrency', whenFull: 'wait' }
    const [open, busy] = [createTestDecider([house]), createTestDecider([house, { limit: '1/h' }])]
    for (const judge of [open, busy]) judge.takeLocal(callOf('a'), 1, aMomentIn2026)
    expect(open.takeLocal(callOf('a'), 1, aMomentIn2026).exhaustedRule?.rule.id).toBe('rule-0')
    expect(busy.takeLocal(callOf('a'), 1, aMomentIn2026).exhaustedRule).toBeUndefined()
    expect(open.takeLocal(callOf('a'), 2, aMomentIn2026), 'more than there ever are').toMatchObject({
      exhaustedRule: undefined,
      allowed: false,
    })
    expect(
      createTestDecider([{ limit: 0, algorithm: 'concurrency' }]).takeLocal(callOf('a'), 1, aMomentIn2026)
        .exhaustedRule,
    ).toBeUndefined()
  })
})

describe('a queue', () => {
  it('a full queue refuses at once, with queue-full as the reason', () => {
    const judge = createTestDecider([
      { limit: '10/s', algorithm: 'leaky-bucket', burst: 5, whenFull: 'wait', queue: { size: 1 } },
    ])
    judge.takeLocal(callOf('a'), 1, aMomentIn2026)
    expect(judge.takeLocal(callOf('a'), 1, aMomentIn2026)).toMatchObject({ allowed: true, waitMs: 100 })
    judge.rules[0]!.waiting = 1
    expect(judge.takeLocal(callOf('a'), 1, aMomentIn2026)).toMatchObject({
      allowed: false,
      reason: 'queue-full',
      retryAfterMs: 200,
    })
    judge.rules[0]!.waiting = 0
    expect(judge.takeLocal(callOf('a'), 1, aMomentIn2026)).toMatchObject({ allowed: true, waitMs: 200 })
  })
})
