import type { Call, Match, RuleDocument } from 'diana-limiter'
import { httpFramework } from 'diana-limiter/filter'
import type { CompiledRule, ReplayLimiter } from 'diana-limiter/gateway'
import { settledTarget } from '../../http/normalize-request.ts'

/** Calls that meet the same rules. */
export interface CallClass {
  /** The first call of this class that was found. */
  readonly sample: Call
  readonly rules: readonly CompiledRule[]
}

/** More rules are not combined with each other. */
const MOST_COMBINED = 150
const MOST_SAMPLES = 30_000
const FREE_SEGMENT = 'x'

/**
 * Calls for each rule and for each two rules that one call can meet, sorted by the rules that they meet. Of rules that three
 * patterns have to be combined for, not every combination is found.
 */
export function classesOf(document: RuleDocument, limiter: ReplayLimiter): CallClass[] {
  const found = new Map<string, CallClass>()
  const buffer: CompiledRule[] = []
  let samples = 0
  const add = (call: Call | undefined): void => {
    if (call === undefined || samples++ > MOST_SAMPLES) return
    const size = limiter.select(call, buffer)
    if (size < 0) return
    const rules = buffer.slice(0, size)
    const key = rules.map(({ id }) => id).join('\n')
    if (!found.has(key)) found.set(key, { sample: call, rules })
  }
  const matches = document.rules.flatMap(({ enabled, match }) => (enabled && !match.none ? [match] : []))
  for (const call of callsFor({}, {})) add(call)
  for (const match of matches) for (const call of callsFor(match, {})) add(call)
  const combined = matches.slice(0, MOST_COMBINED)
  for (const [index, one] of combined.entries()) {
    for (const other of combined.slice(index + 1)) for (const call of callsFor(one, other)) add(call)
  }
  return [...found.values()]
}

const MOST_VALUES = 4

/** Calls that may meet one match, or two together. */
function callsFor(one: Match, other: Match): Call[] {
  const paths = pathsFor(one.path, other.path)
  const methods = bothOf(one.method, other.method) ?? ['GET', 'PROPFIND']
  const hosts = bothOf(one.host?.map(sampleHost), other.host?.map(sampleHost)) ?? [undefined]
  const headers = valuesOf({ ...one.header, ...other.header })
  const attributes = valuesOf({ ...one.attribute, ...other.attribute })
  const calls: Call[] = []
  for (const path of paths) {
    for (const method of methods.slice(0, MOST_VALUES)) {
      for (const host of hosts.slice(0, MOST_VALUES)) {
        const call = callOf(method, path, host, headers, attributes)
        if (call !== undefined) calls.push(call)
      }
    }
  }
  return calls
}

function callOf(
  method: string,
  target: string,
  host: string | undefined,
  headers: Readonly<Record<string, string>>,
  attributes: Readonly<Record<string, string>>,
): Call | undefined {
  const settled = settledTarget(target)
  if (settled === undefined) return undefined
  const path = httpFramework.path({ url: settled, headers: {} } as never)
  return {
    ...{ method, path, caseInsensitive: true, ip: '203.0.113.9', headers, attributes },
    ...(host !== undefined && { host }),
  }
}

function bothOf(
  one: readonly string[] | undefined,
  other: readonly string[] | undefined,
): readonly string[] | undefined {
  if (one === undefined || other === undefined) return one ?? other
  const both = one.filter(value => other.includes(value))
  return both.length > 0 ? both : [...one.slice(0, 1), ...other.slice(0, 1)]
}

function valuesOf(conditions: Readonly<Record<string, readonly string[]>>): Record<string, string> {
  const values = Object.entries(conditions).map(([name, [first = '']]) => {
    return [name, first.startsWith('!') ? `not-${first.slice(1)}` : first.replaceAll('*', FREE_SEGMENT)]
  })
  return Object.fromEntries(values)
}

function sampleHost(host: string): string {
  return host.replace(/^\*\./, 'x.')
}

function pathsFor(one: readonly string[] | undefined, other: readonly string[] | undefined): string[] {
  if (one === undefined && other === undefined) return ['/', '/nothing-else/is-called-so']
  const paths: string[] = []
  for (const a of (one ?? other)!.slice(0, 100)) {
    if (one === undefined || other === undefined) paths.push(...pathsOf(a))
    else for (const b of other.slice(0, 100)) paths.push(...meeting(a, b))
  }
  return paths
}

/** Paths that a pattern matches: the shortest one, and a longer one. */
function pathsOf(pattern: string): string[] {
  const short = segmentsOf(pattern).flatMap(segment => (segment === '**' ? [] : [sampleSegment(segment)]))
  const long = segmentsOf(pattern).flatMap(segment =>
    segment === '**' ? [FREE_SEGMENT, FREE_SEGMENT] : [sampleSegment(segment)],
  )
  return [...new Set([`/${short.join('/')}`, `/${long.join('/')}`])]
}

function segmentsOf(pattern: string): string[] {
  return pattern.split('/').filter(segment => segment !== '')
}

function isFree(segment: string): boolean {
  return segment === '*' || segment.startsWith(':') || segment === '**'
}

function sampleSegment(segment: string): string {
  return isFree(segment) ? FREE_SEGMENT : segment.replaceAll('*', FREE_SEGMENT)
}

/** Returns paths that two patterns may both match: a segment that one of them leaves free is that of the other. */
function meeting(one: string, other: string): string[] {
  const [a, b] = [segmentsOf(one), segmentsOf(other)]
  const path: string[] = []
  for (let at = 0; at < Math.max(a.length, b.length); at++) {
    const [left = '**', right = '**'] = [a[at] ?? a.at(-1), b[at] ?? b.at(-1)]
    path.push(isFree(left) ? sampleSegment(right) : sampleSegment(left))
  }
  const whole = `/${path.join('/')}`
  return a.includes('**') || b.includes('**') ? [whole, ...pathsOf(a.length > b.length ? one : other)] : [whole]
}
