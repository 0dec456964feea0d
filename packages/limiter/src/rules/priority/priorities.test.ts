import { describe, expect, it } from 'vitest'
import { createLimiter } from '../../create/create-limiter.ts'
import { dimensions } from '../../dimensions/index.ts'
import { engineOf } from '../../engine/engine-of.ts'
import type { DocumentOptions } from '../schema/options.ts'
import { compilePriorities } from './priorities.ts'

const call = { method: 'GET', path: '/orders' }

describe('levels of calls', () => {
  const priorities = compilePriorities(
    [
      { match: { path: ['/pay/**'] }, level: 90 },
      { match: {}, by: 'account', levels: { robot: 10 } },
      { match: {}, header: 'x-priority' },
    ],
    { identify: {}, dimensions },
  )

  it.each([
    ['a matching path', { ...call, path: '/pay/now' }, 90],
    ['a value of a dimension', { ...call, attributes: { account: 'robot' } }, 10],
    ['a value without a level', { ...call, attributes: { account: 'ann' } }, 50],
    ['a header of a trusted peer', { ...call, trustedPeer: true, headers: { 'x-priority': 'critical' } }, 90],
    ['a header of any other peer', { ...call, headers: { 'x-priority': 'critical' } }, 50],
    ['a header that is no level', { ...call, trustedPeer: true, headers: { 'x-priority': 'critical, 1' } }, 50],
    ['a header that is given twice', { ...call, trustedPeer: true, headers: { 'x-priority': ['critical', 'x'] } }, 50],
  ])('a call with %s has the level %3$i', (_, one, level) => {
    expect(priorities.levelOf(one)).toBe(level)
  })

  it('ranks levels from 0 to 1', () => {
    expect([10, 50, 90, 100, 0].map(level => priorities.rankOf(level))).toEqual([0, 0.5, 1, 1, 0])
  })

  it.each([
    [[{ level: 'critcal' }], /must be sheddable, default or critical, not "critcal": did you mean critical\?/],
    [[{ level: 101 }], /must be at most 100, not 101/],
    [[{}], /must have a level, or by with levels, or a header/],
    [[{ level: 'critical' }, { match: { path: '/a' }, level: 'default' }], /is never reached, since line 1/],
    [[{ header: 'x-priority' }], /none is trusted: set trustProxy, or use match/],
  ])('levels of calls that are %j are rejected in one line with the remedy', async (priority, message) => {
    const options = { rules: [{ id: 'all', limit: '1/s' }], priority } as unknown as DocumentOptions
    await expect(createLimiter(options)).rejects.toThrow(message)
  })

  it('calls of a higher level may exceed a limit that adapts, and not one that is fixed', async () => {
    const time = { ms: 1_000_000 }
    const limiter = await createLimiter({
      rules: [{ id: 'backend', algorithm: 'adaptive', limit: 400, min: 2 }],
      priority: [{ match: { path: '/pay' }, level: 'critical' }],
      clock: () => time.ms,
    })
    const { table } = engineOf(limiter).decider.rules[0]!
    // the estimator's own state: limiting at 10 with the credit spent, by a time that is known
    const held: { end(): void }[] = []
    table.state(0).set([time.ms * 1000, time.ms * 1000], 5)
    table.state(0)[1] = 10
    table.state(0)[4] = 1
    table.state(0)[10] = 1e6
    table.state(0)[20] = 8
    const allowed = { low: 0, high: 0 }
    for (let i = 0; i < 40; i++) {
      const low = await limiter.check(call)
      if (low.allowed) allowed.low++
      held.push(low)
    }
    for (let i = 0; i < 60; i++) if ((await limiter.check({ ...call, path: '/pay' })).allowed) allowed.high++
    expect(allowed).toEqual({ low: 10, high: 30 })
    await limiter.close()
  })
})
