import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createLimiter, type LimiterOptions } from '../create/create-limiter.ts'
import type { Limiter } from '../limiter.ts'
import type { Verdict } from '../verdict.ts'

beforeEach(() => {
  vi.useFakeTimers({ now: Date.UTC(2026, 10, 15) })
})

const open: Limiter[] = []

afterEach(async () => {
  await Promise.all(open.splice(0).map(limiter => limiter.close()))
  vi.useRealTimers()
})

interface WaitingCall {
  /** What it was told in the end; nothing while it waits. */
  verdict?: Verdict
  gaveUp?: unknown
  leave(): void
}

/** A limiter, and calls that stand in line before it. */
async function house(...rules: NonNullable<LimiterOptions['rules']>) {
  const limiter = await createLimiter({ rules, clock: () => Date.now() })
  open.push(limiter)
  const call = (cost = 1, account = 'a', path = '/'): WaitingCall => {
    const controller = new AbortController()
    const queued: WaitingCall = { leave: () => controller.abort('left') }
    const asked = { method: 'GET', path, attributes: { account } }
    limiter.check(asked, { cost, signal: controller.signal }).then(
      verdict => {
        queued.verdict = verdict
      },
      reason => {
        queued.gaveUp = reason
      },
    )
    return queued
  }
  const remaining = async (account = 'a'): Promise<number[]> => {
    const { decisions } = await limiter.peek({ method: 'GET', path: '/', attributes: { account } }, { cost: 0 })
    return decisions.map(one => one.remaining)
  }
  return { limiter, call, remaining }
}

const settled = () => vi.advanceTimersByTimeAsync(0)
const outcome = ({ verdict, gaveUp }: WaitingCall): unknown => gaveUp ?? verdict?.reason ?? verdict?.allowed

const two = {
  id: 'two',
  algorithm: 'concurrency',
  limit: 2,
  by: 'account',
  whenFull: 'wait',
  queue: { timeout: '1s' },
} as const

