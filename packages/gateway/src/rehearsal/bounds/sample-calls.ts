import { METHODS } from 'node:http'
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

/**
 * Calls for each rule and for each two rules that one call can meet, sorted by the rules that they meet; with `isMessage`, messages of
 * WebSockets that such calls open. Of rules that three patterns have to be combined for, not every combination is found.
 */
export function classesOf(document: RuleDocument, limiter: ReplayLimiter, isMessage = false): CallClass[] {
  const found = new Map<string, CallClass>()
  const buffer: CompiledRule[] = []
  let samples = 0
  const add = (call: Call): void => {
    if (samples++ > MOST_SAMPLES) return
    const size = limiter.select(call, buffer, isMessage)
    if (size < 0) return
    const rules = buffer.slice(0, size)
    const key = rules.map(({ id }) => id).join('\n')
    if (!found.has(key)) found.set(key, { sample: call, rules })
  }
  const matches = document.rules.flatMap(({ enabled, match }) => {
    return enabled && !match.none && (match.websocket !== undefined) === isMessage ? [match] : []
  })
  if (isMessage && matches.length === 0) return []
  const words = wordsOf(matches)
  for (const call of callsFor({}, {}, words)) add(call)
  for (const match of matches) for (const call of callsFor(match, {}, words)) add(call)
  const combined = matches.slice(0, MOST_COMBINED)
  for (const [index, one] of combined.entries()) {
    for (const other of combined.slice(index + 1)) for (const call of callsFor(one, other, words)) add(call)
  }
  return [...found.values()]
}

const FREE_WORDS = [...'xyzqjkwvfg'].flatMap(letter => [letter, `${letter}-`, letter.repeat(5)])

/** Values for the places of a call that rules leave free. */
interface Words {
  /** A word that no pattern names: for a `*`, and for values that meet no condition. */
  readonly free: string
  /** GET, and a method that no rule names. */
  readonly methods: readonly string[]
}

function wordsOf(matches: readonly Match[]): Words {
  const named = new Set(matches.flatMap(({ method }) => method ?? []))
  const methods = ['GET', ...METHODS.filter(name => name !== 'GET' && name !== 'HEAD' && !named.has(name)).slice(0, 1)]
  const patterns = matches.flatMap(({ path, host, header, attribute }) => [
    ...(path ?? []).flatMap(segmentsOf).filter(segment => !isFree(segment)),
    ...(host ?? []).flatMap(name => name.split('.')),
    ...[header, attribute].flatMap(conditions => Object.values(conditions ?? {}).flat()),
  ])
  const isNamed = (word: string): boolean =>
    patterns.some(pattern => pattern !== '*' && testOf(pattern.replace(/^!/, '')).test(word))
  // a pattern such as *a* names many words, and few patterns name them all
  const free = FREE_WORDS.find(word => !isNamed(word)) ?? FREE_WORDS[0]!
  return { free, methods: named.has('GET') ? methods : methods.slice(0, 1) }
}

/** Makes a test for a value with `*` in it. */
function testOf(pattern: string): RegExp {
  return new RegExp(`^${pattern.split('*').map(escaped).join('.*')}$`, 'i')
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
}

const MOST_VALUES = 8
const MOST_CALLS = 400

/** Calls that may meet one match, or two together. */
function callsFor(one: Match, other: Match, words: Words): Call[] {
  const { free } = words
  const hostsOf = ({ host }: Match): readonly string[] | undefined =>
    host?.map(name => name.replace(/^\*\./, `${free}.`))
  const paths = pathsFor(one.path, other.path, free)
  const methods = bothOf(withHead(one.method), withHead(other.method)) ?? words.methods
  const hosts = bothOf(hostsOf(one), hostsOf(other)) ?? [undefined]
  const headers = choicesOf(one.header, other.header, value => value)
  const attributes = choicesOf(one.attribute, other.attribute, value =>
    value.startsWith('!') ? free : value.replaceAll('*', free),
  )
  const calls: Call[] = []
  for (const path of paths) {
    for (const method of methods.slice(0, MOST_VALUES)) {
      for (const host of hosts.slice(0, MOST_VALUES)) {
        for (const header of headers) {
          for (const attribute of attributes) {
            const call = callOf(method, path, host, header, attribute)
            if (call !== undefined) calls.push(call)
            if (calls.length >= MOST_CALLS) return calls
          }
        }
      }
    }
  }
  return calls
}

/** Rules for GET hold for HEAD, too. */
function withHead(methods: readonly string[] | undefined): readonly string[] | undefined {
  return methods?.includes('GET') && !methods.includes('HEAD') ? [...methods, 'HEAD'] : methods
}

type Conditions = Readonly<Record<string, readonly string[]>> | undefined

/** Returns ways to meet the conditions of one match, or of two, at most MOST_VALUES. */
function choicesOf(one: Conditions, other: Conditions, sampleOf: (value: string) => string): Record<string, string>[] {
  let choices: Record<string, string>[] = [{}]
  for (const name of new Set([...Object.keys(one ?? {}), ...Object.keys(other ?? {})])) {
    const values = bothOf(one?.[name]?.map(sampleOf), other?.[name]?.map(sampleOf)) ?? []
    choices = values.flatMap(value => choices.map(choice => ({ ...choice, [name]: value }))).slice(0, MOST_VALUES)
  }
  return choices
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

function pathsFor(one: readonly string[] | undefined, other: readonly string[] | undefined, free: string): string[] {
  if (one === undefined && other === undefined) return ['/', `/${free}/${free}`]
  const paths: string[] = []
  for (const a of (one ?? other)!.slice(0, 100)) {
    if (one === undefined || other === undefined) paths.push(...pathsOf(a, free))
    else for (const b of other.slice(0, 100)) paths.push(...meeting(a, b, free))
  }
  return paths
}

/** Paths that a pattern matches: the shortest one, and a longer one. */
function pathsOf(pattern: string, free: string): string[] {
  const short = segmentsOf(pattern).flatMap(segment => (segment === '**' ? [] : [sampleSegment(segment, free)]))
  const long = segmentsOf(pattern).flatMap(segment =>
    segment === '**' ? [free, free] : [sampleSegment(segment, free)],
  )
  return [...new Set([`/${short.join('/')}`, `/${long.join('/')}`])]
}

function segmentsOf(pattern: string): string[] {
  return pattern.split('/').filter(segment => segment !== '')
}

function isFree(segment: string): boolean {
  return segment === '*' || segment.startsWith(':') || segment === '**'
}

function sampleSegment(segment: string, free: string): string {
  return isFree(segment) ? free : segment.replaceAll('*', free)
}

/** Returns paths that two patterns may both match: a segment that one of them leaves free is that of the other. */
function meeting(one: string, other: string, free: string): string[] {
  const [a, b] = [segmentsOf(one), segmentsOf(other)]
  const path: string[] = []
  for (let at = 0; at < Math.max(a.length, b.length); at++) {
    const [left = '**', right = '**'] = [a[at] ?? a.at(-1), b[at] ?? b.at(-1)]
    path.push(isFree(left) ? sampleSegment(right, free) : sampleSegment(left, free))
  }
  const whole = `/${path.join('/')}`
  return a.includes('**') || b.includes('**') ? [whole, ...pathsOf(a.length > b.length ? one : other, free)] : [whole]
}
