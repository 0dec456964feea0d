import type { Meter } from '../algorithms/algorithm.ts'
import type { RuleState } from '../decision/rule-state.ts'
import { type CallerLimits, newState, type RuleWithLimits, ValueStates } from '../decision/rule-state.ts'
import type { CompiledRule } from '../rules/compile.ts'
import { LimitFamily } from '../stores/memory/limit-family.ts'
import type { MemoryStore } from '../stores/memory/memory-store.ts'
import type { Table } from '../stores/memory/table.ts'
import type { FleetCounter } from '../stores/store.ts'

/** The number of limits from outside that are counted at one time for a rule in one process. */
const MOST_DYNAMIC = 1000

/** The stores and settings with which a rule with several limits is counted. */
export interface PlanContext {
  readonly store: MemoryStore
  readonly now: number
  metersOf(rule: CompiledRule): readonly Meter[]
  counterOf(rule: CompiledRule): FleetCounter | undefined
}

/** The tables of a rule, one for each limit. It is kept when the rule changes. */
export class PlanTables {
  readonly family: LimitFamily = new LimitFamily()
  readonly #id: string
  readonly #tables = new Map<string, Table>()
  #used = new Set<Table>()

  constructor(id: string) {
    this.#id = id
  }

  /** Begins a new set of limits: the tables of others are kept as long as they have keys. */
  begin(): void {
    for (const table of this.#tables.values()) this.family.add(table, false)
    this.#used = new Set()
  }

  /** Returns the table of a limit; `isLasting` if the rule states the limit. */
  tableOf(rule: CompiledRule, isLasting: boolean, { store, now, metersOf }: PlanContext): Table {
    const name = nameOf(rule)
    const known = this.#tables.get(name)
    const table = known ?? store.createTable(`${this.#id} limit ${name}`, metersOf(rule))
    known?.adopt(metersOf(rule), now)
    this.#tables.set(name, table)
    if (isLasting || !this.#used.has(table)) this.family.add(table, isLasting)
    this.#used.add(table)
    return table
  }

  /** Drops the tables that have neither keys nor a limit that is used. */
  dropEmpty(store: MemoryStore, isUsed: (table: Table) => boolean): void {
    const gone = new Set(this.family.removeEmpty(isUsed))
    for (const [name, table] of this.#tables) if (gone.has(table)) this.#drop(name, store)
  }

  dropAll(store: MemoryStore): void {
    for (const name of this.#tables.keys()) this.#drop(name, store)
  }

  #drop(name: string, store: MemoryStore): void {
    this.#tables.delete(name)
    store.dropTable(`${this.#id} limit ${name}`)
  }
}

const names = new WeakMap<CompiledRule, string>()

/** Limits with equal terms count alike. */
function nameOf(rule: CompiledRule): string {
  const known = names.get(rule)
  if (known !== undefined) return known
  const name = JSON.stringify(rule.terms)
  names.set(rule, name)
  return name
}

/** The states of all limits of a rule. `standard` is that of its default, whose table is that of its limit from now on. */
export class PlanBinding implements RuleWithLimits {
  readonly tables: PlanTables
  readonly states: ValueStates
  readonly standard: RuleState
  readonly #context: () => PlanContext
  readonly #dynamic = new Map<string, RuleState>()

  constructor(
    standard: RuleState,
    tables: PlanTables,
    context: () => PlanContext,
    callerLimits?: (binding: PlanBinding) => CallerLimits | undefined,
  ) {
    const { plans } = standard.rule
    this.tables = tables
    this.standard = standard
    this.#context = context
    tables.begin()
    Object.assign(standard, { table: tables.tableOf(standard.rule, true, context()) })
    const values = new Map([...plans!.values].map(([name, rule]) => [name, this.#stateOf(rule, true)]))
    this.states = new ValueStates(standard, plans!.read, values, callerLimits?.(this), this.#dynamic)
    Object.assign(standard, { plans: this.states })
  }

  /** Returns the state of a limit from outside; undefined if there are too many of them. */
  dynamic(rule: CompiledRule): RuleState | undefined {
    const name = `${nameOf(rule)} ${rule.limitFrom}`
    const known = this.#dynamic.get(name)
    if (known !== undefined) return known
    if (this.#dynamic.size >= MOST_DYNAMIC) this.#forgetUnused()
    if (this.#dynamic.size >= MOST_DYNAMIC) return undefined
    const state = this.#stateOf(rule, false)
    this.#dynamic.set(name, state)
    return state
  }

  #forgetUnused(): void {
    for (const [name, { table }] of this.#dynamic) if (table.keys === 0) this.#dynamic.delete(name)
    const used = new Set([this.standard, ...this.states.others].map(({ table }) => table))
    this.tables.dropEmpty(this.#context().store, table => used.has(table))
  }

  #stateOf(rule: CompiledRule, isLasting: boolean): RuleState {
    const context = this.#context()
    const { match, blocks, isQuick, tally } = this.standard
    const counter = context.counterOf(rule)
    const table = this.tables.tableOf(rule, isLasting, context)
    return newState({ rule, match, table, counter, blocks, isQuick, tally })
  }
}
