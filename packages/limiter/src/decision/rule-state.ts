import type { Call } from '../call.ts'
import type { CompiledRule } from '../rules/compile.ts'
import type { Match } from '../rules/rule.ts'
import type { Tally } from '../stats/tally.ts'
import type { Table } from '../stores/memory/table.ts'
import type { FleetCounter } from '../stores/store.ts'

/** A rule with its counts, and the number of its calls that wait in this process. It is kept when the rule changes. */
export interface RuleState {
  rule: CompiledRule
  match: Match
  readonly table: Table
  /** The counter of a rule that is counted together with other processes; undefined if it is counted in this process only. */
  counter: FleetCounter | undefined
  /** The callers that the rule blocks; undefined if it blocks none. */
  blocks?: BlockCounters | undefined
  /** True if a call that passes at once needs nothing but to be counted in this process. */
  isQuick: boolean
  /** The states of the other limits, if the limit depends on the caller. */
  plans: PlanStates | undefined
  waiting: number
  /** These calls by caller, if the rule counts callers apart. */
  readonly callers: CallersInQueue
  readonly tally: Tally
}

/** Returns the first state of a rule: no call waits. */
export function newState(
  counted: Pick<RuleState, 'rule' | 'match' | 'table' | 'counter' | 'blocks' | 'isQuick' | 'tally'>,
): RuleState {
  return { ...counted, plans: undefined, waiting: 0, callers: new CallersInQueue() }
}

/** The callers that a rule blocks for a time, in this process or in the store where the rule is counted. */
export interface BlockCounters {
  readonly table: Table
  readonly counter: FleetCounter | undefined
}

/** A rule whose limit depends on the caller: its states, one for each limit. */
export interface PlanStates {
  /** Returns the state of the limit that a call is judged by. */
  stateFor(call: Call, key: string): RuleState
  /** All states but that of the rule's default. */
  readonly others: Iterable<RuleState>
}

/** The limits of single callers that come from outside the rules. */
export interface CallerLimits {
  /** Returns the rule with the limit of a caller; undefined if they have none of their own, or none is known yet. */
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

/** Returns the state of the limit that a call is judged by. */
export function planOf(state: RuleState, call: Call): RuleState {
  return state.plans === undefined ? state : state.plans.stateFor(call, state.rule.key(call))
}

/** A call that waits for a rule. */
export interface QueuedWaiter {
  readonly isGone: boolean
  /** Leaves the queue of a rule, refused, so that a call of another caller has a place. */
  giveWay(rule: CompiledRule): void
}

interface CallerCalls {
  count: number
  /** From the oldest to the newest; those that have left are removed later. */
  calls: QueuedWaiter[]
}

const SMALLEST_SWEEP = 16

/** The calls that wait for one rule in this process, by caller: which caller has most of them is known at once. */
export class CallersInQueue {
  readonly #callers = new Map<string, CallerCalls>()
  /** The keys of the callers, by the number of their calls. */
  readonly #keys: Set<string>[] = []

  countOf(key: string): number {
    return this.#callers.get(key)?.count ?? 0
  }

  /** The most calls that one caller has. */
  get most(): number {
    return Math.max(0, this.#keys.length - 1)
  }

  add(key: string, call: QueuedWaiter): void {
    const caller = this.#callers.get(key) ?? { count: 0, calls: [] }
    this.#callers.set(key, caller)
    if (caller.calls.length >= SMALLEST_SWEEP && caller.calls.length > 2 * caller.count) {
      caller.calls = caller.calls.filter(({ isGone }) => !isGone)
    }
    caller.calls.push(call)
    this.#move(key, caller, caller.count + 1)
  }

  /** Removes one call of a caller that has left; it says itself which. */
  remove(key: string): void {
    const caller = this.#callers.get(key)
    if (caller) this.#move(key, caller, caller.count - 1)
  }

  /** Returns the newest call of a caller with most calls. */
  newestOfMost(): QueuedWaiter | undefined {
    const [key] = this.#keys.at(-1) ?? []
    const calls = key === undefined ? undefined : this.#callers.get(key)?.calls
    while (calls?.at(-1)?.isGone) calls.pop()
    return calls?.at(-1)
  }

  #move(key: string, caller: CallerCalls, count: number): void {
    this.#keys[caller.count]?.delete(key)
    caller.count = count
    if (count === 0) this.#callers.delete(key)
    else {
      // counts rise one by one
      if (this.#keys.length <= count) this.#keys[count] = new Set()
      this.#keys[count]!.add(key)
    }
    while (this.#keys.length > 0 && !this.#keys.at(-1)?.size) this.#keys.pop()
  }
}

/**
 * True if one more call of a caller may wait. If all places are taken, it may if another caller has at least two calls more in the queue,
 * and the newest of them leaves: one caller alone may use the whole queue, and does not keep others out of it.
 */
export function hasRoom({ rule, waiting, callers }: RuleState, key: string): boolean {
  if (waiting === 0 || rule.by.length === 0) return waiting < rule.queueSize
  const own = callers.countOf(key)
  if (rule.queuePerCaller !== undefined && own >= rule.queuePerCaller) return false
  return waiting < rule.queueSize || (rule.queueSize > 0 && callers.most > own + 1)
}

/** Notes that a call begins to wait for a rule. */
export function enterQueue(state: RuleState, key: string, call: QueuedWaiter): void {
  const { rule, callers } = state
  state.waiting++
  if (rule.by.length === 0) return
  callers.add(key, call)
  // a queue that a reload has made smaller is emptied by time
  if (state.waiting > rule.queueSize && callers.most > callers.countOf(key)) callers.newestOfMost()?.giveWay(rule)
}

export function leaveQueue(state: RuleState, key: string): void {
  state.waiting--
  if (state.rule.by.length > 0) state.callers.remove(key)
}
