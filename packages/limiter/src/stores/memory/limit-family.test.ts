import { describe, expect, it } from 'vitest'
import type { Meter } from '../../algorithms/algorithm.ts'
import { concurrency } from '../../algorithms/concurrency.ts'
import { fixedWindow } from '../../algorithms/fixed-window.ts'
import { slidingWindow } from '../../algorithms/sliding-window.ts'
import { canContinue, LimitFamily } from './limit-family.ts'
import { type LocalCharge, localCharge, MemoryStore } from './memory-store.ts'
import { refundLocal } from './refund-local.ts'
import { resetsSoFar, type Table } from './table.ts'

const NOON = 1_794_744_000_000_000
const HOUR = 3_600_000_000

/** A rule with a table for each limit. */
function scene(meters: readonly Meter[]) {
  const store = new MemoryStore()
  const family = new LimitFamily()
  const tables = meters.map((meter, i) => {
    const table = store.createTable(`limit ${i}`, [meter])
    family.add(table, true)
    return table
  })
  const chargeOf = (table: Table, key: string): LocalCharge => ({ ...localCharge(table), key, cost: 1, mayWait: false })
  const take = (limit: number, now: number, key = 'ann') => {
    const charge = chargeOf(tables[limit]!, key)
    return { passes: store.take([charge], 1, now), charge }
  }
  const left = (limit: number, now: number, key = 'ann') => {
    const charge = chargeOf(tables[limit]!, key)
    store.look([charge], 1, now)
    return charge.remaining[0]
  }
  return { store, family, tables, take, left }
}

const perHour = (count: number) => fixedWindow.meter({ count, periodMs: 3_600_000 }, {})

describe('a key with several limits', () => {
  it('a key with several limits has one slot until its limit changes, and no slot too many after it is forgotten', () => {
    const { store, tables, take } = scene([perHour(3), perHour(5)])
    take(0, NOON)
    expect([store.keys, tables[0]!.keys, tables[1]!.keys]).toEqual([1, 1, 0])
    take(1, NOON)
    expect([store.keys, tables[0]!.keys, tables[1]!.keys]).toEqual([2, 1, 1])
    take(1, NOON + 2 * HOUR)
    expect([store.keys, tables[0]!.keys, tables[1]!.keys]).toEqual([1, 0, 1])
    store.sweep(100, NOON + 5 * HOUR)
    expect(store.keys).toBe(0)
  })

  it('a look at another limit changes nothing of a key with several limits', () => {
    const { store, tables, take, left } = scene([perHour(3), perHour(5)])
    take(0, NOON)
    expect([left(1, NOON), left(0, NOON)]).toEqual([4, 2])
    expect([store.keys, tables[1]!.keys]).toEqual([1, 0])
  })

  it('a key with several limits is refunded and reset in all tables', () => {
    const { tables, take, left } = scene([perHour(3), perHour(5)])
    take(0, NOON)
    take(1, NOON)
    const { charge } = take(1, NOON + 1)
    refundLocal({ ...charge, moment: NOON + 1, resetsBefore: resetsSoFar() }, NOON + 1, 'all')
    expect([left(0, NOON + 1), left(1, NOON + 1)]).toEqual([1, 3])
    tables[0]!.reset('ann')
    expect([left(0, NOON), left(1, NOON)]).toEqual([3, 5])
  })

  it('a key with several limits holds its concurrency slots whatever its limit is', () => {
    const limits = [2, 3].map(count => concurrency.meter({ count, periodMs: 0 }, {}))
    const { take, left } = scene(limits)
    const first = take(0, NOON)
    take(0, NOON)
    expect([take(0, NOON).passes, take(1, NOON).passes, take(1, NOON).passes]).toEqual([false, true, false])
    refundLocal({ ...first.charge, moment: NOON, resetsBefore: resetsSoFar() }, NOON, 'all')
    expect([left(0, NOON), left(1, NOON)]).toEqual([0, 1])
  })

  it('limits of one period continue what the others have counted; others count all calls themselves', () => {
    const per = (count: number, periodMs: number) => slidingWindow.meter({ count, periodMs }, {})
    expect(canContinue([per(10, 1000), per(500, 1000), per(0, 1000)])).toBe(true)
    expect(canContinue([per(10, 1000), per(500, 60_000)])).toBe(false)
    const { tables, take } = scene([per(10, 1000), per(500, 60_000)])
    take(0, NOON)
    expect(tables.map(({ keys }) => keys)).toEqual([1, 1])
  })
})
