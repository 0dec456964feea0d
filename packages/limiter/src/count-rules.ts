import { isDeepStrictEqual } from 'node:util'
import type { Meter, Part } from './algorithms/algorithm.ts'
import { blockMeter } from './algorithms/block.ts'
import { WHOLE } from './algorithms/part.ts'
import type { CountedRule, Gate } from './judgement.ts'
import type { CompiledRule } from './rules/compile.ts'
import type { FleetStore } from './stores/fleet-store.ts'
import type { MemoryStore } from './stores/memory.ts'

/**
 * Gives each rule its counts. A rule that was there before goes on with what it has counted, whatever its limit was; one
 * with another algorithm, or counted per somebody else, starts anew; the counts of a rule that is gone go with it.
 * Where a rule cannot be counted it throws, and all counts are as before.
 */
export function countRules(
  rules: readonly CompiledRule[],
  before: readonly CountedRule[],
  store: MemoryStore,
  now: number,
  fleet?: FleetStore,
  part: Part = WHOLE,
): CountedRule[] {
  const known = new Map(before.map(counted => [counted.rule.id, counted]))
  const elders = rules.map(rule => {
    const same = known.get(rule.id)
    return same && countsAlike(same.rule, rule) ? same : undefined
  })
  const counters = rules.map(rule => (rule.distributed ? fleet?.createCounter(rule) : undefined))
  adoptAll(rules, elders, now, part)
  const kept = new Set(rules.map(rule => rule.id))
  for (const [id, { gate }] of known) {
    if (kept.has(id)) continue
    store.dropTable(id)
    if (gate) store.dropTable(gateId(id))
  }
  return rules.map((rule, i) => {
    const { id, match } = rule
    const counter = counters[i]
    const same = elders[i]
    const gate = gateOf(rule, same, known.get(id)?.gate, store, fleet)
    if (same) return Object.assign(same, { rule, match, counter, gate })
    return { rule, match, table: store.createTable(id, metersHere(rule, part)), counter, gate, waiting: 0 }
  })
}

/** Where a rule's blocked callers are kept: with those of before, if it is the same rule. */
function gateOf(
  rule: CompiledRule,
  same: CountedRule | undefined,
  before: Gate | undefined,
  store: MemoryStore,
  fleet?: FleetStore,
): Gate | undefined {
  if (rule.blockMs === undefined) {
    if (before) store.dropTable(gateId(rule.id))
    return undefined
  }
  const meters = [blockMeter]
  // the star keeps the name apart from those of algorithms
  const counter = rule.distributed ? fleet?.createCounter({ ...rule, algorithm: '*block', meters }) : undefined
  return { table: same?.gate?.table ?? store.createTable(gateId(rule.id), meters), counter }
}

/** No rule's id has a space. */
function gateId(id: string): string {
  return `${id} block`
}

function countsAlike(one: CompiledRule, other: CompiledRule): boolean {
  return one.algorithm === other.algorithm && one.by.join('\n') === other.by.join('\n')
}

/** Whether this process counts only its part of a limit, for the times when the fleet's store cannot be asked. */
export function isShared({ distributed, emergency }: CompiledRule): boolean {
  return distributed && emergency === 'share'
}

/** By what a rule is counted in this process. */
function metersHere(rule: CompiledRule, part: Part): readonly Meter[] {
  return isShared(rule) && part.size > 1 ? rule.partOf(part) : rule.meters
}

/** Lets the tables of the rules that are shared count another part of their limits. */
export function shareRules(rules: readonly CountedRule[], part: Part, now: number): void {
  for (const { rule, table } of rules) if (isShared(rule)) table.adopt(metersHere(rule, part), now)
}

/** Lets the tables of changed rules go on with the new meters: all of them, or none. */
function adoptAll(
  rules: readonly CompiledRule[],
  elders: readonly (CountedRule | undefined)[],
  now: number,
  part: Part,
): void {
  const undoing: (() => void)[] = []
  try {
    for (const [i, same] of elders.entries()) {
      const rule = rules[i]!
      const isKept = same && isDeepStrictEqual(same.rule.terms, rule.terms) && isShared(same.rule) === isShared(rule)
      if (same && !isKept) undoing.push(same.table.adopt(metersHere(rule, part), now))
    }
  } catch (error) {
    for (const undo of undoing) undo()
    throw error
  }
}
