import { randomRuns } from '@test/random-runs'
import fc from 'fast-check'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { compileRule } from '../../testing/compile-rule.ts'
import type { TimelineRule } from '../../testing/timeline.ts'
import { type LocalCharge, localCharge, MemoryStore } from './memory-store.ts'
import type { Table } from './table.ts'

const aMomentIn2026 = 1_794_712_345_678_901
const SECOND = 1_000_000
const HOUR = 3600 * SECOND

function chargeOf(table: Table, key: string, cost = 1): LocalCharge {
  return Object.assign(localCharge(table), { key, cost, mayWait: false })
}

/** One rule in a store of its own, asked key by key. */
function oneRule(words: TimelineRule, maxKeys?: number) {
  const store = new MemoryStore({ maxKeys })
  const table = store.createTable('rule', compileRule(words).meters)
  const charge = chargeOf(table, '')
  const ask = (key: string, cost: number): LocalCharge[] => {
    charge.key = key
    charge.cost = cost
    return [charge]
  }
  return {
    ...{ store, table },
    take: (key: string, now: number, cost = 1): boolean => store.take(ask(key, cost), 1, now),
    remaining: (key: string, now: number): number => {
      store.look(ask(key, 0), 1, now)
      return charge.remaining[0]!
    },
  }
}

describe('the memory store', () => {
  it('the memory store counts every key separately, however many there are', () => {
    const { store, take, remaining } = oneRule({ limit: '3/h', algorithm: 'fixed-window' })
    for (let key = 0; key < 5000; key++) {
      for (let call = 0; call < 1 + (key % 3); call++) take(`key-${key}`, aMomentIn2026)
    }
    expect(store.keys).toBe(5000)
    for (let key = 0; key < 5000; key++) expect(remaining(`key-${key}`, aMomentIn2026)).toBe(2 - (key % 3))
  })

  it('the sweeps end when no key is left, and begin again with the next one, so that running all timers of a test ends', () => {
    vi.useFakeTimers()
    try {
      const { store, take } = oneRule({ limit: '3/m' })
      const startedAt = Date.now()
      const now = (): number => aMomentIn2026 + (Date.now() - startedAt) * 1000
      const stop = store.sweepEvery(200, 10, now)
      for (const key of ['ann', 'bob']) {
        take(key, now())
        expect([store.keys, vi.getTimerCount()]).toEqual([1, 1])
        vi.runAllTimers()
        expect([store.keys, vi.getTimerCount()]).toEqual([0, 0])
      }
      take('eve', now())
      stop()
      expect(vi.getTimerCount()).toBe(0)
    } finally {
      vi.useRealTimers()
    }
  })

  it('the memory store counts all charges of a call, or none', () => {
    const store = new MemoryStore()
    const loose = store.createTable('loose', compileRule({ limit: '10/s' }).meters)
    const tight = store.createTable('tight', compileRule({ limit: '1/s' }).meters)
    const take = (): boolean => {
      const charges = [chargeOf(loose, 'a'), chargeOf(tight, 'a')]
      const allowed = store.take(charges, 2, aMomentIn2026)
      expect(charges[0]!.remaining).toEqual([9])
      return allowed
    }
    expect([take(), take(), take()]).toEqual([true, false, false])
  })

  it.each(['fixed-window', 'token-bucket', 'sliding-window'])(
    'the memory store leaves forty %s charges as they were if the last is refused',
    algorithm => {
      const store = new MemoryStore()
      const tables = Array.from({ length: 40 }, (_, i) => {
        return store.createTable(`rule-${i}`, compileRule({ limit: i < 39 ? '9/s' : '2/s', algorithm }).meters)
      })
      const take = (now: number): boolean => {
        const charges = tables.map(table => chargeOf(table, 'a'))
        return store.take(charges, charges.length, now)
      }
      const numbers = (): number[][] => tables.map(table => [...table.state(table.find('a'))])
      expect([take(aMomentIn2026), take(aMomentIn2026 + 100_000)]).toEqual([true, true])
      const before = numbers()
      expect(take(aMomentIn2026 + 200_000)).toBe(false)
      expect(numbers()).toEqual(before)
    },
  )

  it('the memory store counts beside a shadow rule that is full, and only reports that one', () => {
    const store = new MemoryStore()
    const [loose, full] = ['9/s', '1/s'].map(limit => store.createTable(limit, compileRule({ limit }).meters))
    const take = (): unknown[] => {
      const charges = [{ ...chargeOf(full!, 'a'), enforced: false }, chargeOf(loose!, 'a')]
      return [store.take(charges, 2, aMomentIn2026), ...charges.flatMap(({ fits, remaining }) => [fits, ...remaining])]
    }
    expect([take(), take(), take()]).toEqual([
      [true, true, 0, true, 8],
      [true, false, 0, true, 7],
      [true, false, 0, true, 6],
    ])
  })

  it('peeking creates no key in the memory store', () => {
    const { store, remaining } = oneRule({ limit: '3/s' })
    expect(remaining('a', aMomentIn2026)).toBe(3)
    expect(store.keys).toBe(0)
  })

  it('a refused call, or one of cost 0, creates no key in the memory store', () => {
    const { store, take } = oneRule({ limit: '3/s' })
    expect([take('a', aMomentIn2026, 4), take('b', aMomentIn2026, 0)]).toEqual([false, true])
    expect(store.keys).toBe(0)
  })
})