describe('calls that wait for a slot', () => {
  it('calls that wait for a slot are admitted first come, first served, as slots are released', async () => {
    const { call } = await house(two)
    const queuedCalls = [call(), call(), call(), call()]
    await settled()
    expect(queuedCalls.map(outcome)).toEqual([true, true, undefined, undefined])
    await vi.advanceTimersByTimeAsync(300)
    queuedCalls[1]!.verdict!.release()
    await settled()
    expect(queuedCalls.map(outcome)).toEqual([true, true, true, undefined])
    expect(queuedCalls[2]!.verdict!.waitMs).toBe(300)
    queuedCalls[0]!.verdict!.release()
    await settled()
    expect(queuedCalls.map(outcome)).toEqual([true, true, true, true])
  })

  it('a slot that is released several times admits one waiting call', async () => {
    const { call, remaining } = await house(two)
    const queuedCalls = [call(), call(), call(), call()]
    await settled()
    for (let again = 0; again < 5; again++) queuedCalls[0]!.verdict!.release()
    await settled()
    expect(queuedCalls.map(outcome)).toEqual([true, true, true, undefined])
    for (const queued of queuedCalls.slice(1, 3)) queued.verdict!.release()
    await settled()
    queuedCalls[3]!.verdict!.release()
    queuedCalls[3]!.verdict!.release()
    await settled()
    expect(await remaining()).toEqual([2])
  })

  it('a call that waits for several slots is not overtaken by one that needs fewer', async () => {
    const { call } = await house(two)
    const queuedCalls = [call(), call(), call(2), call(1)]
    await settled()
    queuedCalls[0]!.verdict!.release()
    await settled()
    expect(queuedCalls.map(outcome)).toEqual([true, true, undefined, undefined])
    queuedCalls[1]!.verdict!.release()
    await settled()
    expect(queuedCalls.map(outcome)).toEqual([true, true, true, undefined])
  })

  it('calls that wait for a slot are refused after the timeout of their rule', async () => {
    const { call, limiter } = await house(two)
    const queuedCalls = [call(), call(), call()]
    await vi.advanceTimersByTimeAsync(999)
    expect(outcome(queuedCalls[2]!)).toBeUndefined()
    expect(limiter.status().rules[0]!.waiting).toBe(1)
    await vi.advanceTimersByTimeAsync(1)
    expect(queuedCalls[2]!.verdict).toMatchObject({ allowed: false, reason: 'timeout', rule: 'two', waitMs: 1000 })
    expect(limiter.status().rules[0]!.waiting).toBe(0)
  })

  it('waiting calls move up when the first one times out', async () => {
    const { call } = await house(two)
    const queuedCalls = [call(), call(), call(2)]
    await vi.advanceTimersByTimeAsync(500)
    queuedCalls.push(call(1))
    queuedCalls[0]!.verdict!.release()
    await vi.advanceTimersByTimeAsync(500)
    expect(queuedCalls.map(outcome)).toEqual([true, true, 'timeout', true])
    expect(queuedCalls[3]!.verdict!.waitMs).toBe(500)
  })

  it('waiting calls move up when the first one is aborted', async () => {
    const { call } = await house(two)
    const queuedCalls = [call(), call(), call(2), call(1)]
    await settled()
    queuedCalls[0]!.verdict!.release()
    queuedCalls[2]!.leave()
    await settled()
    expect(queuedCalls.map(outcome)).toEqual([true, true, 'left', true])
  })

  it('calls that wait for a slot are bounded by the queue', async () => {
    const { call } = await house({ ...two, queue: { size: 1, timeout: '1s' } })
    const queuedCalls = [call(), call(), call(), call()]
    await settled()
    expect(queuedCalls.map(outcome)).toEqual([true, true, undefined, 'queue-full'])
  })

  it('a call that needs more slots than the limit is refused at once', async () => {
    const { call } = await house(two)
    const queuedCalls = [call(3), call(1)]
    await settled()
    expect(queuedCalls.map(outcome)).toEqual(['limit', true])
  })

  it('callers of another key wait separately for slots', async () => {
    const { call } = await house(two)
    const queuedCalls = [call(), call(), call(), call(1, 'b')]
    await settled()
    expect(queuedCalls.map(outcome)).toEqual([true, true, undefined, true])
  })

  it('calls that wait for a slot are charged by no other rule', async () => {
    const { call, remaining } = await house(two, { id: 'ten', limit: '10/h', by: 'account' })
    const queuedCalls = [call(), call(), call()]
    await settled()
    expect(await remaining()).toEqual([0, 8])
    queuedCalls[2]!.leave()
    await settled()
    expect(await remaining()).toEqual([0, 8])
    queuedCalls[0]!.verdict!.release()
    await settled()
    expect(await remaining()).toEqual([1, 8])
  })

  it('a slot freed by another rule admits the first waiter', async () => {
    const kitchen = {
      id: 'kitchen',
      match: { path: '/kitchen' },
      algorithm: 'concurrency',
      limit: 1,
      whenFull: 'wait',
    } as const
    const { call } = await house({ ...two, limit: 1, queue: { timeout: '10s' } }, kitchen)
    const mine = call(1, 'a')
    const theirs = call(1, 'b', '/kitchen')
    const queued = call(1, 'a', '/kitchen')
    await settled()
    mine.verdict!.release()
    await settled()
    expect(outcome(queued)).toBeUndefined()
    await vi.advanceTimersByTimeAsync(700)
    theirs.verdict!.release()
    await settled()
    expect(queued.verdict).toMatchObject({ allowed: true, waitMs: 700 })
  })

  it('a scheduled call that is aborted frees its slot for a waiting call', async () => {
    const paced = {
      id: 'paced',
      algorithm: 'leaky-bucket',
      limit: '1/s',
      burst: 5,
      by: 'account',
      whenFull: 'wait',
    } as const
    const { call } = await house(two, paced)
    const queuedCalls = [call(), call(), call()]
    await settled()
    expect(queuedCalls.map(outcome)).toEqual([true, undefined, undefined])
    queuedCalls[1]!.leave()
    await vi.advanceTimersByTimeAsync(1000)
    expect(queuedCalls.map(outcome)).toEqual([true, 'left', true])
    expect(queuedCalls[2]!.verdict!.waitMs).toBe(1000)
  })
})
