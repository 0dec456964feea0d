import type { Call } from '../../call.ts'
import { hasReadings, isTooAmbiguous, lettersOf, lettersOfBytes, readingsOf } from '../../http/path-readings.ts'
import type { Match } from '../rule.ts'
import { compileMatch } from './match.ts'
import { otherHostOf, overridesOf, type Reading, readHost } from './search.ts'

/** True if servers may take a call for different ones; false for most, and quick. */
export function isAmbiguous(call: Call): boolean {
  const { path, otherPath, earlierPaths } = call
  return (
    otherPath !== undefined ||
    hasOtherPaths(path) ||
    overridesOf(call).length > 0 ||
    otherHostOf(call) !== '' ||
    (earlierPaths?.some(hasOtherPaths) ?? false)
  )
}

/** Returns every call that servers may take a call for; undefined if there are too many. */
export function readingsOfCall(
  call: Call,
  earlierPaths: readonly string[] = call.earlierPaths ?? [],
): Reading[] | undefined {
  const { path, otherPath } = call
  const paths = new Set<string>()
  for (const one of [path, otherPath, ...earlierPaths]) if (one !== undefined && !addPaths(one, paths)) return undefined
  const methods = new Set([call.method.toUpperCase(), ...overridesOf(call)])
  const hosts = new Set([readHost(call.host ?? ''), otherHostOf(call) || readHost(call.host ?? '')])
  if (paths.size * methods.size > MOST) return undefined
  return [...paths].flatMap(path => [...methods].flatMap(method => [...hosts].map(host => ({ path, method, host }))))
}

/** Returns a function that is true if a server may take a call for one that a rule does not match, or for one of these methods. */
export function compileOtherReadings(match: Match): (call: Call, methods: ReadonlySet<string>) => boolean {
  const matcher = compileMatch([{ match }])
  const found: unknown[] = []
  return (call, methods) => {
    if (!isAmbiguous(call)) return false
    // a path that a middleware has rewritten is known: the handlers behind it have seen the last one
    const readings = readingsOfCall(call, [])
    const isOther = (reading: Reading): boolean =>
      methods.has(reading.method) || matcher(call, found as never, reading) !== 1
    return readings === undefined || readings.some(isOther)
  }
}

/** Only an attacker sends a call with more. */
const MOST = 1000

function hasOtherPaths(path: string): boolean {
  return hasReadings(lettersOf(path)) || lettersOfBytes(path) !== undefined
}

function addPaths(path: string, paths: Set<string>): boolean {
  const letters = lettersOf(path)
  paths.add(letters)
  if (hasReadings(letters)) {
    if (isTooAmbiguous(letters)) return false
    for (const reading of readingsOf(letters)) paths.add(reading)
  }
  const sent = lettersOfBytes(path)
  return sent === undefined || addPaths(sent, paths)
}
