import type { AlgorithmChoice } from '../../algorithms/options.ts'
import type { Call } from '../../call.ts'
import { formatDuration } from '../../common/duration.ts'
import type { LimiterOptions } from '../../create/limiter-options.ts'
import { DianaError } from '../../errors.ts'
import type { HeaderStyle } from '../../rules/rule.ts'
import { hintForOption } from '../../rules/schema/hints.ts'
import type { CommonRuleOptions, RuleOptions } from '../../rules/schema/options.ts'
import { suggest } from '../../rules/suggest.ts'
import { assertOptions } from '../assert-options.ts'
import type { FilterOptions } from '../filter.ts'

/** What a caller is counted by, read from a request of the framework: `request => request.user.id`. */
export type RequestReader<Request> = (request: Request, call: Call) => string | number | undefined

type GivenStore = NonNullable<LimiterOptions['store']>
type OneOrList<T> = T | readonly T[]

/**
 * One limit, without a limiter of its own: the options of a rule, those of a filter, and the few of a rule file that one limit
 * needs. All but functions mean the same in a rule file.
 */
export type RateLimitOptions<Request> = AlgorithmChoice & LimitOptions<Request>

interface LimitOptions<Request>
  extends Omit<CommonRuleOptions, 'id' | 'enabled' | 'by' | 'limit' | 'cost'>,
    Omit<FilterOptions<Request>, 'cost'>,
    Pick<
      LimiterOptions,
      'identify' | 'trustProxy' | 'forwardedBy' | 'ipv6Prefix' | 'jwt' | 'whenFailed' | 'clock' | 'maxKeys'
    > {
  /** How many calls in which time: `100/m`; of several, all must hold. */
  readonly limit: NonNullable<CommonRuleOptions['limit']>
  /** The name of the limit in headers, logs and Redis; default `rate-limit`. */
  readonly id?: string | undefined
  /** What callers are counted by: dimensions, or functions of the request; default `ip`. An empty list counts all calls together. */
  readonly by?: OneOrList<string | RequestReader<Request>> | undefined
  /** What a call costs; default 1. */
  readonly cost?: CommonRuleOptions['cost'] | FilterOptions<Request>['cost']
  /** Where to count for all processes: the URL of Redis, a client, or `store` as `createLimiter` takes it. Left out, this process. */
  readonly store?: GivenStore | Extract<GivenStore, { readonly redis: unknown }>['redis'] | undefined
  /** The HTTP status of a refusal; default 503. */
  readonly status?: number | undefined
  /** What a refused caller gets: text, or what is sent as JSON; default problem details (RFC 9457). */
  readonly message?: string | object | undefined
  /** The form of the rate-limit headers; default `draft-11`. */
  readonly headers?: HeaderStyle | undefined
}

/** The options of one limit, sorted by what uses them. */
export interface SortedOptions<Request> {
  readonly limiter: LimiterOptions
  readonly filter: FilterOptions<Request>
}

export const DEFAULT_ID = 'rate-limit'

const filterWords = ['attributes', 'resource', 'caseSensitive', 'skip', 'onRefused', 'onError', 'peer'] as const
const limiterWords = [
  'identify',
  'trustProxy',
  'forwardedBy',
  'ipv6Prefix',
  'jwt',
  'whenFailed',
  'clock',
  'maxKeys',
] as const
const ruleWords: readonly string[] = [
  'id limit by match algorithm count whenFull queue whenStoreDown lease missing cost countWhen resetWhen block allow deny answer',
  'zone anchor segments align burst start refill delay warmUp coldFactor min',
].flatMap(words => words.split(' '))
const answerWords = ['store', 'status', 'message', 'headers'] as const
const known: readonly string[] = [...ruleWords, ...answerWords, ...limiterWords, ...filterWords]

/** Option names of other limiters whose option here is one that a rule file does not have. */
const foreign: Readonly<Record<string, string>> = {
  statusCode: 'status: 429',
  handler: 'onRefused: verdict => ({ status: 429, body: … })',
  errorResponseBuilder: 'onRefused: verdict => ({ status: 429, body: … })',
  onLimitReached: 'onRefused: verdict => ({ status: 429, body: … })',
  standardHeaders: "headers: 'draft-7'",
  legacyHeaders: "headers: 'legacy'",
  allowList: "allow: '10.0.0.0/8', or skip: request => …",
  redis: "store: 'redis://127.0.0.1:6379'",
  ipv6Subnet: 'ipv6Prefix: 56',
}

