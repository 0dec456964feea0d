/** How a call ended; nothing is known of an aborted call. */
export interface CallOutcome {
  readonly status?: number | undefined
  readonly failed?: boolean | undefined
}

/** A range of statuses, both ends included. */
export type StatusRange = readonly [from: number, to: number]

const SUCCESS = 200
const FAILURE = 500

/** Reads `failed`, `401`, `5xx`, `400-404`; undefined if it is none of these. */
export function parseStatuses(text: string): StatusRange | undefined {
  if (text === 'failed') return [400, 999]
  const [, from, digits = from, family] = /^(?:([1-9]\d\d)(?:-([1-9]\d\d))?|([1-9])xx)$/.exec(text) ?? []
  if (family !== undefined) return [Number(family) * 100, Number(family) * 100 + 99]
  return from === undefined || Number(digits) < Number(from) ? undefined : [Number(from), Number(digits)]
}

/** Whether a call with this outcome counts. An aborted call counts, so that disconnecting does not avoid the count. */
export function compileCountWhen(ranges: readonly StatusRange[]): (outcome: CallOutcome) => boolean {
  return ({ failed, status }) => {
    const known = failed === undefined ? status : failed ? FAILURE : SUCCESS
    if (known === undefined || !(known >= 100 && known <= 999)) return true
    return ranges.some(([from, to]) => known >= from && known <= to)
  }
}
