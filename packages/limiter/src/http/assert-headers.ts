import type { Call } from '../call.ts'
import { warnOnce } from '../common/warn-once.ts'
import { DianaError } from '../errors.ts'

/** How many calls are checked for capital letters: enough to find the mistake, few enough to cost nothing. */
const MOST_INSPECTED = 100

let inspected = 0

/** Throws for headers that cannot be read by name, such as those of a Request; warns once of names that no rule reads. */
export function assertHeaders(headers: NonNullable<Call['headers']>): void {
  if (typeof headers !== 'object' || Symbol.iterator in headers) {
    const remedy = 'pass Object.fromEntries(request.headers)'
    throw new DianaError(
      'BAD_CALL',
      `headers must be a plain object of names in lower case, as Node has them: ${remedy}`,
    )
  }
  if (inspected >= MOST_INSPECTED) return
  inspected++
  const name = Object.keys(headers).find(one => one !== one.toLowerCase())
  if (name !== undefined) warnOnce('DIANA_HEADER_CASE', name)
}
