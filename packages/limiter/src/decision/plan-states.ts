import type { Call } from '../call.ts'
import type { CompiledRule } from '../rules/compile.ts'
import type { PlanStates, RuleState } from './rule-state.ts'

/** The limits of single callers that come from outside the rules. */
export interface CallerLimits {
  /** The rule with the limit of a caller; undefined if they have none of their own, or none is known yet. */
  stateFor(key: string, call: Call): RuleState | undefined
}

/** A rule with plans and its counts, to which limits from outside are added. */
export interface RuleWithLimits {
  /** The state of the rule's default. */
  readonly standard: RuleState
  /** Returns the state of a limit from outside; undefined if there are too many of them. */
  dynamic(rule: CompiledRule): RuleState | undefined
}

/** The states of a rule by the value of a dimension, or by limits from outside. */
export class ValueStates implements PlanStates {
  readonly #standard: RuleState
  readonly #read: ((call: Call) => string | undefined) | undefined
  readonly #values: ReadonlyMap<string, RuleState>
  readonly #callerLimits: CallerLimits | undefined
  readonly #dynamic: ReadonlyMap<string, RuleState>

  constructor(
    standard: RuleState,
    read: ((call: Call) => string | undefined) | undefined,
    values: ReadonlyMap<string, RuleState>,
    callerLimits?: CallerLimits,
    dynamic: ReadonlyMap<string, RuleState> = new Map(),
  ) {
    this.#standard = standard
    this.#read = read
    this.#values = values
    this.#callerLimits = callerLimits
    this.#dynamic = dynamic
  }

  get others(): Iterable<RuleState> {
    return [...this.#values.values(), ...this.#dynamic.values()]
  }

  stateFor(call: Call, key: string): RuleState {
    if (this.#callerLimits !== undefined) {
      const own = this.#callerLimits.stateFor(key, call)
      if (own !== undefined) return own
    }
    if (this.#read === undefined) return this.#standard
    const value = this.#read(call)
    return (value === undefined ? undefined : this.#values.get(value)) ?? this.#standard
  }
}

/** The state of the limit that a call is judged by. */
export function planOf(state: RuleState, call: Call): RuleState {
  return state.plans === undefined ? state : state.plans.stateFor(call, state.rule.key(call))
}
