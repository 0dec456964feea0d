import { FleetDouble } from '@test/fleet/fake-fleet'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Meter } from '../../algorithms/algorithm.ts'
import { algorithms } from '../../algorithms/index.ts'
import { MemoryStore } from '../memory/memory-store.ts'
import { sharedCharge } from '../shared-charge.ts'
import { Backlog } from './backlog.ts'
import { LocalFallback } from './local-fallback.ts'
import { remind } from './remind.ts'

/** A process alone, without the timers of an outage: every step is taken by the test. */
function processWith(fleet: FleetDouble, meters: readonly Meter[]) {
  const memory = new MemoryStore()
  const table = memory.createTable('rule', meters)
  const counter = fleet.createCounter({ id: 'rule', meters, algorithm: 'any', enforced: true })
  const backlog = new Backlog()
  const fallback = new LocalFallback(memory, backlog)
  const chargeOf = (key: string, cost: number) => Object.assign(sharedCharge(counter, table, 'share'), { key, cost })
  return {
    counter,
    async askStore(key: string, cost: number): Promise<boolean> {
      const charge = chargeOf(key, cost)
      const { allowed } = await fleet.take([charge])
      fallback.follow([charge], allowed, false, fleet.now)
      return allowed
    },
    countHere(key: string, cost: number): boolean {
      const charge = chargeOf(key, cost)
      const before = backlog.stateBefore(charge)
      const allowed = fallback.take([charge], fleet.now)
      if (allowed) backlog.add(charge, before)
      return allowed
    },
    async comeBack(): Promise<number> {
      const over = await this.report()
      for (const { catchUp, table: of } of backlog.confirm()) fallback.told(catchUp, of, fleet.now)
      return over
    },
    report: () => backlog.settle(fleet, () => fleet.now),
    recall: () => backlog.recall(),
    remind: () =>
      remind(
        fleet,
        fallback.known(() => fleet.now),
      ),
  }
}

interface Call {
  readonly at: number
  readonly cost: number
}

/** The calls of one key that were admitted, as one level of a limit has to count them. */
class Level {
  readonly #count: number
  readonly #periodUs: number
  readonly #calls: Call[] = []

  constructor(count: number, periodMs: number) {
    this.#count = count
    this.#periodUs = periodMs * 1000
  }

  admit(at: number, cost: number): void {
    this.#calls.push({ at, cost })
  }