describe('a store that is swept', () => {
  it('a swept store answers like one that is never swept', () => {
    const words: TimelineRule[] = [
      { limit: '3/s' },
      { limit: ['30/s', '7/100ms'] },
      { limit: '5/s', algorithm: 'sliding-log' },
      { limit: '2/s', algorithm: 'fixed-window' },
      { limit: '2/s', algorithm: 'fixed-window', align: 'first-call' },
      { limit: '3/s', burst: 5, algorithm: 'token-bucket' },
      { limit: '3/s', burst: 5, algorithm: 'token-bucket', start: 'empty' },
      { limit: '3/s', burst: 5, algorithm: 'token-bucket', refill: 'interval' },
      { limit: '3/s', burst: 2, algorithm: 'leaky-bucket' },
      { limit: '3/s', algorithm: 'warm-up', warmUp: '2s' },
    ]
    const step = fc.record({
      key: fc.constantFrom('a', 'b', 'c', 'd'),
      gapUs: fc.oneof(fc.constant(0), fc.nat(SECOND), fc.nat(30 * SECOND)),
      sweep: fc.boolean(),
    })
    const property = fc.property(fc.constantFrom(...words), fc.array(step, { maxLength: 40 }), (words, steps) => {
      const [kept, swept] = [oneRule(words), oneRule(words)]
      let now = aMomentIn2026
      for (const { key, gapUs, sweep } of steps) {
        now += gapUs
        if (sweep) swept.store.sweep(100, now)
        expect(swept.take(key, now)).toBe(kept.take(key, now))
        expect(swept.remaining(key, now)).toBe(kept.remaining(key, now))
      }
    })
    fc.assert(property, { numRuns: randomRuns(500) })
  })

  it('sweeping frees every idle key, and its slot is used again', () => {
    const { store, table, take } = oneRule({ limit: '3/s', algorithm: 'token-bucket' })
    for (let key = 0; key < 5000; key++) take(`key-${key}`, aMomentIn2026)
    const slots = new Set(Array.from({ length: 5000 }, (_, key) => table.find(`key-${key}`)))
    store.sweep(1e6, aMomentIn2026)
    expect(store.keys).toBe(5000)
    store.sweep(1e6, aMomentIn2026 + HOUR)
    expect(store.keys).toBe(0)
    for (let key = 0; key < 5000; key++) take(`other-${key}`, aMomentIn2026 + HOUR)
    expect(new Set(Array.from({ length: 5000 }, (_, key) => table.find(`other-${key}`)))).toEqual(slots)
  })

  it('a reused slot starts from zero', () => {
    const { store, table, take } = oneRule({ limit: '30/s' })
    take('a', aMomentIn2026)
    const slot = table.find('a')
    store.sweep(10, aMomentIn2026 + HOUR)
    expect(table.find('a')).toBe(0)
    expect(new Set(table.state(slot))).toEqual(new Set([0]))
  })

  it('sweeping keeps callers at their limit, however long it lasts', () => {
    const { store, take } = oneRule({ limit: '1/h', algorithm: 'fixed-window', align: 'first-call' })
    expect(take('spent', aMomentIn2026)).toBe(true)
    store.sweep(1e6, aMomentIn2026 + HOUR - 1)
    expect(take('spent', aMomentIn2026 + HOUR - 1)).toBe(false)
    expect(take('spent', aMomentIn2026 + HOUR)).toBe(true)
  })

  it('sweeping reaches a large table among a thousand small and empty ones', () => {
    const store = new MemoryStore()
    const { meters } = compileRule({ limit: '3/s', algorithm: 'token-bucket' })
    const tables = Array.from({ length: 1000 }, (_, i) => store.createTable(`rule-${i}`, meters))
    for (let key = 0; key < 20_000; key++) store.take([chargeOf(tables[500]!, `key-${key}`)], 1, aMomentIn2026)
    for (const table of tables.slice(0, 400)) store.take([chargeOf(table, 'key')], 1, aMomentIn2026)
    for (let slice = 0; slice < 60; slice++) store.sweep(2048, aMomentIn2026 + HOUR)
    expect(store.keys).toBe(0)
  })

  it('a rule that is created again returns its keys', () => {
    const { store, take } = oneRule({ limit: '3/h' })
    for (let key = 0; key < 10; key++) take(`key-${key}`, aMomentIn2026)
    store.createTable('rule', compileRule({ limit: '4/h' }).meters)
    expect(store.keys).toBe(0)
  })
})

