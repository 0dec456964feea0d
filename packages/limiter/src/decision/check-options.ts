import type { Limit } from '../algorithms/algorithm.ts'
import type { Call } from '../call.ts'
import { valueNow } from '../common/promises.ts'
import { DianaError } from '../errors.ts'

/** Rules that decide a call because it names them, besides those that match it, or alone. */
export interface NamedRules {
  /**
   * Ids of rules that have charged the same request already, at another filter: they are left out, and the request is not
   * counted as another call.
   */
  readonly after?: readonly string[] | undefined
  readonly rule?: string | readonly string[] | undefined
  readonly only?: boolean | undefined
  /** Ids of rules that do not decide the call, although it matches or names them. */
  readonly except?: readonly string[] | undefined
  /** True if the call stands for a message of a WebSocket that it has opened: rules with `match: { websocket: messages }` decide it. */
  readonly message?: boolean | undefined
}

/** The options by which one call is decided. */
export interface CheckOptions extends NamedRules {
  /** 1 by default; 0 counts nothing. A function that throws, or returns something that is not a cost, stands for 1. */
  readonly cost?: number | ((call: Call) => number) | undefined
  /** Ends a wait. A function is called only if the call waits. */
  readonly signal?: AbortSignal | (() => AbortSignal) | undefined
  /** Ids of rules that decide the call besides those that match it; a rule that does not exist, or is off, is left out. */
  readonly rule?: string | readonly string[] | undefined
  /** True if only the rules of `rule` decide the call. */
  readonly only?: boolean | undefined
}

/** The options by which a call is decided, as far as its charges depend on them. */
export interface PlanOptions extends NamedRules {
  /** Given with the call, so that it may be settled later. */
  readonly cost?: unknown
  /** For how long what can be settled is reserved, in microseconds; 0 leaves it to the rules. */
  readonly holdUs?: number | undefined
  /** Ids of rules that credit has paid: they are asked, and charge nothing. */
  readonly paid?: ReadonlySet<string> | undefined
  /** True if a refusal is counted by `countRefusal`, after credit could not make the call pass. */
  readonly defersRefusal?: boolean | undefined
}

/** True if a call is charged otherwise than 1 by each rule that it matches. */
export function isSpecial(options: PlanOptions | undefined): boolean {
  if (options === undefined) return false
  const { cost, rule, after, except, holdUs, paid, message } = options
  if (paid !== undefined || except !== undefined || message === true) return true
  return cost !== undefined || rule !== undefined || after !== undefined || holdUs !== undefined
}

/** Returns the cost of a call, 1 unless given; throws if it is none. */
export function costOf(call: Call, options: Pick<CheckOptions, 'cost'> | undefined): number {
  return options?.cost == null ? 1 : givenCost(call, options.cost)
}

function givenCost(call: Call, given: NonNullable<CheckOptions['cost']>): number {
  const cost = typeof given === 'function' ? costBy(given, call) : given
  if (Number.isSafeInteger(cost) && cost >= 0) return cost
  throw new DianaError('BAD_CALL', `cost must be a whole number of 0 or more, not ${String(cost)}`)
}

/** Returns the cost that an application's function gives a call; 1 if it throws or gives no cost, so that no call passes for nothing. */
function costBy(read: (call: Call) => number, call: Call): number {
  try {
    const cost = valueNow(read(call), 'cost')
    return cost !== undefined && Number.isSafeInteger(cost) && cost >= 0 ? cost : 1
  } catch {
    return 1
  }
}

/** Returns the signal that ends a wait. A call that waits asks for it once. */
export function signalOf(options: CheckOptions | undefined): AbortSignal | undefined {
  return typeof options?.signal === 'function' ? options.signal() : options?.signal
}

/** The limit that one call has, with options of the rule's algorithm such as its burst. */
export interface LimitOfCall {
  readonly limit: Limit
  readonly options: Readonly<Record<string, unknown>>
  /** Equal for limits that count alike. */
  readonly text: string
}

/** A call with the limit that a function of the application has found for it. */
export interface LimitedCall extends Call {
  readonly ownLimit?: LimitOfCall | undefined
}

/** Stands for `from` in the limit of a rule whose calls bring their limits along: nothing is asked for in the background. */
export function limitOfCall(): undefined {
  return undefined
}
