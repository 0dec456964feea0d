import { randomRuns } from '@test/random-runs'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { PendingVerdict } from '../decision/pending-verdict.ts'
import { createTestDecider } from '../testing/test-decider.ts'
import type { TimelineRule } from '../testing/timeline.ts'
import { ScheduledCalls } from './scheduled-calls.ts'

const DAY = 86_400_000

beforeEach(() => {
  vi.useFakeTimers({ now: Date.UTC(2026, 10, 15) })
})

afterEach(() => {
  vi.useRealTimers()
})

interface Waited {
  /** Milliseconds after the start at which it passed. */
  at?: number
  verdict?: PendingVerdict
  gaveUp?: unknown
  abort(): void
}

/** Rules, and calls that wait for them on the clock of the test. */
function house(...words: readonly TimelineRule[]) {
  const start = Date.now()
  const now = (): number => Date.now() * 1000
  const judge = createTestDecider(words)
  const freed = vi.fn()
  const waiting = new ScheduledCalls({ now, onFreed: freed })
  const callOf = (key: string) => ({ method: 'GET', path: '/', attributes: { key } })
  const call = (cost = 1, key = 'a', rest: AbortSignal = new AbortController().signal): Waited | undefined => {
    const controller = new AbortController()
    const pending = judge.takeLocal(callOf(key), cost, now())
    if (!pending.allowed) return undefined
    const waited: Waited = { abort: () => controller.abort('gave up') }
    const pass = (verdict: PendingVerdict): void => {
      waited.at = Date.now() - start
      waited.verdict = verdict
    }
    if (pending.waitMs === 0) pass(pending)
    else {
      const signal = AbortSignal.any([controller.signal, rest])
      waiting.hold(pending, now(), { signal }).then(pass, reason => {
        waited.gaveUp = reason
      })
    }
    return waited
  }
  const remaining = (key = 'a'): number[] =>
    judge.lookLocal(callOf(key), 0, now()).decisions.map(({ remaining }) => remaining)
  return { call, remaining, judge, freed, atMs: (ms: number) => vi.advanceTimersByTimeAsync(start + ms - Date.now()) }
}

const leaky: TimelineRule = { limit: '10/s', algorithm: 'leaky-bucket', burst: 5, whenFull: 'wait' }

describe('scheduled calls', () => {
  it('scheduled calls pass at their moment, and report how long they waited', async () => {
    const { call, atMs } = house(leaky)
    const calls = [call(), call(), call()]
    await atMs(99)
    expect(calls.map(waited => waited?.at)).toEqual([0, undefined, undefined])
    await atMs(200)
    expect(calls.map(waited => waited?.at)).toEqual([0, 100, 200])
    expect(calls.map(waited => waited?.verdict?.waitMs)).toEqual([0, 100, 200])
    expect(vi.getTimerCount()).toBe(0)
  })

  it('scheduled calls are counted in the queue of the rule they wait for, until they pass', async () => {
    const { call, judge, atMs } = house(leaky, { limit: '100/s', whenFull: 'wait' })
    call()
    call()
    call()
    expect(judge.rules.map(({ waiting }) => waiting)).toEqual([2, 0])
    await atMs(100)
    expect(judge.rules.map(({ waiting }) => waiting)).toEqual([1, 0])
    await atMs(200)
    expect(judge.rules.map(({ waiting }) => waiting)).toEqual([0, 0])
  })

  it('scheduled calls are bounded by the queue, and a call that passes or gives up makes room', async () => {
    const { call, atMs } = house({ ...leaky, queue: { size: 2 } })
    const calls = [call(), call(), call(), call()]
    expect(calls.map(Boolean)).toEqual([true, true, true, false])
    calls[1]!.abort()
    await atMs(0)
    const next = call()
    expect(call()).toBeUndefined()
    await atMs(100)
    expect([calls[2]!.at, next!.at]).toEqual([100, undefined])
    expect(call()).toBeDefined()
  })

  it('scheduled calls wait no longer than the queue allows', () => {
    const { call } = house({ ...leaky, queue: { timeout: '250ms' } })
    expect([call(), call(), call(), call()].map(Boolean)).toEqual([true, true, true, false])
  })

  it('scheduled calls may wait for months, longer than one timer can', async () => {
    const { call, atMs } = house({ limit: '1/30d', algorithm: 'leaky-bucket', burst: 1, whenFull: 'wait' })
    call()
    const waited = call()
    await atMs(30 * DAY - 1)
    expect(waited?.at).toBeUndefined()
    await atMs(30 * DAY)
    expect(waited?.at).toBe(30 * DAY)
  })
})

