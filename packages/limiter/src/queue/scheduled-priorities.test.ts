import fc from 'fast-check'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createTestDecider } from '../testing/test-decider.ts'
import { ScheduledCalls } from './scheduled-calls.ts'

beforeEach(() => {
  vi.useFakeTimers({ now: Date.UTC(2026, 10, 15) })
})
afterEach(() => {
  vi.useRealTimers()
})

interface Step {
  readonly gapMs: number
  readonly rank: number
  readonly cost: number
  /** Which of the waiting calls is aborted then, from the first that came; none if there are fewer. */
  readonly leaves: number
}

interface Fate {
  readonly rank: number
  readonly cost: number
  readonly cameAt: number
  passedAt: number
  waitMs: number
}

/** Calls of a leaky bucket of 10/s that waits, and when each of them passed, in milliseconds after the start. */
async function walk(steps: readonly Step[], timeout = '1000s'): Promise<Fate[]> {
  vi.setSystemTime(Date.UTC(2026, 10, 15))
  const start = Date.now()
  const now = (): number => Date.now() * 1000
  const queue = { timeout, size: 1000 }
  const decider = createTestDecider([{ limit: '10/s', algorithm: 'leaky-bucket', burst: 500, whenFull: 'wait', queue }])
  const waiting = new ScheduledCalls({ now, onFreed: () => {} })
  const fates: Fate[] = []
  const open: AbortController[] = []
  for (const { gapMs, rank, cost, leaves } of steps) {
    await vi.advanceTimersByTimeAsync(gapMs)
    const pending = decider.takeLocal({ method: 'GET', path: '/', attributes: { key: 'a' } }, cost, now())
    if (!pending.allowed) continue
    const fate: Fate = { rank, cost, cameAt: Date.now() - start, passedAt: Date.now() - start, waitMs: 0 }
    if (pending.waitMs === 0) {
      fates.push(fate)
      continue
    }
    const controller = new AbortController()
    open.push(controller)
    const leave = (): void => {
      open.splice(open.indexOf(controller), 1)
    }
    waiting.hold(pending, now(), { signal: controller.signal, rank }).then(({ waitMs }) => {
      leave()
      fates.push(Object.assign(fate, { passedAt: Date.now() - start, waitMs }))
    }, leave)
    open[leaves]?.abort()
  }
  await vi.advanceTimersByTimeAsync(200_000)
  return fates
}

const stepsWith = (leaves: fc.Arbitrary<number>, cost: fc.Arbitrary<number> = fc.constant(1)) => {
  const gapMs = fc.oneof(fc.constant(0), fc.nat(150))
  const rank = fc.constantFrom(0, 0, 0.5, 1)
  return fc.array(fc.record({ gapMs, rank, cost, leaves }), { maxLength: 40, size: 'max' })
}
const none = fc.constant(Number.MAX_SAFE_INTEGER)
const some = fc.oneof(none, fc.nat(20))
const momentsOf = (fates: readonly Fate[]): number[] => fates.map(({ passedAt }) => passedAt).sort((a, b) => a - b)

it('waiting calls pass by their priority, at the same moments as without priorities', async () => {
  const property = fc.asyncProperty(stepsWith(none), async steps => {
    const fates = await walk(steps)
    expect(momentsOf(fates)).toEqual(momentsOf(await walk(steps.map(step => ({ ...step, rank: 0 })))))
    for (const one of fates) {
      for (const other of fates) {
        const waitedTogether = Math.max(one.cameAt, other.cameAt) < Math.min(one.passedAt, other.passedAt)
        if (waitedTogether && one.rank > other.rank) expect(one.passedAt).toBeLessThan(other.passedAt)
      }
    }
  })
  await fc.assert(property, { numRuns: 40 })
})

it('calls of one priority keep their order, and no call waits longer than its queue allows', async () => {
  const property = fc.asyncProperty(stepsWith(some), async steps => {
    const fates = await walk(steps, '1500ms')
    for (const { waitMs } of fates) expect(waitMs).toBeLessThanOrEqual(1500)
    for (const rank of [0, 0.5, 1]) {
      const came = fates.filter(fate => fate.rank === rank).map(({ cameAt }) => cameAt)
      expect(came).toEqual(came.toSorted((a, b) => a - b))
    }
  })
  await fc.assert(property, { numRuns: 40 })
})

it('the rate holds while calls of several costs overtake each other and are aborted', async () => {
  const property = fc.asyncProperty(stepsWith(some, fc.constantFrom(1, 1, 1, 1, 2)), async steps => {
    const passed = (await walk(steps)).sort((a, b) => a.passedAt - b.passedAt)
    passed.forEach((first, from) => {
      let { cost } = first
      for (const last of passed.slice(from + 1)) {
        expect(last.passedAt - first.passedAt).toBeGreaterThanOrEqual(
          100 * (cost + last.cost - Math.max(first.cost, last.cost)) - 1,
        )
        cost += last.cost
      }
    })
  })
  await fc.assert(property, { numRuns: 60 })
})
