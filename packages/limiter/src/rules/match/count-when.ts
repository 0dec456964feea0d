/** How a call ended; nothing is known of an aborted call. */
export interface CallOutcome {
  readonly status?: number | undefined
  readonly failed?: boolean | undefined
}

/** A range of statuses, both ends included. */
export type StatusRange = readonly [from: number, to: number]

/** What is wrong with a value that `parseStatuses` cannot read. */
export const statusFault =
  'must be failed, success, a status such as 401, a family such as 5xx, or a range such as 400-404'

const SUCCESS = 200
const FAILURE = 500

/** Reads `failed`, `success`, `401`, `5xx`, `400-404`; undefined if it is none of these. */
export function parseStatuses(text: string): StatusRange | undefined {
  if (text === 'failed' || text === 'failure') return [400, 999]
  if (text === 'success') return [200, 399]
  const [, from, digits = from, family] = /^(?:([1-9]\d\d)(?:-([1-9]\d\d))?|([1-9])xx)$/.exec(text) ?? []
  if (family !== undefined) return [Number(family) * 100, Number(family) * 100 + 99]
  return from === undefined || Number(digits) < Number(from) ? undefined : [Number(from), Number(digits)]
}

/** Whether a call with this outcome counts. An aborted call counts, so that disconnecting does not avoid the count. */
export function compileCountWhen(ranges: readonly StatusRange[]): (outcome: CallOutcome) => boolean {
  return outcome => {
    const status = statusOf(outcome)
    return status === undefined || ranges.some(([from, to]) => status >= from && status <= to)
  }
}

/** Whether a call with this outcome clears the count of its caller. An aborted call does not. */
export function compileResetWhen(ranges: readonly StatusRange[]): (outcome: CallOutcome) => boolean {
  return outcome => {
    const status = statusOf(outcome)
    return status !== undefined && ranges.some(([from, to]) => status >= from && status <= to)
  }
}

function statusOf({ failed, status }: CallOutcome): number | undefined {
  const known = failed === undefined ? status : failed ? FAILURE : SUCCESS
  return known !== undefined && known >= 100 && known <= 999 ? known : undefined
}
