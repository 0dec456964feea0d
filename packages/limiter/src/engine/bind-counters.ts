import { isDeepStrictEqual } from 'node:util'
import type { Meter, Part } from '../algorithms/algorithm.ts'
import { blocking, blockMeter } from '../algorithms/block.ts'
import type { BlockCounters, RuleState } from '../decision/rule-state.ts'
import type { CompositeStore } from '../distributed/composite-store.ts'
import type { CompiledRule } from '../rules/compile.ts'
import { Tally } from '../stats/tally.ts'
import type { MemoryStore } from '../stores/memory/memory-store.ts'
import type { FleetCounter } from '../stores/store.ts'

/**
 * Gives each rule its counts. A rule that was there before goes on with what it has counted, whatever its limit was; one
 * with another algorithm starts anew, and goes on with its counts if it is changed back soon; one that is counted per somebody
 * else starts anew; the counts of a rule that is gone go with it.
 * Where a rule cannot be counted it throws, and all counts are as before.
 */
export function bindCounters(
  rules: readonly CompiledRule[],
  before: readonly RuleState[],
  store: MemoryStore,
  now: number,
  shared?: CompositeStore,
): RuleState[] {
  const known = new Map(before.map(counted => [counted.rule.id, counted]))
  const previousStates = rules.map(rule => {
    const same = known.get(rule.id)
    return same && countsAlike(same.rule, rule) ? same : undefined
  })
  const counters = rules.map(rule => shared?.createCounter(rule))
  adoptAll(rules, previousStates, counters, now, shared)
  const kept = new Set(rules.map(rule => rule.id))
  for (const [id, { blocks }] of known) {
    if (kept.has(id)) continue
    store.dropTable(id)
    if (blocks) store.dropTable(blockTableId(id))
  }
  return rules.map((rule, i) => {
    const { id, match } = rule
    const counter = counters[i]
    const same = previousStates[i]
    const blocks = blockCountersOf(rule, same, known.get(id)?.blocks, store, shared)
    if (same) return Object.assign(same, { rule, match, counter, blocks })
    // what is counted anew is told as before
    const tally = known.get(id)?.tally ?? new Tally(rule.meters.length)
    return {
      rule,
      match,
      table: store.createTable(id, metersHere(rule, shared?.partOf(rule))),
      counter,
      blocks,
      waiting: 0,
      tally,
    }
  })
}

/** Where a rule's blocked callers are kept: with those of before, if it is the same rule. */
function blockCountersOf(
  rule: CompiledRule,
  same: RuleState | undefined,
  before: BlockCounters | undefined,
  store: MemoryStore,
  shared?: CompositeStore,
): BlockCounters | undefined {
  if (rule.blockMs === undefined) {
    if (before) store.dropTable(blockTableId(rule.id))
    return undefined
  }
  const meters = [blockMeter]
  const counter = shared?.createCounter({
    ...rule,
    algorithm: blocking.name,
    meters,
    terms: [[{ count: 1, periodMs: 0 }], {}],
  })
  return { table: same?.blocks?.table ?? store.createTable(blockTableId(rule.id), meters), counter }
}

/** No rule's id has a space. */
function blockTableId(id: string): string {
  return `${id} block`
}

/** Rules of other algorithms go on too, with nothing counted at first; but calls that hold places are counted apart. */
function countsAlike(one: CompiledRule, other: CompiledRule): boolean {
  if (one.by.join('\n') !== other.by.join('\n')) return false
  const holds = ({ meters }: CompiledRule): boolean => meters.some(({ needsRelease }) => needsRelease)
  return one.algorithm === other.algorithm || !(holds(one) || holds(other))
}

/** By what a rule is counted in this process: its part of the limit, for the times when its store cannot be asked. */
function metersHere(rule: CompiledRule, part: Part | undefined): readonly Meter[] {
  return part && part.size > 1 && rule.whenStoreDown === 'share' ? rule.partOf(part) : rule.meters
}

/** Lets the tables of rules that are counted together count another part of their limits. */
export function shareRules(rules: readonly RuleState[], shared: CompositeStore, now: number): void {
  for (const { rule, table, counter } of rules) {
    if (counter && rule.whenStoreDown === 'share') table.adopt(metersHere(rule, shared.partOf(rule)), now)
  }
}

/** Lets the tables of changed rules go on with the new meters: all of them, or none. */
function adoptAll(
  rules: readonly CompiledRule[],
  previousStates: readonly (RuleState | undefined)[],
  counters: readonly (FleetCounter | undefined)[],
  now: number,
  shared: CompositeStore | undefined,
): void {
  const undoing: (() => void)[] = []
  try {
    for (const [i, same] of previousStates.entries()) {
      const rule = rules[i]!
      const isKept =
        same &&
        same.rule.algorithm === rule.algorithm &&
        isDeepStrictEqual(same.rule.terms, rule.terms) &&
        isSharedAlike(same.rule, rule)
      if (!same || isKept) continue
      // if a store counts for several processes, it keeps the versions of the rule
      const keepsPast = counters[i] === undefined
      undoing.push(same.table.adopt(metersHere(rule, shared?.partOf(rule)), now, { keepsPast }))
    }
  } catch (error) {
    for (const undo of undoing) undo()
    throw error
  }
}

function isSharedAlike(one: CompiledRule, other: CompiledRule): boolean {
  return one.distributed === other.distributed && (one.whenStoreDown === 'share') === (other.whenStoreDown === 'share')
}