/** Whether `rateLimit` was given one limit in place of a limiter. */
export function isOneLimit(given: unknown): given is RateLimitOptions<never> {
  if (typeof given !== 'object' || given === null) return false
  const prototype: unknown = Object.getPrototypeOf(given)
  // an instance of a class that has settings is fine; an application or a request is not
  if (prototype !== Object.prototype && prototype !== null && !('limit' in given)) return false
  return !['decide', 'then', 'rules', 'config', 'rule'].some(word => word in given)
}

/** Throws for options that cannot be used, with the remedy, and sorts the others; the rule itself is checked by the limiter. */
export function sortOptions<Request>(given: RateLimitOptions<Request>, own: readonly string[]): SortedOptions<Request> {
  assertNames(given, own)
  const { store, status, message, headers, answer, cost, id = DEFAULT_ID, by = 'ip', ...rest } = given
  const isOfFilter = typeof cost === 'number' || typeof cost === 'function'
  const filter = pick(rest, filterWords)
  const options = { ...filter, ...(isOfFilter && { cost }) } as FilterOptions<Request>
  assertOptions(options, 'rateLimit', own)
  const shortAnswer = { ...(status !== undefined && { status }), ...(headers !== undefined && { headers }) }
  const readers = (Array.isArray(by) ? by : [by]) as readonly (string | RequestReader<Request>)[]
  const rule = {
    id,
    by: readers.map(readerBy),
    // callers that a function does not know are distinguished by address, as those without an account are
    ...(readers.some(one => typeof one === 'function') && { missing: 'address' }),
    ...without(rest, [...filterWords, ...limiterWords]),
    ...(cost !== undefined && !isOfFilter && { cost }),
  }
  return {
    limiter: {
      ...pick(rest, limiterWords),
      ...(store !== undefined && { store: storeOf(store) }),
      answer: { ...shortAnswer, ...(message !== undefined && { body: message }), ...answer },
      rules: [rule as RuleOptions],
    },
    filter: options,
  }
}

function assertNames(given: object, own: readonly string[]): void {
  const words = known.filter(word => word !== 'peer' || own.includes(word))
  for (const name of Object.keys(given)) {
    if (words.includes(name)) continue
    const hint = limitMeant(name, given) ?? (Object.hasOwn(foreign, name) ? foreign[name] : hintForOption(name, words))
    const meant = hint === undefined ? suggest(name, words) : undefined
    // a word that only the rules know is checked with them
    if (hint !== undefined) throw fault(`unknown option ${name}; write ${hint}`)
    if (meant !== undefined) throw fault(`unknown option ${name}; did you mean ${meant}?`)
  }
  if ((given as { readonly limit?: unknown }).limit === undefined) {
    throw fault("needs a limit, a count and its period: write rateLimit({ limit: '100/m' })")
  }
}

/** The limit that names and numbers of other limiters mean: `windowMs: 900_000, max: 100` is `100/15m`. */
function limitMeant(name: string, given: object): string | undefined {
  if (!['max', 'points', 'windowMs', 'timeWindow', 'ttl', 'duration'].includes(name)) return undefined
  const { windowMs, timeWindow, ttl, duration, max, points, limit } = given as Readonly<Record<string, unknown>>
  const ms = windowMs ?? timeWindow ?? ttl ?? (typeof duration === 'number' ? duration * 1000 : undefined)
  const count = max ?? points ?? limit
  if (!isWhole(ms) || !isWhole(count) || ms === 0) return undefined
  return `limit: '${count}/${formatDuration(ms).replace(/^1(?=\D)/, '')}'`
}

function isWhole(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

/** A function of the framework's request as one of the call, which has the request. */
function readerBy<Request>(
  by: string | RequestReader<Request>,
): string | ((call: Call) => string | number | undefined) {
  if (typeof by !== 'function') return by
  const read = (call: Call): string | number | undefined => by((call as Call & { request: Request }).request, call)
  // so that an async function is still recognized
  return by.constructor === Function ? read : (by as never)
}

function storeOf(store: NonNullable<RateLimitOptions<never>['store']>): GivenStore {
  if (store === null || (store as unknown) === '') throw fault(`store is empty: ${EMPTY_STORE}`)
  const isNamed = typeof store === 'object' && ('redis' in store || 'custom' in store)
  return isNamed ? (store as GivenStore) : { redis: store as never }
}

const EMPTY_STORE = 'give the URL of Redis, or leave store out to count in this process'

function pick<Given extends object>(given: Given, words: readonly string[]): Partial<Given> {
  return Object.fromEntries(Object.entries(given).filter(([word]) => words.includes(word))) as Partial<Given>
}

function without<Given extends object>(given: Given, words: readonly string[]): Partial<Given> {
  return Object.fromEntries(Object.entries(given).filter(([word]) => !words.includes(word))) as Partial<Given>
}

export function fault(message: string): DianaError {
  return new DianaError('BAD_CALL', `rateLimit: ${message}`)
}
