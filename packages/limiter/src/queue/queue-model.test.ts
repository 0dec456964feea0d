import { type Fate, QueueWorld } from '@test/queue/queue-world'
import { randomRuns } from '@test/random-runs'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { RuleOptions } from '../rules/parse.ts'

const warnings = vi.spyOn(process, 'emitWarning')
beforeEach(() => {
  warnings.mockReset()
})
afterEach(() => {
  const codes = warnings.mock.calls.map(([, options]) => (options as { code?: string } | undefined)?.code)
  expect(codes).not.toContain('DIANA_WAIT_OVERDUE')
})

const TIMEOUT_MS = 1000
const queue = { size: 8, timeout: '1s' }
const waits = { by: 'account', whenFull: 'wait', queue } as const

/** Rules that let calls wait; the first variant is in force at first, and a reload puts another one in force. */
const kinds: Readonly<Record<string, readonly (readonly RuleOptions[])[]>> = {
  'a token bucket': [
    [{ id: 'r', limit: '2/250ms', algorithm: 'token-bucket', ...waits }],
    [{ id: 'r', limit: '1/250ms', algorithm: 'token-bucket', ...waits }],
    [{ id: 'r', limit: '5/250ms', algorithm: 'fixed-window', ...waits }],
    [{ id: 'r', limit: '2/250ms', algorithm: 'token-bucket', by: 'account' }],
    [],
  ],
  'a fixed window': [
    [{ id: 'r', limit: '2/250ms', algorithm: 'fixed-window', ...waits }],
    [{ id: 'r', limit: '3/100ms', algorithm: 'fixed-window', ...waits }],
    [{ id: 'r', limit: '2/250ms', algorithm: 'sliding-log', ...waits }],
  ],
  'a leaky bucket': [
    [{ id: 'r', limit: '10/s', algorithm: 'leaky-bucket', burst: 9, ...waits }],
    [{ id: 'r', limit: '3/s', algorithm: 'leaky-bucket', burst: 4, ...waits }],
    [{ id: 'r', limit: 2, algorithm: 'concurrency', ...waits }],
  ],
  'a sliding window': [
    [{ id: 'r', limit: '5/500ms', ...waits }],
    [{ id: 'r', limit: '2/500ms', ...waits }],
    [{ id: 'r', limit: '5/500ms', whenFull: 'wait', queue }],
  ],
  'a sliding log': [[{ id: 'r', limit: '3/300ms', algorithm: 'sliding-log', ...waits }]],
  'a warm-up': [[{ id: 'r', limit: '5/s', algorithm: 'warm-up', warmUp: '2s', ...waits }]],
  'concurrency slots': [
    [{ id: 'r', limit: 2, algorithm: 'concurrency', ...waits }],
    [{ id: 'r', limit: 4, algorithm: 'concurrency', ...waits }],
    [{ id: 'r', limit: 2, algorithm: 'concurrency', by: 'account' }],
    [{ id: 'other', limit: 1, algorithm: 'concurrency', ...waits }],
  ],
  'two rates': [
    [
      { id: 'r', limit: '10/s', algorithm: 'leaky-bucket', burst: 9, ...waits },
      { id: 's', limit: '4/500ms', algorithm: 'sliding-log', whenFull: 'wait', queue },
    ],
    [{ id: 's', limit: '4/500ms', algorithm: 'sliding-log', whenFull: 'wait', queue }],
  ],
  'a rate and slots': [
    [
      { id: 'r', limit: '10/s', algorithm: 'leaky-bucket', burst: 9, ...waits },
      { id: 's', limit: 3, algorithm: 'concurrency', whenFull: 'wait', queue },
    ],
    [{ id: 'r', limit: '4/s', algorithm: 'token-bucket', ...waits }],
  ],
}

interface Step {
  readonly gapMs: number
  readonly what: 'call' | 'leave' | 'end' | 'reload' | 'step'
  readonly key: string
  readonly cost: number
  readonly rank: Fate['rank']
  readonly which: number
  readonly lateMs: number
  readonly turnMs: number
  readonly answersMs: number
}

const LATEST_MS = 200
const SLOWEST_MS = 40

const stepOf = (costs: readonly number[], ranks: readonly Fate['rank'][], whats: readonly Step['what'][]) =>
  fc.record({
    gapMs: fc.oneof(fc.constant(0), fc.nat(60), fc.nat(400)),
    what: fc.constantFrom(...whats),
    key: fc.constantFrom('a', 'a', 'a', 'b'),
    cost: fc.constantFrom(...costs),
    rank: fc.constantFrom(...ranks),
    which: fc.nat(5),
    lateMs: fc.constantFrom(0, 0, 0, 3, 60, LATEST_MS),
    turnMs: fc.constantFrom(0, 0, 1, 30),
    answersMs: fc.constantFrom(0, 1, 5, SLOWEST_MS),
  })

