import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { blocking, firstBlockCost } from '../../algorithms/block.ts'
import { algorithms } from '../../algorithms/index.ts'
import { compileRule } from '../../testing/compile-rule.ts'
import { seededWalks } from '../../testing/seeded-walks.ts'
import { MapStore } from '../../testing/stores/map-store.ts'
import type { TimelineRule } from '../../testing/timeline.ts'
import { type Answered, type FleetCharge, fleetCharge } from '../store.ts'
import type { LedgerChange, TransactionalStore } from '../transactional-store.ts'
import { type LedgerCounter, LedgerStore } from './ledger-store.ts'
import { GIVE_UP_MS } from './transact.ts'

const START_US = 1_800_000_000_000_000

/** One process that counts in a store. */
class Process {
  readonly store: LedgerStore
  now = START_US
  readonly #counters = new Map<string, LedgerCounter>()

  constructor(ledgers: TransactionalStore, holder = 'one') {
    this.store = new LedgerStore(ledgers, { algorithms, holder, now: () => this.now })
    onTestFinished(() => this.store.close())
  }

  counter(rule: TimelineRule, id = 'rule'): LedgerCounter {
    const name = JSON.stringify([id, rule])
    const counter = this.#counters.get(name) ?? this.store.createCounter(compileRule(rule, { id }))
    this.#counters.set(name, counter)
    return counter
  }

  charge(rule: TimelineRule, key = 'ann', cost = 1): FleetCharge {
    return { ...fleetCharge(this.counter(rule)), key, cost, mayWait: false }
  }

  async take(rule: TimelineRule, key?: string, cost?: number): Promise<boolean> {
    return (await this.store.take([this.charge(rule, key, cost)])).allowed
  }

  async left(rule: TimelineRule, key?: string): Promise<number> {
    const charge = this.charge(rule, key, 0)
    await this.store.look([charge])
    return charge.remaining[0]!
  }
}

/** A store whose transactions run through a function. */
function storeWith(
  transact: (run: () => Promise<void>, change: LedgerChange, ledgers: Map<string, string>) => Promise<void>,
  store = new MapStore(),
): MapStore {
  const spoiled = new MapStore(store.ledgers)
  spoiled.transact = (keys, change) => transact(() => store.transact(keys, change), change, store.ledgers)
  return spoiled
}

const perHour: TimelineRule = { limit: '3/h' }
const slots: TimelineRule = { algorithm: 'concurrency', limit: 2 }

describe('ledgers in stores that misbehave', () => {
  it('a store that runs the change again with the same ledgers counts each call once', async () => {
    const create = () =>
      storeWith(async (run, change, ledgers) => {
        change(new Map(ledgers))
        change(new Map())
        await run()
      })
    const walked = await seededWalks({
      create: options => new LedgerStore(create(), { ...options, algorithms }),
      empty: async () => {},
      seed: 3,
      steps: 400,
    })
    expect(walked).toEqual([])
  })

  it('a transaction that fails after the change counts nothing, and its call fails', async () => {
    let fails = true
    const store = storeWith(async (run, change, ledgers) => {
      if (!fails) return await run()
      change(ledgers)
      throw new Error('could not serialize access')
    })
    const process = new Process(store)
    await expect(process.take(perHour)).rejects.toThrow('could not serialize access')
    fails = false
    expect(await process.left(perHour)).toBe(3)
  })

  it('a transaction that is written, and then fails, has counted its call', async () => {
    let fails = true
    const store = storeWith(async run => {
      await run()
      if (fails) throw new Error('the connection is lost')
    })
    const process = new Process(store)
    await expect(process.take(perHour)).rejects.toThrow('the connection is lost')
    fails = false
    expect(await process.left(perHour)).toBe(2)
  })

  it('slots of a call whose answer is lost are released by the next renewal', async () => {
    let fails = true
    const store = storeWith(async run => {
      await run()
      if (fails) throw new Error('the connection is lost')
    })
    const process = new Process(store)
    await expect(process.take(slots)).rejects.toThrow()
    fails = false
    expect(await process.left(slots)).toBe(1)
    await process.store.renew()
    expect(await process.left(slots)).toBe(2)
  })

  it('a caller whose ledger is lost, or written by another program, is one never seen', async () => {
    const store = new MapStore()
    const process = new Process(store)
    for (const text of [
      undefined,
      '',
      '{',
      'null',
      '[]',
      '{"version":2}',
      '{"version":1,"at":"x"}',
      '{"version":1,"at":1,"limits":[{}]}',
    ]) {
      await process.take(perHour)
      const [key] = [...store.ledgers.keys()]
      if (text === undefined) store.ledgers.delete(key!)
      else store.ledgers.set(key!, text)
      expect(await process.left(perHour), text).toBe(3)
      expect(await process.take(perHour, 'ann', 3), text).toBe(true)
      store.ledgers.clear()
    }
  })

  it('a transaction that never ends fails, and its callers are counted again', async () => {
    vi.useFakeTimers()
    onTestFinished(() => void vi.useRealTimers())
    let late: LedgerChange | undefined
    const store = storeWith(async (run, change) => {
      if (late) return await run()
      late = change
      await new Promise(() => {})
    })
    const process = new Process(store)
    const failed = expect(process.take(perHour)).rejects.toThrow(`no answer within ${GIVE_UP_MS} ms`)
    await vi.advanceTimersByTimeAsync(GIVE_UP_MS * 2)
    await failed
    // what comes too late is not written
    expect(() => late!(new Map())).toThrow('the transaction has taken too long')
    expect(store.ledgers.size).toBe(0)
    const again = process.take(perHour)
    await vi.advanceTimersByTimeAsync(10)
    expect(await again).toBe(true)
  })

  it('a store that never calls the change, or gives it no time, fails its calls', async () => {
    const silent = new Process(storeWith(async () => {}))
    await expect(silent.take(perHour)).rejects.toThrow('has not called change')
    const timeless = new Process(storeWith(async (_, change, ledgers) => void change(ledgers, Number.NaN)))
    await expect(timeless.take(perHour)).rejects.toThrow('milliseconds since 1970')
  })

  it('a meter that throws fails its own calls, and not those of the same transaction', async () => {
    const process = new Process(new MapStore())
    const counter = process.counter(perHour, 'broken')
    const broken = {
      ...process.charge(perHour),
      counter: Object.assign({}, counter, {
        limit: {
          ...counter.limit,
          meters: counter.limit.meters.map(() => ({
            slots: 0,
            delay: () => {
              throw new Error('a bug')
            },
          })),
        },
      }),
    }
    const answers = await Promise.allSettled([
      process.take(perHour),
      process.store.take([process.charge({ limit: '5/h' }, 'bob'), broken]),
      process.take(perHour),
    ])
    expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect(await process.left(perHour)).toBe(1)
    expect(await process.left({ limit: '5/h' }, 'bob')).toBe(5)
  })
})

