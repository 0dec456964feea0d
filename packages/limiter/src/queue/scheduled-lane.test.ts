import { PlainWaiting } from '@test/queue/plain-scheduled-calls'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { PendingVerdict } from '../decision/pending-verdict.ts'
import { createTestDecider } from '../testing/test-decider.ts'
import type { TimelineRule } from '../testing/timeline.ts'
import { ScheduledCalls } from './scheduled-calls.ts'

beforeEach(() => {
  vi.useFakeTimers({ now: Date.UTC(2026, 10, 15) })
})
afterEach(() => {
  vi.useRealTimers()
})

interface Step {
  readonly gapMs: number
  readonly cost: number
  readonly key: string
  /** Which of those who wait give up, state from the front. */
  readonly leave: readonly number[]
}

/** What became of a call, in milliseconds after the start. */
interface Fate {
  readonly key: string
  readonly allowed: boolean
  passedAt?: number
  waitMs?: number
  left?: unknown
}

/** Walks over calls that come and give up, and writes down what became of each, and what was left after each step. */
async function walk(
  Kind: typeof ScheduledCalls | typeof PlainWaiting,
  rules: readonly TimelineRule[],
  steps: readonly Step[],
) {
  vi.setSystemTime(Date.UTC(2026, 10, 15))
  const start = Date.now()
  const now = (): number => Date.now() * 1000
  const judge = createTestDecider(rules)
  const fates: Fate[] = []
  const left: unknown[] = []
  let freed = 0
  const waiting = new Kind({
    now,
    onFreed: receipts => {
      freed += receipts.length
    },
  })
  const callOf = (key: string) => ({ method: 'GET', path: '/', attributes: { key } })
  const open = new Map<Fate, () => void>()
  const look = () => {
    const remaining = ['a', 'b'].flatMap(key =>
      judge.lookLocal(callOf(key), 0, now()).decisions.map(one => one.remaining),
    )
    left.push([remaining, judge.rules.map(rule => rule.waiting), freed])
  }
  for (const { gapMs, cost, key, leave } of steps) {
    await vi.advanceTimersByTimeAsync(gapMs)
    const pending = judge.takeLocal(callOf(key), cost, now())
    const fate: Fate = { key, allowed: pending.allowed }
    fates.push(fate)
    if (pending.allowed && pending.waitMs > 0) {
      const controller = new AbortController()
      open.set(fate, () => controller.abort('left'))
      const passed = ({ waitMs }: PendingVerdict) => {
        open.delete(fate)
        Object.assign(fate, { passedAt: Date.now() - start, waitMs })
      }
      waiting.hold(pending, now(), { signal: controller.signal }).then(passed, reason => {
        open.delete(fate)
        fate.left = reason
      })
    }
    const all = [...open.values()]
    for (const place of leave) all[place]?.()
    await vi.advanceTimersByTimeAsync(0)
    look()
  }
  await vi.advanceTimersByTimeAsync(100_000)
  look()
  return { fates, left, timers: vi.getTimerCount() }
}

const queue = { timeout: '5s', size: 1000 }
const rules: Readonly<Record<string, readonly TimelineRule[]>> = {
  'a leak': [{ limit: '10/s', algorithm: 'leaky-bucket', burst: 30, whenFull: 'wait', queue }],
  'a leak of an odd rate': [{ limit: '7/s', algorithm: 'leaky-bucket', burst: 30, whenFull: 'wait', queue }],
  'a bucket': [{ limit: '10/s', algorithm: 'token-bucket', burst: 3, whenFull: 'wait', queue }],
  'a bucket that starts empty': [
    { limit: '10/s', algorithm: 'token-bucket', burst: 3, start: 'empty', whenFull: 'wait', queue },
  ],
  'an interval refill': [{ limit: '3/s', algorithm: 'token-bucket', refill: 'interval', whenFull: 'wait', queue }],
  'an interval refill with a small bucket': [
    { limit: '9/s', algorithm: 'token-bucket', burst: 2, refill: 'interval', whenFull: 'wait', queue },
  ],
  'an interval refill with a large bucket': [
    { limit: '2/500ms', algorithm: 'token-bucket', burst: 5, refill: 'interval', whenFull: 'wait', queue },
  ],
  'a sliding log': [{ limit: '3/s', algorithm: 'sliding-log', whenFull: 'wait', queue }],
  'a sliding window': [{ limit: '5/s', whenFull: 'wait', queue }],
  'fixed windows': [{ limit: '3/s', algorithm: 'fixed-window', whenFull: 'wait', queue }],
  'a leak, state by windows besides': [
    { limit: '10/s', algorithm: 'leaky-bucket', burst: 30, whenFull: 'wait', queue },
    { limit: '9/10s', algorithm: 'fixed-window' },
  ],
  'two rules that both let calls wait': [
    { limit: '10/s', algorithm: 'leaky-bucket', burst: 30, whenFull: 'wait', queue },
    { limit: '4/s', algorithm: 'sliding-log', whenFull: 'wait', queue },
  ],
}
const stepOf = (costs: fc.Arbitrary<number>) =>
  fc.record({
    gapMs: fc.oneof(fc.constant(0), fc.nat(60), fc.nat(900)),
    cost: costs,
    key: fc.constantFrom('a', 'a', 'b'),
    leave: fc.oneof(fc.constant([]), fc.constant([]), fc.uniqueArray(fc.nat(8), { maxLength: 3 })),
  })

