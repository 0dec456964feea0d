import { type Fate, QueueWorld } from '@test/queue/queue-world'
import { randomRuns } from '@test/random-runs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { RuleOptions } from '../rules/parse.ts'

const SIZE = 6
const queue = { size: SIZE, timeout: '5s' }
const waits = { by: 'account', whenFull: 'wait', queue } as const
const rate: RuleOptions = { id: 'r', limit: '5/s', algorithm: 'leaky-bucket', burst: 1000, ...waits }
const slots: RuleOptions = { id: 'r', limit: 1, algorithm: 'concurrency', ...waits }
const kinds: readonly (readonly [name: string, rule: RuleOptions, isShared: boolean])[] = [
  ['a rate', rate, false],
  ['a rate in a shared store', rate, true],
  ['slots', slots, false],
  ['slots of a shared store', slots, true],
]

async function callMany(world: QueueWorld, key: string, count: number): Promise<Fate[]> {
  const fates: Fate[] = []
  for (let i = 0; i < count; i++) {
    fates.push(await world.call(key))
    await world.advance(0)
  }
  return fates
}

const reasons = (fates: readonly Fate[]): unknown[] =>
  fates.map(({ verdict }) => (verdict?.allowed ? 'passed' : (verdict?.reason ?? 'waits')))

describe.each(kinds)('the queue of %s', (_, rule, isShared) => {
  it('one caller alone may use all places of a queue, and no more', async () => {
    const world = new QueueWorld([rule], { isShared })
    const fates = await callMany(world, 'a', 1 + SIZE + 2)
    expect(reasons(fates)).toEqual(['passed', ...Array(SIZE).fill('waits'), 'queue-full', 'queue-full'])
    await world.close()
  })

  it('a caller who has filled a queue leaves places to others, the newest first, and learns when to come again', async () => {
    const world = new QueueWorld([rule], { isShared })
    const flood = await callMany(world, 'a', 1 + SIZE)
    const others = [...(await callMany(world, 'b', 2)), ...(await callMany(world, 'c', 2))]
    expect(reasons(others)).toEqual(['passed', 'waits', 'passed', 'waits'])
    expect(reasons(flood)).toEqual(['passed', ...Array(SIZE - 2).fill('waits'), 'queue-full', 'queue-full'])
    expect(flood.at(-1)!.verdict!.retryAfterMs).toBeGreaterThan(0)
    expect(world.limiter.status().rules[0]!.waiting).toBe(SIZE)
    for (const { verdict } of world.passed) verdict!.end()
    await world.advance(6000)
    expect(world.waiting).toEqual([])
    expect(world.limiter.status().rules[0]!.waiting).toBe(0)
    await world.close()
  })

  it('a call is refused a place of a full queue only if no other caller has two calls more there', async () => {
    const step = fc.record({
      key: fc.constantFrom('a', 'a', 'a', 'b', 'c', 'd'),
      gapMs: fc.constantFrom(0, 0, 0, 50, 300),
      leaves: fc.nat(12),
    })
    const property = fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 40, size: 'max' }), async steps => {
      const world = new QueueWorld([rule], { isShared })
      for (const { key, gapMs, leaves } of steps) {
        await world.advance(gapMs)
        world.waiting[leaves]?.leave()
        await world.advance(0)
        const before = world.waiting
        const counts = new Map<string, number>()
        for (const one of before) counts.set(one.key, (counts.get(one.key) ?? 0) + 1)
        const own = counts.get(key) ?? 0
        const most = Math.max(0, ...counts.values())
        const fate = await world.call(key)
        await world.advance(0)
        if (fate.verdict?.reason === 'queue-full')
          expect([before.length >= SIZE, most <= own + 1]).toEqual([true, true])
        const left = before.filter(({ verdict }) => verdict?.reason === 'queue-full')
        if (left.length > 0) expect(left.map(one => counts.get(one.key))).toEqual([most])
        expect(world.limiter.status().rules[0]!.waiting).toBeLessThanOrEqual(SIZE)
      }
      await world.close()
    })
    await fc.assert(property, { numRuns: randomRuns(16) })
  })

  it('perCaller bounds the calls of one caller that wait, whether or not places are left', async () => {
    const world = new QueueWorld([{ ...rule, queue: { ...queue, perCaller: 2 } }], { isShared })
    expect(reasons(await callMany(world, 'a', 5))).toEqual(['passed', 'waits', 'waits', 'queue-full', 'queue-full'])
    expect(reasons(await callMany(world, 'b', 2))).toEqual(['passed', 'waits'])
    await world.close()
  })
})

it('calls of a rule without callers share the whole queue', async () => {
  const world = new QueueWorld([{ ...rate, by: [] }])
  const fates = [...(await callMany(world, 'a', 1 + SIZE)), ...(await callMany(world, 'b', 1))]
  expect(reasons(fates)).toEqual(['passed', ...Array(SIZE).fill('waits'), 'queue-full'])
  await world.close()
})