describe('the transactions of a process', () => {
  it('calls of one turn travel in one transaction, with sorted keys, and calls of a caller under way in the next', async () => {
    const asked: (readonly string[])[] = []
    const store = new MapStore()
    const turn = () => new Promise<void>(resolve => setImmediate(resolve))
    let goOn = () => {}
    const paused = new Promise<void>(resolve => {
      goOn = resolve
    })
    const process = new Process({
      transact: async (keys, change) => {
        asked.push(keys)
        if (asked.length === 1) await paused
        await store.transact(keys, change)
      },
    })
    const first = ['carl', 'ann', 'bob', 'ann'].map(key => process.take(perHour, key))
    await turn()
    const second = ['ann', 'dora'].map(key => process.take(perHour, key))
    await turn()
    goOn()
    await Promise.all([...first, ...second])
    const callers = asked.map(keys => keys.map(key => /\{(.*)\}/.exec(key)![1]))
    expect(callers).toEqual([['ann', 'bob', 'carl'], ['dora'], ['ann']])
    expect(await process.left(perHour, 'ann')).toBe(0)
  })

  it('keys lists a caller whose call is still on its way', async () => {
    const process = new Process(new MapStore())
    const call = process.take(perHour)
    expect(await process.store.keys!(process.counter(perHour), 10)).toEqual(['ann'])
    await call
  })

  it('many calls of one turn are cut into transactions of a bounded size', async () => {
    const sizes: number[] = []
    const store = new MapStore()
    const process = new Process({
      transact: (keys, change) => {
        sizes.push(keys.length)
        return store.transact(keys, change)
      },
    })
    const answers = await Promise.all(Array.from({ length: 1000 }, (_, i) => process.take(perHour, `caller ${i}`)))
    expect(answers.every(Boolean)).toBe(true)
    expect(Math.max(...sizes)).toBeLessThanOrEqual(128)
    expect(sizes.length).toBeLessThanOrEqual(10)
  })

  it('a ledger is kept for as long as it matters, and deleted when it is reset to nothing', async () => {
    const writes: [string | undefined, number][] = []
    const store = new MapStore()
    const process = new Process({
      transact: (keys, change) =>
        store.transact(keys, (...given) => {
          const written = change(...given)
          for (const { ledger, keepMs } of written) writes.push([ledger && 'written', keepMs])
          return written
        }),
    })
    const slot = { ...process.charge(slots), cost: 1 }
    const { now } = await process.store.take([slot])
    process.store.giveBack([{ counter: slot.counter, key: 'ann', cost: 1, moment: now }])
    await process.left(slots)
    await process.take({ algorithm: 'fixed-window', limit: '1/m' })
    expect(writes).toEqual([
      ['written', 6000],
      [undefined, expect.any(Number)],
      ['written', expect.any(Number)],
    ])
    expect(writes[2]![1]).toBeGreaterThan(1000)
    expect(writes[2]![1]).toBeLessThanOrEqual(61_000)
  })
})

