import { isDeepStrictEqual } from 'node:util'
import type { Meter, Part } from '../algorithms/algorithm.ts'
import { blocking } from '../algorithms/block.ts'
import { countsQuickly } from '../decision/quick-pass.ts'
import type { BlockCounters, CallerLimits, RuleState } from '../decision/rule-state.ts'
import { newState } from '../decision/rule-state.ts'
import type { CompiledRule } from '../rules/compile.ts'
import { Tally } from '../stats/tally.ts'
import type { CompositeStore } from '../stores/composite-store.ts'
import type { MemoryStore } from '../stores/memory/memory-store.ts'
import type { FleetCounter } from '../stores/store.ts'
import { PlanBinding, type PlanContext, PlanTables } from './bind-plans.ts'

/**
 * Gives each rule its counts. A rule that existed before continues with its counts, whatever its limit was, also if it was removed
 * and comes back while they matter. A rule with another algorithm starts from zero, and continues with its counts if it is
 * changed back soon; a rule with other dimensions starts from zero. If a rule cannot be counted, it throws, and all counts are unchanged.
 */
export function bindCounters(
  rules: readonly CompiledRule[],
  before: readonly RuleState[],
  store: MemoryStore,
  now: number,
  shared?: CompositeStore,
  limits: CallerLimitsOf = () => undefined,
): RuleState[] {
  const removed = removedFrom(store)
  const known = new Map([...removed, ...before.map(counted => [counted.rule.id, counted] as const)])
  const previousStates = rules.map(rule => {
    const same = known.get(rule.id)
    return same && countsAlike(same.rule, rule) ? same : undefined
  })
  const counters = rules.map(rule => shared?.createCounter(rule))
  adoptAll(rules, previousStates, counters, now, shared)
  const kept = new Set(rules.map(rule => rule.id))
  for (const [id, state] of known) {
    if (kept.has(id)) removed.delete(id)
    else if (isIdle(state, now)) {
      removed.delete(id)
      dropTables(id, state, store)
    } else removed.set(id, state)
  }
  return rules.map((rule, i) => {
    const { id, match } = rule
    const counter = counters[i]
    const same = previousStates[i]
    const blocks = blockCountersOf(rule, same, known.get(id)?.blocks, store, now, shared)
    const isQuick = countsQuickly({ rule, counter, blocks })
    if (same) {
      Object.assign(same, { rule, match, counter, blocks, isQuick })
      return rule.plans === undefined
        ? same
        : bindPlans(same, bindings.get(same)?.tables, { store, shared, limits, now })
    }
    // a rule that starts from zero keeps its statistics
    const tally = known.get(id)?.tally ?? new Tally(rule.meters.length)
    const previous = known.get(id)
    if (previous) bindings.get(previous)?.tables.dropAll(store)
    const table = store.createTable(id, metersHere(rule, shared?.partOf(rule)))
    const state = newState({ rule, match, table, counter, blocks, isQuick, tally })
    return rule.plans === undefined ? state : bindPlans(state, undefined, { store, shared, limits, now })
  })
}

/** The rules of each store that were removed, and whose counts still matter. */
const removedRules = new WeakMap<MemoryStore, Map<string, RuleState>>()

function removedFrom(store: MemoryStore): Map<string, RuleState> {
  const removed = removedRules.get(store) ?? new Map<string, RuleState>()
  removedRules.set(store, removed)
  return removed
}

/** True if nothing that was counted for a rule matters any more. */
function isIdle(state: RuleState, now: number): boolean {
  const tables = [state.table, state.blocks?.table, ...(bindings.get(state)?.tables.family.tables ?? [])]
  return tables.every(table => table === undefined || table.isIdle(now))
}

function dropTables(id: string, state: RuleState, store: MemoryStore): void {
  store.dropTable(id)
  if (state.blocks) store.dropTable(blockTableId(id))
  bindings.get(state)?.tables.dropAll(store)
}

/** A function that returns where the limits of single callers come from, for a rule that has any. */
export type CallerLimitsOf = (binding: PlanBinding) => CallerLimits | undefined

/** The tables of rules whose limit depends on the caller. */
const bindings = new WeakMap<RuleState, PlanBinding>()

interface BindingContext {
  readonly store: MemoryStore
  readonly shared: CompositeStore | undefined
  readonly limits: CallerLimitsOf
  readonly now: number
}

/** Gives a rule whose limit depends on the caller a state for each limit. */
function bindPlans(state: RuleState, tables: PlanTables | undefined, context: BindingContext): RuleState {
  const { store, shared, limits, now } = context
  const planContext = (): PlanContext => ({
    store,
    now,
    metersOf: rule => metersHere(rule, shared?.partOf(rule)),
    counterOf: rule => shared?.createCounter(rule),
  })
  bindings.set(state, new PlanBinding(state, tables ?? new PlanTables(state.rule.id), planContext, limits))
  return state
}

/** Returns the blocked callers of a rule: those from before, if it is the same rule. */
function blockCountersOf(
  rule: CompiledRule,
  same: RuleState | undefined,
  before: BlockCounters | undefined,
  store: MemoryStore,
  now: number,
  shared?: CompositeStore,
): BlockCounters | undefined {
  if (rule.blockMs === undefined) {
    if (before) store.dropTable(blockTableId(rule.id))
    return undefined
  }
  const limit = { count: 1, periodMs: 0 }
  const options = { ...rule.blockGrowth }
  const meters = [blocking.meter(limit, options)]
  const counter = shared?.createCounter({ ...rule, algorithm: blocking.name, meters, terms: [[limit], options] })
  const table = same?.blocks?.table
  table?.adopt(meters, now)
  return { table: table ?? store.createTable(blockTableId(rule.id), meters), counter }
}

/** Returns an id that no rule has, since no rule id has a space. */
function blockTableId(id: string): string {
  return `${id} block`
}

/** True if a rule continues as another: also with another algorithm, from zero; but concurrency slots are counted separately. */
function countsAlike(one: CompiledRule, other: CompiledRule): boolean {
  if (one.by.join('\n') !== other.by.join('\n')) return false
  // a key with several limits has several tables
  if ((one.plans === undefined) !== (other.plans === undefined)) return false
  const holds = ({ meters }: CompiledRule): boolean => meters.some(meter => meter.held !== undefined)
  return one.algorithm === other.algorithm || !(holds(one) || holds(other))
}

/** Returns the meters that count a rule in this process: those of its share of the limit, for when its store cannot be asked. */
function metersHere(rule: CompiledRule, part: Part | undefined): readonly Meter[] {
  return part && part.size > 1 && rule.whenStoreDown === 'share' ? rule.partOf(part) : rule.meters
}

/** Changes the share of their limits that the tables of shared rules count. */
export function shareRules(rules: readonly RuleState[], shared: CompositeStore, now: number): void {
  for (const { rule, table, counter } of rules.flatMap(state => [state, ...(state.plans?.others ?? [])])) {
    if (counter && rule.whenStoreDown === 'share') table.adopt(metersHere(rule, shared.partOf(rule)), now)
  }
}

/** Lets the tables of changed rules continue with the new meters: all of them, or none. */
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
      if (rule.plans !== undefined) continue
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