describe('a call that gives up', () => {
  it('a waiting call that is aborted gets the reason, and later calls move up', async () => {
    const { call, atMs } = house(leaky)
    const [, second, third, fourth] = [call(), call(), call(), call()]
    await atMs(50)
    second!.abort()
    await atMs(50)
    expect(second!.gaveUp).toBe('gave up')
    await atMs(100)
    expect([third!.at, fourth!.at]).toEqual([100, undefined])
    await atMs(200)
    expect(fourth!.at).toBe(200)
    expect([third!.verdict?.waitMs, fourth!.verdict?.waitMs]).toEqual([100, 200])
  })

  it('a waiting call that is aborted does not move earlier calls', async () => {
    const { call, atMs } = house(leaky)
    const calls = [call(), call(), call(), call()]
    calls[3]!.abort()
    await atMs(1000)
    expect(calls.map(waited => waited?.at)).toEqual([0, 100, 200, undefined])
  })

  it('a call that is aborted before it waits is refunded', async () => {
    const { call, remaining, atMs } = house({ ...leaky, delay: 1, burst: 3 })
    call(2)
    const late = call(1, 'a', AbortSignal.abort('too late'))
    await atMs(0)
    expect(late!.gaveUp).toBe('too late')
    await atMs(200)
    expect(remaining()).toEqual([2])
  })

  it('a waiting call that is aborted is refunded by all rules, and releases its slot', async () => {
    const { call, remaining, freed, atMs } = house(leaky, { limit: '5/h' }, { limit: 3, algorithm: 'concurrency' })
    call()
    const second = call()
    expect(remaining().slice(1)).toEqual([3, 1])
    await atMs(50)
    second!.abort()
    await atMs(50)
    expect(remaining().slice(1)).toEqual([4, 2])
    expect(freed).toHaveBeenCalledTimes(1)
    expect(freed.mock.lastCall![0]).toHaveLength(3)
  })

  it('an aborted call does not charge the remaining calls again', async () => {
    const slow: TimelineRule = { limit: '1/s', algorithm: 'leaky-bucket', burst: 5, whenFull: 'wait' }
    const { call, remaining, atMs } = house(slow, { limit: '5/s', algorithm: 'fixed-window' })
    const [, , third, fourth] = [call(), call(), call(), call()]
    await atMs(1500)
    third!.abort()
    await atMs(1500)
    expect(remaining()[1]).toBe(5)
    await atMs(2000)
    expect(fourth!.at).toBe(2000)
  })

  it('an aborted call that came at the same moment as others leaves each of them counted once', async () => {
    const { call, atMs } = house({ limit: '2/s', algorithm: 'sliding-log', whenFull: 'wait', queue: { timeout: '5s' } })
    const calls = Array.from({ length: 8 }, () => call()!)
    calls[7]!.abort()
    calls[2]!.abort()
    await atMs(4000)
    expect(calls.map(({ at }) => at)).toEqual([0, 0, undefined, 1000, 1000, 2000, 2000, undefined])
  })

  it('a thousand waiting calls can be aborted together', async () => {
    const { call, remaining, freed, atMs } = house({ ...leaky, limit: '1000/s', burst: 2000, queue: { size: 5000 } })
    const calls = Array.from({ length: 2000 }, () => call()!)
    for (const waited of calls.slice(1, 1999)) waited.abort()
    await atMs(1)
    expect(calls[1999]!.at).toBe(1)
    expect(freed).toHaveBeenCalledTimes(1)
    await atMs(2)
    expect(remaining()).toEqual([1])
  })

  it('an aborted call does not affect callers of another key', async () => {
    const { call, atMs } = house(leaky)
    const [, mine, , theirs] = [call(), call(), call(1, 'b'), call(1, 'b')]
    mine!.abort()
    await atMs(100)
    expect(theirs!.at).toBe(100)
  })
})

describe('however calls come and give up', () => {
  const rules: Readonly<Record<string, readonly [rule: TimelineRule, count: number, periodMs: number]>> = {
    'a sliding log': [{ limit: '3/s', algorithm: 'sliding-log' }, 3, 1000],
    'a sliding window': [{ limit: '25/s' }, 25, 1000],
    // one that is full to its end may be followed by one full from its start
    'fixed windows': [{ limit: '3/s', algorithm: 'fixed-window' }, 6, 1000],
    'a bucket': [{ limit: '10/s', algorithm: 'token-bucket', burst: 3 }, 3 + 10, 1000],
    'a bucket that starts empty': [
      { limit: '10/s', algorithm: 'token-bucket', burst: 3, start: 'empty' },
      3 + 10,
      1000,
    ],
    'an interval refill': [{ limit: '3/s', algorithm: 'token-bucket', burst: 4, refill: 'interval' }, 4 + 3, 1000],
    'a leak': [{ limit: '10/s', algorithm: 'leaky-bucket', burst: 9, delay: 2 }, 10 + 10, 1000],
    'two levels': [{ limit: ['5/s', '2/200ms'], algorithm: 'sliding-log' }, 5, 1000],
  }
  const step = fc.record({
    gapMs: fc.oneof(fc.constant(0), fc.nat(100), fc.nat(1500)),
    cost: fc.constantFrom(1, 1, 1, 2, 3),
    aborts: fc.constantFrom(undefined, undefined, 0, 1, 2, 5),
  })

  it.each(Object.entries(rules))(
    'however calls come and give up, %s admits no more than its limit, in the order they came',
    async (_name, [rule, count, periodMs]) => {
      const property = fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 40, size: 'max' }), async steps => {
        const { call, judge, atMs } = house({ ...rule, whenFull: 'wait', queue: { timeout: '3s' } })
        const calls: { waited: Waited; cost: number }[] = []
        let ms = 0
        for (const { gapMs, cost, aborts } of steps) {
          ms += gapMs
          await atMs(ms)
          const waited = call(cost)
          if (waited) calls.push({ waited, cost })
          const waiting = calls.filter(({ waited }) => waited.at === undefined && waited.gaveUp === undefined)
          if (aborts !== undefined) waiting[aborts]?.waited.abort()
        }
        await atMs(ms + 60_000)
        const passed = calls.filter(({ waited }) => waited.gaveUp === undefined)
        const moments = passed.map(({ waited }) => waited.at!)
        expect(moments).toEqual(moments.toSorted((a, b) => a - b))
        for (const from of moments) {
          const inside = passed.filter(({ waited }) => waited.at! >= from && waited.at! < from + periodMs)
          expect(inside.reduce((sum, { cost }) => sum + cost, 0)).toBeLessThanOrEqual(count)
        }
        expect(judge.rules[0]!.waiting).toBe(0)
      })
      await fc.assert(property, { numRuns: randomRuns(50) })
    },
  )
})
