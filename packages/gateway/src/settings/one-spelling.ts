import { normalizeTarget } from 'diana-limiter'

/** Characters that many a URL parser would escape in a path, unnoticed by a count of the path as it came. */
const isEscapedByUrl = /["<>^`{}]/
const escapedByUrl = new RegExp(isEscapedByUrl, 'g')

/** Returns a target as it is forwarded; undefined where it has no one spelling. */
export function oneSpelling(rawTarget: string): string | undefined {
  const target = normalizeTarget(rawTarget)
  if (target === undefined) return undefined
  const path = isEscapedByUrl.test(target.path) ? target.path.replace(escapedByUrl, percentEncode) : target.path
  if (target.query === undefined) return path
  return `${path}?${target.query}`
}

function percentEncode(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase()}`
}