  inWindow(now: number): number {
    const windowOf = (at: number) => Math.floor(at / this.#periodUs)
    return costOf(this.#calls.filter(({ at }) => windowOf(at) === windowOf(now)))
  }

  /** Calls that leave as late as a part of the period after they might are among them. */
  inLog(now: number, latePart = 0): number {
    return costOf(this.#calls.filter(({ at }) => at + this.#periodUs * (1 + latePart) > now))
  }

  /** In tokens; a microsecond pays for `count` parts of a token. */
  inBucket(now: number): number {
    let unreported = 0
    let last = 0
    for (const { at, cost } of this.#calls) {
      unreported = Math.max(0, unreported - (at - last) * this.#count) + cost * this.#periodUs
      last = at
    }
    return Math.ceil(Math.max(0, unreported - (now - last) * this.#count) / this.#periodUs)
  }
}

const sum = (numbers: readonly number[]): number => numbers.reduce((all, one) => all + one, 0)
const costOf = (calls: readonly Call[]): number => sum(calls.map(({ cost }) => cost))

/**
 * How each algorithm counts, how much each return may round up, and how late the calls of a window may leave: a report says so in slices
 * of a 20th of the period, and a sliding window keeps its calls in segments of a tenth.
 */
const oracles = {
  'fixed-window': { used: (level: Level, now: number) => level.inWindow(now), rounding: 0 },
  'sliding-log': {
    used: (level: Level, now: number, isLate: boolean) => level.inLog(now, isLate ? 0.1 : 0),
    rounding: 0,
  },
  'sliding-window': {
    used: (level: Level, now: number, isLate: boolean) => level.inLog(now, isLate ? 0.3 : 0),
    rounding: 0,
  },
  'token-bucket': { used: (level: Level, now: number) => level.inBucket(now), rounding: 1 },
}

const step = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('call' as const),
      key: fc.constantFrom('a', 'b'),
      cost: fc.integer({ min: 1, max: 4 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('pass' as const), ms: fc.constantFrom(1, 90, 400, 1000, 2500, 11_000) }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('away' as const, 'back' as const, 'empty' as const) }) },
)

describe('what a store missed', () => {
  it.each(Object.entries(oracles))(
    'is told to every level of a %s as of the moments of its calls, over any walk of outages',
    async (name, oracle) => {
      const algorithm = algorithms.find(one => one.name === name)!
      const limits = [
        { count: 6, periodMs: 1000 },
        { count: 20, periodMs: 10_000 },
        { count: 60, periodMs: 60_000 },
      ]
      const meters = limits.map(limit => algorithm.meter(limit, {}))
      await fc.assert(
        fc.asyncProperty(fc.array(step, { maxLength: 60 }), async steps => {
          const fleet = new FleetDouble()
          const one = processWith(fleet, meters)
          const levels = new Map(
            ['a', 'b'].map(key => [key, limits.map(({ count, periodMs }) => new Level(count, periodMs))]),
          )
          let isAway = false
          let returns = 0
          const comeBack = async (hasForgotten: boolean) => {
            isAway = false
            returns++
            if (hasForgotten) fleet.forget()
            if (hasForgotten) await one.remind()
            const late = [...levels.values()].flat().map(level => {
              return oracle.used(level, fleet.now, true) - oracle.used(level, fleet.now, false)
            })
            // what leaves late has no room for as many that were admitted here
            expect(await one.comeBack()).toBeLessThanOrEqual(sum(late))
            for (const [key, of] of levels) {
              of.forEach((level, i) => {
                const used = limits[i]!.count - fleet.left(one.counter, key, i)
                expect(used).toBeGreaterThanOrEqual(oracle.used(level, fleet.now, false))
                expect(used).toBeLessThanOrEqual(oracle.used(level, fleet.now, true) + returns * oracle.rounding)
              })
            }
          }
          for (const now of steps) {
            if (now.do === 'pass') fleet.now += now.ms * 1000
            else if (now.do === 'away') isAway = true
            else if (now.do !== 'call') await comeBack(now.do === 'empty')
            else {
              const { key, cost } = now
              const passes = isAway ? one.countHere(key, cost) : await one.askStore(key, cost)
              if (passes) for (const level of levels.get(key)!) level.admit(fleet.now, cost)
            }
          }
          await comeBack(false)
        }),
        { numRuns: 100 },
      )
    },
  )

  it('a missed count is never more than was admitted, and the rest is reported as over the limit', async () => {
    const fleet = new FleetDouble()
    const window = algorithms.find(one => one.name === 'fixed-window')!
    const one = processWith(fleet, [window.meter({ count: 10, periodMs: 3_600_000 }, {})])
    await one.askStore('a', 2)
    for (let i = 0; i < 4; i++) expect(one.countHere('a', 2)).toBe(true)
    // somebody else has used the store meanwhile
    const other = Object.assign(sharedCharge(one.counter, new MemoryStore().createTable('x', []), 'share'), {
      key: 'a',
      cost: 3,
    })
    await fleet.take([other])
    expect(await one.comeBack()).toBe(3)
    expect(fleet.left(one.counter, 'a')).toBe(0)
  })

  it('a reported count is owed again if the store loses it before all processes have reported theirs', async () => {
    const fleet = new FleetDouble()
    const window = algorithms.find(one => one.name === 'sliding-log')!
    const meters = [window.meter({ count: 30, periodMs: 3_600_000 }, {})]
    const processes = [processWith(fleet, meters), processWith(fleet, meters), processWith(fleet, meters)]
    for (const one of processes) {
      expect(one.countHere('a', 5)).toBe(true)
      await one.report()
    }
    fleet.forget()
    for (const one of processes) {
      one.recall()
      await one.remind()
    }
    for (const one of processes) expect(await one.comeBack()).toBe(0)
    expect(fleet.left(processes[0]!.counter, 'a')).toBe(15)
  })

  it('a missed count is reported once, and stays owed as long as the store fails', async () => {
    const fleet = new FleetDouble()
    const window = algorithms.find(one => one.name === 'fixed-window')!
    const one = processWith(fleet, [window.meter({ count: 10, periodMs: 3_600_000 }, {})])
    expect(one.countHere('a', 2)).toBe(true)
    fleet.before = async () => {
      throw new Error('connect ECONNREFUSED')
    }
    await expect(one.comeBack()).rejects.toThrow('ECONNREFUSED')
    expect(one.countHere('a', 1)).toBe(true)
    fleet.before = async () => {}
    expect(await one.comeBack()).toBe(0)
    expect(await one.comeBack()).toBe(0)
    expect(fleet.left(one.counter, 'a')).toBe(7)
  })
})
