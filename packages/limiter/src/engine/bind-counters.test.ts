import { describe, expect, it } from 'vitest'
import type { Meter } from '../algorithms/algorithm.ts'
import type { RuleState } from '../decision/rule-state.ts'
import type { CompiledRule } from '../rules/compile.ts'
import { localCharge, MemoryStore } from '../stores/memory/memory-store.ts'
import { compileRule } from '../testing/compile-rule.ts'
import type { TimelineRule } from '../testing/timeline.ts'
import { bindCounters } from './bind-counters.ts'

const now = 1_794_712_345_678_901

function ruleOf(id: string, words: TimelineRule, parts: Partial<CompiledRule> = {}): CompiledRule {
  return { ...compileRule(words, { id }), ...parts }
}

/** Rules that change, and their counts in a store. */
function bindRules(...rules: CompiledRule[]) {
  const store = new MemoryStore()
  let counted: RuleState[] = bindCounters(rules, [], store, now)
  const find = (id: string): RuleState => counted.find(({ rule }) => rule.id === id)!
  const chargeOf = (id: string, key: string, cost: number) => Object.assign(localCharge(find(id).table), { key, cost })
  return {
    store,
    find,
    change: (...rules: CompiledRule[]): void => {
      counted = bindCounters(rules, counted, store, now)
    },
    ids: (): string[] => counted.map(({ rule }) => rule.id),
    take: (id: string, key = 'a', calls = 1): void => {
      for (let call = 0; call < calls; call++) store.take([chargeOf(id, key, 1)], 1, now)
    },
    left: (id: string, key = 'a'): number[] => {
      const charge = chargeOf(id, key, 0)
      store.look([charge], 1, now)
      return charge.remaining.slice(0, charge.table.meters.length)
    },
  }
}

