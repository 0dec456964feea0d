import type { Call } from '../../call.ts'

/** The outcome of a call; nothing is known of an aborted call. */
export interface CallOutcome {
  readonly status?: number | undefined
  readonly failed?: boolean | undefined
  readonly by?: 'service' | 'gateway' | undefined
}

/** A range of statuses, both ends included. */
export type StatusRange = readonly [from: number, to: number]

/** The message for a value that `parseStatuses` cannot read. */
export const statusFault =
  'must be failed, success, a status such as 401, a family such as 5xx, or a range such as 400-404'

const SUCCESS = 200
const FAILURE = 500
const FIRST_ERROR = 400

/** Methods that ask about a resource and do not use it: middleware and proxies answer them in place of a service. */
const asking: ReadonlySet<string> = new Set(['HEAD', 'OPTIONS', 'TRACE'])

/** Reads `failed`, `success`, `401`, `5xx`, `400-404`; undefined if it is none of these. */
export function parseStatuses(text: string): StatusRange | undefined {
  if (text === 'failed' || text === 'failure') return [400, 999]
  if (text === 'success') return [200, 399]
  const [, from, digits = from, family] = /^(?:([1-9]\d\d)(?:-([1-9]\d\d))?|([1-9])xx)$/.exec(text) ?? []
  if (family !== undefined) return [Number(family) * 100, Number(family) * 100 + 99]
  return from === undefined || Number(digits) < Number(from) ? undefined : [Number(from), Number(digits)]
}

/**
 * True if a call with this outcome counts. An aborted call counts, so that disconnecting does not avoid the count. An answer below 400
 * that the gateway gives itself is neither a success of the service nor a failure, and does not count.
 */
export function compileCountWhen(ranges: readonly StatusRange[]): (outcome: CallOutcome) => boolean {
  return outcome => {
    const status = statusOf(outcome)
    if (status === undefined) return true
    return !(outcome.by === 'gateway' && status < FIRST_ERROR) && isIn(ranges, status)
  }
}

/**
 * True if a call with this outcome clears the count of its caller: only what a service has answered to a real use of it does. `isOther` is
 * true for a call that the service may have taken for one that the rule does not match, or for one of another method.
 */
export function compileResetWhen(
  ranges: readonly StatusRange[],
  isOther: (call: Call, asking: ReadonlySet<string>) => boolean,
): (outcome: CallOutcome, call: Call) => boolean {
  return (outcome, call) => {
    const status = statusOf(outcome)
    if (status === undefined || outcome.by === 'gateway' || asking.has(call.method.toUpperCase())) return false
    return isIn(ranges, status) && !isOther(call, asking)
  }
}

function isIn(ranges: readonly StatusRange[], status: number): boolean {
  return ranges.some(([from, to]) => status >= from && status <= to)
}

function statusOf({ failed, status }: CallOutcome): number | undefined {
  const known = failed === undefined ? status : failed ? FAILURE : SUCCESS
  return known !== undefined && known >= 100 && known <= 999 ? known : undefined
}