describe('a store that is full of live keys', () => {
  it('new keys in a full store share one strict counter, which is reported', () => {
    const { store, take } = oneRule({ limit: '2/h', algorithm: 'fixed-window' }, 3)
    for (const key of ['a', 'b', 'c']) take(key, aMomentIn2026)
    expect(store.overflowing(aMomentIn2026)).toEqual([])
    expect([take('d', aMomentIn2026), take('e', aMomentIn2026), take('f', aMomentIn2026)]).toEqual([true, true, false])
    expect(store.keys).toBe(3)
    expect(store.overflowing(aMomentIn2026)).toEqual(['rule'])
    expect(store.overflowing(aMomentIn2026 + 2 * HOUR)).toEqual([])
    expect(take('a', aMomentIn2026)).toBe(true)
    expect(take('a', aMomentIn2026)).toBe(false)
  })

  it('a full store reports a rule that has no key of its own as overflowing', () => {
    const store = new MemoryStore({ maxKeys: 1 })
    const { meters } = compileRule({ limit: '2/h' })
    const [first, second] = [store.createTable('first', meters), store.createTable('second', meters)]
    store.take([chargeOf(first, 'a')], 1, aMomentIn2026)
    store.take([chargeOf(second, 'b')], 1, aMomentIn2026)
    expect(store.overflowing(aMomentIn2026)).toEqual(['second'])
  })

  it('a rule without a key does not count as overflowing', () => {
    const { store, take } = oneRule({ limit: '2/h' }, 1)
    take('', aMomentIn2026)
    expect(store.overflowing(aMomentIn2026)).toEqual([])
  })

  it('a new store does not overflow on a clock that begins at zero', () => {
    for (const words of [
      { limit: '2/d', algorithm: 'fixed-window' },
      { limit: '2/d', algorithm: 'token-bucket', start: 'empty' },
    ]) {
      const { store, take } = oneRule(words, 1)
      take('a', 0)
      expect(store.overflowing(0)).toEqual([])
    }
  })

  it('a store that is full of live keys remembers refused callers of a bucket that starts empty, and counts those beyond its bound together', () => {
    const { store, take } = oneRule({ limit: '1/s', burst: 5, algorithm: 'token-bucket', start: 'empty' }, 2)
    const later = aMomentIn2026 + SECOND
    for (const key of ['a', 'b', 'c', 'd']) expect(take(key, aMomentIn2026)).toBe(false)
    expect(store.keys).toBe(2)
    expect(['a', 'b', 'c', 'd'].map(key => take(key, later))).toEqual([true, true, true, false])
  })

  it('a new key starts with what the overflow counter has used', () => {
    const { store, take, remaining } = oneRule({ limit: '5/h', algorithm: 'token-bucket' }, 2)
    take('a', aMomentIn2026)
    take('b', aMomentIn2026, 5)
    take('stranger', aMomentIn2026, 3)
    const later = aMomentIn2026 + HOUR / 5
    store.sweep(1000, later + 11 * SECOND)
    expect(store.keys).toBe(1)
    expect(remaining('stranger', later)).toBe(3)
    expect(take('stranger', later, 2)).toBe(true)
    expect(store.keys).toBe(2)
    expect([remaining('stranger', later), remaining('another', later)]).toEqual([1, 3])
  })

  it('a concurrency slot is returned to the key it was taken from', () => {
    const { store, table, take, remaining } = oneRule({ limit: 2, algorithm: 'concurrency' }, 1)
    take('a', 0)
    expect([take('b', 0), take('c', 0), take('d', 0)]).toEqual([true, true, false])
    const { meters } = table
    meters[0]!.refund(table.state(table.find('b')), table.base(table.find('b')), 0, 1, 0)
    expect([remaining('b', 0), remaining('a', 0), store.keys]).toEqual([1, 1, 1])
  })

  it('idle keys are evicted before new keys overflow', () => {
    const { store, take } = oneRule({ limit: '1/s', algorithm: 'fixed-window' }, 50)
    for (let key = 0; key < 50; key++) take(`key-${key}`, aMomentIn2026)
    const later = aMomentIn2026 + SECOND
    for (let key = 0; key < 50; key++) expect(take(`other-${key}`, later)).toBe(true)
    expect([store.keys, store.overflowing(later)]).toEqual([50, []])
  })
})