describe('several processes that count in one store', () => {
  it('slots of a process that is gone are released when its lease ends, and those of others are not', async () => {
    const store = new MapStore()
    const [one, other] = [new Process(store, 'one'), new Process(store, 'other')]
    expect([await one.take(slots), await other.take(slots), await one.take(slots)]).toEqual([true, true, false])
    for (const process of [one, other]) process.now += 4_000_000
    await other.store.renew()
    for (const process of [one, other]) process.now += 2_000_000
    expect(await other.left(slots)).toBe(1)
    expect(await other.take(slots)).toBe(true)
    expect(await other.left(slots)).toBe(0)
  })

  it('time never goes back for a caller whose processes have different clocks', async () => {
    const store = new MapStore()
    const [one, behind] = [new Process(store), new Process(store)]
    behind.now -= 50_000
    const rule: TimelineRule = { algorithm: 'token-bucket', limit: '10/s', burst: 1 }
    let admitted = 0
    for (let ms = 0; ms < 10_000; ms += 5) {
      for (const process of [one, behind]) {
        process.now += 5000
        if (await process.take(rule)) admitted++
      }
    }
    // what passes beyond the limit is what a difference of clocks gives once
    expect(admitted).toBeGreaterThanOrEqual(100)
    expect(admitted).toBeLessThanOrEqual(101)
  })

  it('the time that a store gives comes before the clock of the process', async () => {
    const store = new MapStore()
    let nowMs = START_US / 1000 + 0.25
    const timed: TransactionalStore = {
      transact: (keys, change) => store.transact(keys, given => change(given, nowMs)),
    }
    const process = new Process(timed)
    process.now = 5
    const answers: Answered[] = []
    for (let i = 0; i < 2; i++) {
      answers.push(await process.store.take([process.charge({ algorithm: 'token-bucket', limit: '1/s', burst: 1 })]))
      nowMs += 500
    }
    expect(answers).toEqual([
      { allowed: true, now: START_US + 250 },
      { allowed: false, now: START_US + 500_250 },
    ])
  })

  it('processes with different versions of a rule count the same calls', async () => {
    const store = new MapStore()
    const [old, current] = [new Process(store, 'old'), new Process(store, 'new')]
    const [before, after]: TimelineRule[] = [{ limit: '10/h' }, { limit: ['20/h', '5/m'] }]
    for (let i = 0; i < 4; i++) expect(await old.take(before!)).toBe(true)
    expect(await current.left(after!)).toBe(16)
    expect(await current.take(after!)).toBe(true)
    expect(await old.left(before!)).toBe(5)
    for (let i = 0; i < 5; i++) expect(await old.take(before!)).toBe(true)
    expect([await old.take(before!), await current.take(after!)]).toEqual([false, false])
  })

  it('a caller who is blocked stays blocked for a process whose blocks do not grow', async () => {
    const store = new MapStore()
    const blockOf = async (process: Process, options: Record<string, number>) => {
      const limit = { count: 1, periodMs: 0 }
      const meters = [blocking.meter(limit, options)]
      const rule = { id: 'login', algorithm: blocking.name, enforced: true, meters, terms: [[limit], options] }
      return { ...fleetCharge(process.store.createCounter(rule)), key: 'ann', mayWait: false }
    }
    const growth = { firstMs: 60_000, factor: 2, maxMs: 600_000, forgetAfterMs: 3_600_000 }
    const [old, current] = [new Process(store, 'old'), new Process(store, 'new')]
    const blocked = await blockOf(old, growth)
    await old.store.take([{ ...blocked, cost: firstBlockCost(60_000) }])
    const seen = { ...(await blockOf(current, {})), cost: 0 }
    expect((await current.store.look([seen])).allowed).toBe(false)
    expect(seen.delays).toEqual([60_000_000])
  })

  it('a changed limit continues the counts of callers who do not come again before they would expire', async () => {
    const store = new MapStore()
    const process = new Process(store)
    const kept = new Map<string, number>()
    const transact = store.transact.bind(store)
    store.transact = (keys, change) =>
      transact(keys, ledgers => {
        const writes = change(ledgers)
        for (const { key, keepMs } of writes) kept.set(key, keepMs)
        return writes
      })
    await process.take({ algorithm: 'fixed-window', limit: '5/s' })
    process.store.createCounter(compileRule({ algorithm: 'fixed-window', limit: '5/h' }))
    await process.store.continued()
    expect([...kept.values()]).toEqual([expect.any(Number)])
    expect(Math.min(...kept.values())).toBeGreaterThan(2000)
  })
})
