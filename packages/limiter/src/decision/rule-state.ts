import type { Call } from '../call.ts'
import type { CompiledRule } from '../rules/compile.ts'
import type { Match } from '../rules/rule.ts'
import type { Tally } from '../stats/tally.ts'
import type { Table } from '../stores/memory/table.ts'
import type { FleetCounter } from '../stores/store.ts'
import type { CallersInQueue } from './callers-in-queue.ts'

/** A rule with its counts, and the number of its calls that wait in this process. It is kept when the rule changes. */
export interface RuleState {
  rule: CompiledRule
  match: Match
  readonly table: Table
  /** Where the rule is counted together with other processes; undefined if it is counted in this process only. */
  counter: FleetCounter | undefined
  /** The callers that the rule blocks; undefined if it blocks none. */
  blocks?: BlockCounters | undefined
  /** Whether a call that passes at once needs nothing but to be counted in this process. */
  isQuick: boolean
  /** The states of the other limits, if the limit depends on the caller. */
  plans: PlanStates | undefined
  waiting: number
  /** These calls by caller, if the rule counts callers apart. */
  readonly callers: CallersInQueue
  readonly tally: Tally
}

/** The callers that a rule blocks for a time, in this process or in the store where the rule is counted. */
export interface BlockCounters {
  readonly table: Table
  readonly counter: FleetCounter | undefined
}

/** A rule whose limit depends on the caller: its states, one for each limit. */
export interface PlanStates {
  /** The state of the limit that a call is judged by. */
  stateFor(call: Call, key: string): RuleState
  /** All states but that of the rule's default. */
  readonly others: Iterable<RuleState>
}