const everything: readonly Step['what'][] = ['call', 'call', 'call', 'call', 'leave', 'leave', 'end', 'reload', 'step']

/** Plays the steps, ends all calls that have passed, and lets all others come to their end. */
async function play(variants: readonly (readonly RuleOptions[])[], steps: readonly Step[], isShared: boolean) {
  const world = new QueueWorld(variants[0]!, { isShared })
  try {
    for (const { gapMs, what, key, cost, rank, which, lateMs, turnMs, answersMs } of steps) {
      await world.advance(gapMs)
      world.timers.latenessMs = lateMs
      world.timers.turnMs = turnMs
      world.answersMs = answersMs
      if (what === 'call') await world.call(key, cost, rank)
      else if (what === 'leave') world.waiting[which]?.leave()
      else if (what === 'end') world.passed[which]?.verdict?.end()
      else if (what === 'reload') world.use(variants[which % variants.length]!)
      else world.stepClock(which * 20)
    }
    for (let ms = 0; ms < 4000; ms += 400) await world.advance(400)
    for (const { verdict } of world.passed) verdict!.end()
    await world.advance(1000)
    return world
  } finally {
    await world.close()
  }
}

/** Every call has ended by the time that its rules let it wait, and by as much later as timers and answers were late. */
function expectEnded(world: QueueWorld, rules: number): void {
  expect(world.waiting.map(({ cameAt }) => cameAt)).toEqual([])
  for (const { cameAt, endedAt, error } of world.fates) {
    expect(error).toBeUndefined()
    expect(endedAt! - cameAt).toBeLessThanOrEqual(rules * (TIMEOUT_MS + LATEST_MS) + 3 * SLOWEST_MS + 5)
  }
  for (const { waiting } of world.limiter.status().rules) expect(waiting).toBe(0)
}

/** No call has passed before the moment for which it was counted. */
function expectPermits(world: QueueWorld): void {
  for (const { cameAt, endedAt, verdict } of world.passed) {
    expect(endedAt!).toBeGreaterThanOrEqual(cameAt + verdict!.waitMs - 1)
  }
}

/** Of one caller and one priority, calls have passed in the order they came. */
function expectOrder(world: QueueWorld): void {
  for (const key of ['a', 'b']) {
    for (const rank of ['low', 'usual', 'high']) {
      const passed = world.passed.filter(fate => fate.key === key && fate.rank === rank)
      const indexes = passed.map(fate => world.fates.indexOf(fate))
      expect(indexes).toEqual(indexes.toSorted((a, b) => a - b))
    }
  }
}

const stores = [
  ['this process', false],
  ['a shared store', true],
] as const
const numRuns = randomRuns(16)

describe.each(Object.entries(kinds))('calls that wait for %s', (_, variants) => {
  const isSlots = variants.flat().map(({ algorithm }) => algorithm === 'concurrency')
  // a call that waits for a slot may wait for a rate afterwards, if a reload or another rule has one
  const rules = Math.max(...variants.map(({ length }) => length), new Set(isSlots).size)

  it.each(stores)(
    'every call that waits for a count of %s ends by its timeout, whatever is late, leaves or is reloaded',
    async (__, isShared) => {
      const step = stepOf([1, 1, 1, 2], ['low', 'usual', 'usual', 'high'], everything)
      const property = fc.asyncProperty(fc.array(step, { maxLength: 30, size: 'max' }), async walk => {
        expectEnded(await play(variants, walk, isShared), rules)
      })
      await fc.assert(property, { numRuns })
    },
  )

  // while an answer of the store is under way, a later call may take a slot that is released meanwhile
  const first = variants[0]!
  const hasSlots = first.some(({ algorithm }) => algorithm === 'concurrency')
  it.each(stores)(
    'calls that wait for a count of %s pass in the order they came and not before their moment, although timers are late',
    async (__, isShared) => {
      const step = stepOf([1], ['usual'], ['call', 'call', 'call', 'leave', 'end'])
      const property = fc.asyncProperty(fc.array(step, { maxLength: 30, size: 'max' }), async walk => {
        const steps = hasSlots ? walk.map(one => ({ ...one, answersMs: 0 })) : walk
        const world = await play([first], steps, isShared)
        expectEnded(world, rules)
        expectPermits(world)
        expectOrder(world)
      })
      await fc.assert(property, { numRuns })
    },
  )
})

