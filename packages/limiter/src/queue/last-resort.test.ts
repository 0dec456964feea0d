import { LateTimers } from '@test/queue/late-timers'
import { expect, it } from 'vitest'
import { createTestDecider } from '../testing/test-decider.ts'
import { ScheduledCalls } from './scheduled-calls.ts'

const settle = async (): Promise<void> => {
  for (let i = 0; i < 5; i++) await undefined
}

/** Three calls of a bucket of 10/s, of which two wait, and the timers that a test loses. */
function house(costs: readonly number[] = [1, 1, 1]) {
  const timers = new LateTimers(1e15)
  const now = (): number => timers.now
  const queue = { timeout: '1s' }
  const decider = createTestDecider([{ limit: '10/s', algorithm: 'leaky-bucket', burst: 9, whenFull: 'wait', queue }])
  let reports = 0
  const calls = new ScheduledCalls({
    ...{ now, timers, onFreed: () => {} },
    onOverdue: () => {
      reports++
    },
  })
  const passedMs: number[] = []
  const hold = (cost: number): void => {
    const pending = decider.takeLocal({ method: 'GET', path: '/' }, cost, now())
    if (pending.waitMs > 0) calls.hold(pending, now()).then(() => passedMs.push((timers.now - 1e15) / 1000))
  }
  for (const cost of costs) hold(cost)
  const advance = (ms: number): Promise<void> => timers.advanceTo(timers.now + ms * 1000, settle)
  return { timers, advance, passedMs, hold, reports: () => reports }
}

it('a waiting call whose timer is lost passes soon after its timeout, and that is reported', async () => {
  const { timers, advance, passedMs, reports } = house()
  timers.lose(0)
  await advance(1899)
  expect(passedMs).toEqual([])
  await advance(1)
  expect(passedMs).toEqual([1900, 1900])
  expect(reports()).toBe(1)
  await advance(10_000)
  expect(timers.size).toBe(0)
})

it('calls of several costs whose timer is lost pass soon after their timeout, too', async () => {
  const { timers, advance, passedMs, reports } = house([1, 1, 2])
  timers.lose(0)
  await advance(3000)
  expect(passedMs.length).toBe(2)
  expect(Math.max(...passedMs)).toBeLessThanOrEqual(2000)
  expect(reports()).toBe(1)
})

it('the timer of last resort reports nothing while calls pass at their moments, and none is left afterwards', async () => {
  const { timers, advance, passedMs, reports, hold } = house()
  for (let i = 0; i < 50; i++) {
    await advance(90)
    hold(1)
  }
  await advance(3000)
  expect(passedMs.length).toBeGreaterThan(40)
  expect(reports()).toBe(0)
  expect(timers.size).toBe(0)
})