describe('counters after a change of rules', () => {
  it('an unchanged rule keeps every bit of its counts', () => {
    const { change, take, left, find } = bindRules(ruleOf('a', { limit: '10/h' }), ruleOf('b', { limit: '10/h' }))
    take('a', 'x', 3)
    const { table } = find('a')
    const before = [...table.state(table.find('x'))]
    change(ruleOf('b', { limit: '5/h' }), ruleOf('a', { limit: '10/h' }), ruleOf('c', { limit: '1/s' }))
    expect(find('a').table).toBe(table)
    expect([...table.state(table.find('x'))]).toEqual(before)
    expect(left('a', 'x')).toEqual([7])
  })

  it('blocked callers stay blocked as long as their rule blocks, also if it was removed in between', () => {
    const blocking = (limit: string, parts: Partial<CompiledRule> = {}) =>
      ruleOf('a', { limit }, { blockMs: 1000, ...parts })
    const { change, find, store } = bindRules(blocking('10/h'))
    const block = (): void => {
      store.take([Object.assign(localCharge(find('a').blocks!.table), { key: 'x', cost: 1000 })], 1, now)
    }
    block()
    const { table } = find('a').blocks!
    change(blocking('5/h'), ruleOf('b', { limit: '1/s' }))
    expect(find('a').blocks!.table).toBe(table)
    expect([table.keys, store.keys]).toEqual([1, 1])
    change(blocking('5/h', { blockMs: undefined }))
    expect([find('a').blocks, store.keys]).toEqual([undefined, 0])
    change(blocking('5/h'))
    block()
    change(blocking('5/h', { by: ['other'] }))
    expect([find('a').blocks!.table.keys, store.keys]).toEqual([0, 0])
    block()
    change(ruleOf('a', { limit: '5/h' }))
    expect([find('a').blocks, store.keys]).toEqual([undefined, 0])
    change(blocking('5/h'))
    block()
    change(ruleOf('b', { limit: '1/s' }))
    change(blocking('5/h'))
    expect([find('a').blocks!.table.keys, store.keys]).toEqual([1, 1])
  })

  it('a rule with another limit continues with what was counted, for every key', () => {
    const { change, take, left, store } = bindRules(ruleOf('a', { limit: '10/h' }))
    for (let key = 0; key < 3000; key++) take('a', `key-${key}`, 1 + (key % 5))
    change(ruleOf('a', { limit: ['4/h', '100/d'], segments: 30 }))
    for (let key = 0; key < 3000; key++) {
      const used = 1 + (key % 5)
      expect(left('a', `key-${key}`)).toEqual([Math.max(0, 4 - used), 100 - used])
    }
    expect(store.keys).toBe(3000)
    change(ruleOf('a', { limit: '10/h' }))
    expect([left('a', 'key-4'), left('a', 'key-5'), left('a', 'new')]).toEqual([[5], [9], [10]])
  })

  it('a rule without a key continues with what was counted', () => {
    const { change, take, left } = bindRules(ruleOf('a', { limit: '10/h', algorithm: 'token-bucket' }))
    take('a', '', 4)
    change(ruleOf('a', { limit: '10/h', algorithm: 'token-bucket', burst: 5 }))
    expect(left('a', '')).toEqual([1])
  })

  it('keys in the overflow counter stay there', () => {
    const store = new MemoryStore({ maxKeys: 1 })
    const [counted] = bindCounters([ruleOf('a', { limit: '10/h' })], [], store, now)
    const take = (key: string) => store.take([Object.assign(localCharge(counted!.table), { key, cost: 1 })], 1, now)
    for (const key of ['known', 'x', 'y', 'z']) take(key)
    bindCounters([ruleOf('a', { limit: '4/h' })], [counted!], store, now)
    expect(store.overflowing(now)).toEqual(['a'])
    expect([take('u'), take('v'), take('known')]).toEqual([true, false, true])
  })

  it('a rule with another algorithm starts from zero, and continues with its counts if it is changed back', () => {
    const { change, take, left } = bindRules(ruleOf('a', { limit: '10/h' }))
    take('a')
    change(ruleOf('a', { limit: '10/h', algorithm: 'sliding-log' }))
    expect(left('a')).toEqual([10])
    take('a')
    change(ruleOf('a', { limit: '10/h' }))
    expect(left('a')).toEqual([8])
  })

  it('a rule with other dimensions starts from zero', () => {
    const { change, take, left, store } = bindRules(ruleOf('b', { limit: '10/h' }))
    take('b')
    change(ruleOf('b', { limit: '10/h' }, { by: ['ip'] }))
    expect([left('b'), store.keys]).toEqual([[10], 0])
  })

  it('a removed rule that comes back continues', () => {
    const { change, take, left, ids } = bindRules(ruleOf('a', { limit: '10/h' }), ruleOf('b', { limit: '10/h' }))
    take('a')
    take('b')
    change(ruleOf('b', { limit: '10/h' }))
    expect(ids()).toEqual(['b'])
    change(ruleOf('a', { limit: '10/h' }), ruleOf('b', { limit: '10/h' }))
    expect([left('a'), left('b')]).toEqual([[9], [9]])
  })

  it('calls that wait stay counted with their rule', () => {
    const { change, find } = bindRules(ruleOf('a', { limit: '10/h', whenFull: 'wait' }))
    const before = find('a')
    before.waiting = 3
    change(ruleOf('a', { limit: '20/h', whenFull: 'wait' }))
    expect(find('a')).toBe(before)
    expect([before.waiting, before.rule.limits[0]!.count]).toEqual([3, 20])
  })

  it('a custom meter without a scale keeps its counts while its options are the same', () => {
    const own = (count: number): CompiledRule => {
      const meter: Meter = {
        slots: 1,
        maxWaitUs: 0,
        delay: (state, at, _now, cost) => (state[at]! + cost > count ? Number.POSITIVE_INFINITY : 0),
        take: (state, at, _now, cost) => {
          state[at] = state[at]! + cost
        },
        refund: () => {},
        remaining: (state, at) => count - state[at]!,
        idleAt: () => Number.POSITIVE_INFINITY,
      }
      return ruleOf('own', { limit: `${count}/h` }, { meters: [meter], terms: [count] })
    }
    const { change, take, left } = bindRules(own(10))
    take('own')
    change(own(10))
    expect(left('own')).toEqual([9])
    change(own(20))
    expect(left('own')).toEqual([20])
  })

  it('if one rule cannot be counted, no counter changes', () => {
    const { change, take, left, find, ids, store } = bindRules(
      ruleOf('a', { limit: '10/h' }),
      ruleOf('b', { limit: '10/h' }),
      ruleOf('gone', { limit: '10/h' }),
    )
    for (const id of ['a', 'b', 'gone']) take(id)
    const { meters } = find('a').table
    const broken = ruleOf('b', { limit: '9/h' })
    const inherit = (): void => {
      throw new Error('no')
    }
    const bad = {
      ...broken,
      meters: [Object.assign(Object.create(broken.meters[0]!), { migrate: { inherit, scale: [1] } })],
    }
    expect(() => change(ruleOf('a', { limit: '5/h' }), bad, ruleOf('new', { limit: '1/h' }))).toThrow('no')
    expect(ids()).toEqual(['a', 'b', 'gone'])
    expect(find('a').table.meters).toBe(meters)
    expect([left('a'), left('b'), left('gone'), store.keys]).toEqual([[9], [9], [9], 3])
  })
})