describe.each(stores)('calls that leave a queue for a count of %s', (_, isShared) => {
  const rule = {
    id: 'r',
    limit: '10/s',
    algorithm: 'leaky-bucket',
    burst: 30,
    whenFull: 'wait',
    queue: { timeout: '10s' },
  } as const

  it('a permit of a waiting call that leaves goes to the next one: calls pass as if it had never come', async () => {
    const step = stepOf([1], ['usual'], ['call', 'call', 'call', 'leave'])
    const property = fc.asyncProperty(fc.array(step, { maxLength: 40, size: 'max' }), async walk => {
      const steps = walk.map(one => ({ ...one, lateMs: 0, turnMs: 0, answersMs: 0 }))
      const world = await play([[rule]], steps, isShared)
      // a server that is free every 100 ms takes the first call of its queue then
      let free = Number.NEGATIVE_INFINITY
      for (const { cameAt, left, endedAt } of world.fates) {
        const moment = Math.max(cameAt, free)
        if (left) expect(endedAt!).toBeLessThanOrEqual(moment + 1)
        else {
          expect(Math.abs(endedAt! - moment)).toBeLessThanOrEqual(2)
          free = endedAt! + 100 - (endedAt! - moment)
        }
      }
    })
    await fc.assert(property, { numRuns: randomRuns(40) })
  })

  it('of 30 calls at 10/s ten leave the queue, and the last one passes a second earlier than without that', async () => {
    const world = new QueueWorld([{ ...rule, limit: '10/s', algorithm: 'token-bucket', burst: 5 } as never], {
      isShared,
    })
    for (let i = 0; i < 30; i++) await world.call()
    await world.advance(50)
    for (const fate of world.fates.slice(10, 20)) fate.leave()
    await world.advance(0)
    const newcomer = await world.call()
    await world.advance(5000)
    const ended = world.fates.filter(({ left }) => !left).map(({ endedAt }) => endedAt!)
    expect(ended.slice(0, 5)).toEqual([0, 0, 0, 0, 0])
    expect(ended.slice(5).map(ms => Math.round(ms / 100))).toEqual(Array.from({ length: 16 }, (__, i) => i + 1))
    expect(newcomer.endedAt).toBe(Math.max(...ended))
    await world.close()
  })
})

/** Walks on which a call once hung or passed out of order: moments, what happens, and by how much timers are late then. */
type Row = readonly [gapMs: number, what: 'call' | 'leave', cost: number, lateMs?: number, turnMs?: number]
const rows: readonly (readonly [name: string, algorithm: string, rows: readonly Row[]])[] = [
  [
    'a call of another cost comes while the timer of the first is late',
    'token-bucket',
    [
      [0, 'call', 1],
      [69, 'call', 1],
      [13, 'call', 1, 200],
      [43, 'call', 2],
      [0, 'leave', 1, 0, 40],
      [0, 'call', 1],
    ],
  ],
  [
    'a call of a larger cost is late in a fixed window',
    'fixed-window',
    [
      [48, 'call', 1],
      [27, 'call', 1],
      [0, 'call', 2, 90],
      [175, 'call', 1],
      [0, 'call', 1],
      [0, 'leave', 1],
    ],
  ],
  [
    'two calls come behind a late one, and the first of them leaves',
    'sliding-window',
    [
      [0, 'call', 1],
      [38, 'call', 2, 90],
      [125, 'call', 2],
      [87, 'call', 1],
      [0, 'call', 1],
      [0, 'leave', 1],
    ],
  ],
  [
    'a later call finds room while the timer of an earlier one is late',
    'token-bucket',
    [
      [0, 'call', 1],
      [0, 'call', 1],
      [15, 'call', 1, 200],
      [235, 'call', 1],
    ],
  ],
]

it.each(rows)('no call hangs and none is overtaken when %s', async (_, algorithm, walk) => {
  const steps = walk.map(([gapMs, what, cost, lateMs = 0, turnMs = 0]): Step => {
    return { gapMs, what, cost, lateMs, turnMs, key: 'a', rank: 'usual', which: 0, answersMs: 0 }
  })
  const world = await play([[{ id: 'r', limit: '2/250ms', algorithm, ...waits } as RuleOptions]], steps, false)
  expectEnded(world, 1)
  expectPermits(world)
  expectOrder(world)
})
