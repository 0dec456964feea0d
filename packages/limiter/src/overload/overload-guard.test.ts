import { describe, expect, it } from 'vitest'
import type { Call } from '../call.ts'
import { dimensions } from '../dimensions/index.ts'
import { compilePriorities } from '../rules/priority/priorities.ts'
import type { Load } from './load-signal.ts'
import { OverloadGuard, onePriority } from './overload-guard.ts'

const settings = { eventLoopDelayMs: 20, eventLoopUtilization: 0.98, callWaitMs: 20 }
const priorities = compilePriorities(
  [
    { match: { path: ['/pay'] }, level: 90 },
    { match: { path: ['/batch'] }, level: 10 },
  ],
  { identify: {}, dimensions },
)
const paths = ['/pay', '/orders', '/batch'] as const

/** Numbers from 0 to 1 by a seed. */
function seededDice(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

/** A process that can handle `capacity` calls in an interval of 100 ms, in virtual time: the rest waits. */
function simulate(offered: Readonly<Record<string, number>>, intervals: number, capacity = 100, seed = 1) {
  const random = seededDice(seed)
  let backlog = 0
  const load = (): Load => ({ delayMs: (backlog / capacity) * 100, utilization: backlog > 0 ? 1 : 0.5, waitMs: 0 })
  const guard = new OverloadGuard({ settings, priorities, random, signal: { note() {}, read: load, close() {} } })
  const counts = Object.fromEntries(paths.map(path => [path, { offered: 0, admitted: 0 }]))
  const history: number[] = []
  for (let interval = 0; interval < intervals; interval++) {
    let admitted = 0
    for (const path of paths) {
      for (let i = 0; i < (offered[path] ?? 0); i++) {
        const refused = guard.refuses({ method: 'GET', path }, interval * 100_000 + 1)
        if (interval > 50) counts[path]!.offered++
        if (refused) continue
        admitted++
        if (interval > 50) counts[path]!.admitted++
      }
    }
    backlog = Math.max(0, backlog + admitted - capacity)
    history.push(admitted)
  }
  return { guard, history, part: (path: string) => counts[path]!.admitted / counts[path]!.offered }
}

describe('the guard of a process', () => {
  it.each([1, 2, 3])('the guard refuses the lowest level first, and keeps the process busy (seed %i)', seed => {
    const { part, history } = simulate({ '/pay': 50, '/orders': 150, '/batch': 100 }, 400, 100, seed)
    expect(part('/pay')).toBeGreaterThan(0.999)
    expect(part('/batch')).toBeLessThan(0.05)
    expect(part('/orders')).toBeGreaterThan(0.15)
    const late = history.slice(100)
    expect(late.reduce((sum, one) => sum + one, 0) / late.length).toBeGreaterThan(85)
  })

  it('the guard refuses nothing while the process keeps up, and never everything', () => {
    expect(simulate({ '/orders': 80 }, 200).part('/orders')).toBe(1)
    const flooded = simulate({ '/orders': 20_000 }, 100)
    expect(Math.min(...flooded.history.slice(20))).toBeGreaterThan(0)
  })

  it('the guard opens again smoothly', () => {
    let delayMs = 200
    const signal = { note() {}, read: () => ({ delayMs, utilization: 0.5, waitMs: 0 }), close() {} }
    const guard = new OverloadGuard({ settings, priorities: onePriority, signal })
    for (let i = 0; i < 50; i++) guard.update(i)
    expect(guard.status.share).toBe(0.05)
    delayMs = 0
    const shares = Array.from({ length: 120 }, (_, i) => {
      guard.update(1000 + i)
      return guard.status.share
    })
    for (const [i, share] of shares.entries()) if (i > 0) expect(share / shares[i - 1]!).toBeLessThan(1.14)
    expect(shares.at(-1)).toBe(1)
  })

  it('the guard refuses the heaviest callers of a level first if asked', () => {
    const random = seededDice(7)
    const signal = { note() {}, read: () => ({ delayMs: 15, utilization: 0.5, waitMs: 0 }), close() {} }
    const callerOf = ({ ip }: Call) => ip ?? ''
    const guard = new OverloadGuard({ settings, priorities: onePriority, signal, random, callerOf })
    const refused = { heavy: 0, light: 0 }
    let now = 0
    for (let round = 0; round < 200; round++) {
      now += 100_000
      // as if the process were overloaded for the first rounds
      if (round < 3) signal.read = () => ({ delayMs: 60, utilization: 0.5, waitMs: 0 })
      else signal.read = () => ({ delayMs: 18, utilization: 0.5, waitMs: 0 })
      for (let i = 0; i < 50; i++)
        if (guard.refuses({ method: 'GET', path: '/', ip: 'heavy' }, now) && round > 20) refused.heavy++
      for (let i = 0; i < 50; i++)
        if (guard.refuses({ method: 'GET', path: '/', ip: `light${i}` }, now) && round > 20) refused.light++
    }
    expect(refused.heavy).toBeGreaterThan(1000)
    expect(refused.light).toBeLessThan(refused.heavy / 10)
  })
})