/** The plain way rounds by a microsecond whenever a call moves up. */
function expectAlike(one: Awaited<ReturnType<typeof walk>>, other: typeof one): void {
  const rounded = (fates: readonly Fate[]) => fates.map(({ passedAt: _, waitMs: __, ...rest }) => rest)
  expect({ ...one, fates: rounded(one.fates) }).toEqual({ ...other, fates: rounded(other.fates) })
  one.fates.forEach(({ waitMs, passedAt }, i) => {
    expect(Math.abs((waitMs ?? 0) - (other.fates[i]!.waitMs ?? 0))).toBeLessThan(0.1)
    expect(Math.abs((passedAt ?? 0) - (other.fates[i]!.passedAt ?? 0))).toBeLessThanOrEqual(1)
  })
}

describe.each(Object.entries(rules))('calls that wait for %s', (_, words) => {
  it.each([
    ['alike', fc.constant(1)],
    ['of several costs', fc.constantFrom(1, 1, 1, 2, 3)],
    ['of one cost above 1', fc.constant(3)],
  ])(
    'waiting calls that are %s pass, move up and are charged as if each were scheduled again',
    async (_kind, costs) => {
      const property = fc.asyncProperty(fc.array(stepOf(costs), { maxLength: 30, size: 'max' }), async steps => {
        expectAlike(await walk(ScheduledCalls, words, steps), await walk(PlainWaiting, words, steps))
      })
      await fc.assert(property, { numRuns: 10 })
    },
  )
})

/** Two that the plain way gets wrong: there a charge cannot be given back exactly unless it came last. */
const more: typeof rules = {
  'a rule of two levels': [{ limit: ['5/s', '2/200ms'], algorithm: 'sliding-log', whenFull: 'wait', queue }],
  'a warm-up': [{ limit: '5/s', algorithm: 'warm-up', warmUp: '2s', whenFull: 'wait', queue }],
}

it.each(Object.entries({ ...rules, ...more }))(
  'calls that wait for %s pass as if the aborted ones had never come',
  async (_, words) => {
    const calls = (count: number, leave: readonly number[]): Step[] =>
      Array.from({ length: count }, (__, i) => ({ gapMs: 0, cost: 1, key: 'a', leave: i + 1 < count ? [] : leave }))
    const leaving = fc.uniqueArray(fc.nat(12), { maxLength: 6 })
    const property = fc.asyncProperty(fc.integer({ min: 4, max: 14 }), leaving, async (count, leave) => {
      const all = await walk(ScheduledCalls, words, calls(count, leave))
      const staying = all.fates.filter(({ allowed, left }) => allowed && left === undefined)
      const { fates } = await walk(ScheduledCalls, words, calls(staying.length, []))
      staying.forEach(({ passedAt }, i) => {
        expect(Math.abs((passedAt ?? 0) - (fates[i]!.passedAt ?? 0))).toBeLessThanOrEqual(1)
      })
    })
    await fc.assert(property, { numRuns: 10 })
  },
)

describe('a call that gives up', () => {
  /** How often meters are asked or moved while one of `size` leaves from the middle, and while the next call comes. */
  async function workOf(size: number): Promise<number> {
    const judge = createTestDecider([
      {
        limit: '1000/s',
        algorithm: 'leaky-bucket',
        burst: 200_000,
        whenFull: 'wait',
        queue: { size: 200_000, timeout: '300s' },
      },
    ])
    const now = (): number => Date.now() * 1000
    const waiting = new ScheduledCalls({ now, onFreed: () => {} })
    const call = { method: 'GET', path: '/', attributes: { key: 'a' } }
    const controllers: AbortController[] = []
    for (let i = 0; i < size; i++) {
      const controller = new AbortController()
      const pending = judge.takeLocal(call, 1, now())
      if (pending.waitMs === 0) continue
      controllers.push(controller)
      waiting.hold(pending, now(), { signal: controller.signal }).catch(() => {})
    }
    const [meter] = judge.rules[0]!.table.meters
    const spies = (['delay', 'take', 'refund', 'remaining', 'idleAt'] as const).map(move => vi.spyOn(meter!, move))
    // timers of the calls that came before are not work of the one that leaves
    const timers = vi.spyOn(globalThis, 'setTimeout').mockClear()
    controllers[size >> 1]!.abort()
    await vi.advanceTimersByTimeAsync(0)
    return [...spies, timers].reduce((sum, spy) => sum + spy.mock.calls.length, 0)
  }

  it('aborting a call costs the same work however many calls wait', async () => {
    const few = await workOf(1000)
    expect(few).toBeGreaterThan(0)
    expect(await workOf(20_000)).toBeLessThanOrEqual(few * 2)
  })
})