describe('a flood of two million keys against room for one', () => {
  const { store, take } = oneRule({ limit: '10/m', algorithm: 'token-bucket' }, 1_000_000)
  let grownBy = 0

  beforeAll(() => {
    const before = memoryInUse()
    take('spent', aMomentIn2026, 10)
    take('half spent', aMomentIn2026, 5)
    for (let key = 0; key < 2_000_000; key++) take(`flood-${key}`, aMomentIn2026)
    grownBy = memoryInUse() - before
  })

  it('a flood of new keys frees no key from a limit already reached', () => {
    expect(take('spent', aMomentIn2026)).toBe(false)
    expect([take('half spent', aMomentIn2026, 6), take('half spent', aMomentIn2026, 5)]).toEqual([false, true])
  })

  it('a flooded store holds as many keys as configured, and counts the others together', () => {
    expect(store.keys).toBe(1_000_000)
    expect(store.overflowing(aMomentIn2026)).toEqual(['rule'])
    expect(take('flood-1999999', aMomentIn2026)).toBe(false)
    expect(take('flood-3', aMomentIn2026)).toBe(true)
  })

  it('a flooded store takes less than 160 bytes per key', () => {
    expect(grownBy).toBeLessThan(160e6)
  })

  it('a store of a million keys is swept in short slices until it is empty', () => {
    const slicesMs: number[] = []
    while (store.keys > 0 && slicesMs.length < 2000) {
      const start = performance.now()
      store.sweep(2048, aMomentIn2026 + HOUR)
      slicesMs.push(performance.now() - start)
    }
    expect(store.keys).toBe(0)
    slicesMs.sort((a, b) => a - b)
    // a machine with other work to do may stop any one of them
    expect(slicesMs[Math.floor(slicesMs.length * 0.9)]).toBeLessThan(20)
  })
})

function memoryInUse(): number {
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}
