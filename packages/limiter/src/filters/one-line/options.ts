import type { AlgorithmChoice } from '../../algorithms/options.ts'
import type { Call } from '../../call.ts'
import { valueNow } from '../../common/sync-function.ts'
import { assertStore } from '../../create/create-limiter.ts'
import type { LimiterOptions } from '../../create/limiter-options.ts'
import { DianaError } from '../../errors.ts'
import { answerFaults } from '../../rules/answer-faults.ts'
import type { Answer, HeaderStyle } from '../../rules/rule.ts'
import { hintForOption } from '../../rules/schema/hints.ts'
import type { CommonRuleOptions, RuleOptions } from '../../rules/schema/options.ts'
import { joinNames, show } from '../../rules/show.ts'
import { suggest } from '../../rules/suggest.ts'
import { unusedOptions } from '../../rules/unused-options.ts'
import { assertOptions } from '../assert-options.ts'
import type { FilterOptions } from '../filter.ts'
import { algorithmOptionNames, joint, valueChecks } from './check-values.ts'
import { foreignRemedy } from './foreign-options.ts'

/** A function that reads what a caller is counted by from a request of the framework: `request => request.user.id`. */
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
  /** The number of calls in a time: `100/m`; of several, all must hold. */
  readonly limit: NonNullable<CommonRuleOptions['limit']>
  /** The name of the limit in headers, logs and Redis; default `rate-limit`. */
  readonly id?: string | undefined
  /**
   * The values that callers are counted by: dimensions, or functions of the request; default `ip`. An empty list counts all calls
   * together.
   */
  readonly by?: OneOrList<string | RequestReader<Request>> | undefined
  /** The cost of a call; default 1. */
  readonly cost?: CommonRuleOptions['cost'] | FilterOptions<Request>['cost']
  /** The place to count for all processes: the URL of Redis, a client, or `store` as `createLimiter` takes it. Left out, this process. */
  readonly store?: GivenStore | Extract<GivenStore, { readonly redis: unknown }>['redis']
  /** The HTTP status of a refusal; default 503. */
  readonly status?: number | undefined
  /** The answer to a refused caller: text, or what is sent as JSON; default problem details (RFC 9457). */
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
  ...'id limit by match algorithm count whenFull queue whenStoreDown lease missing cost countWhen resetWhen block'.split(
    ' ',
  ),
  ...['credit', 'allow', 'deny', 'answer'],
  ...algorithmOptionNames,
]
const answerWords = ['store', 'status', 'message', 'headers'] as const
const known: readonly string[] = [...ruleWords, ...answerWords, ...limiterWords, ...filterWords]

const example = "rateLimit({ limit: '100/m' })"

/** True if `rateLimit` was given one limit in place of a limiter. Throws if it was given neither; `more` is its second argument. */
export function isOneLimit(given: unknown, more?: unknown): given is RateLimitOptions<never> {
  if (isMounted(given)) {
    throw fault(`it was mounted without being called: write ${example} where it is mounted`)
  }
  if (more !== undefined) return false
  if (typeof given === 'string' || typeof given === 'number') {
    throw fault(
      `it takes options: write rateLimit({ limit: ${show(typeof given === 'string' ? given : `${given}/m`)} })`,
    )
  }
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw fault(`it takes options, not ${show(given)}: write ${example}`)
  }
  return !['decide', 'then', 'rules', 'config', 'rule'].some(word => word in given)
}

/** True if a request, a context or an application was given, which no program makes itself; an instance with settings is fine. */
function isMounted(given: unknown): boolean {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) return false
  if ('addHook' in given) return true
  const prototype: unknown = Object.getPrototypeOf(given)
  if (prototype === Object.prototype || prototype === null) return false
  return !['limit', 'decide', 'then', 'rules', 'config', 'rule'].some(word => word in given)
}

/** Throws for options that cannot be used, with the remedy, and sorts the others. */
export function sortOptions<Request>(given: RateLimitOptions<Request>, own: readonly string[]): SortedOptions<Request> {
  assertNames(given, own)
  assertValues(given as Readonly<Record<string, unknown>>)
  const { store, status, message, headers, answer, cost, id = DEFAULT_ID, by = 'ip', ...rest } = given
  const isOfFilter = typeof cost === 'number' || typeof cost === 'function'
  const filter = pick(rest, filterWords)
  const options = { ...filter, ...(isOfFilter && { cost }) } as FilterOptions<Request>
  assertOptions(options, 'rateLimit', own)
  const readers = (Array.isArray(by) ? by : [by]) as readonly (string | RequestReader<Request>)[]
  const rule = {
    id,
    by: readers.map(one => readerBy(one, rest.missing)),
    // callers that a function does not know are distinguished by address, as those without an account are
    ...(readers.some(one => typeof one === 'function') && { missing: 'address' }),
    ...without(rest, [...filterWords, ...limiterWords]),
    ...(cost !== undefined && !isOfFilter && { cost }),
  }
  const unused = unusedOptions(rule, store !== undefined)[0]
  if (unused !== undefined) throw fault(`${unused.path.join('.')} ${unused.what}`)
  return {
    limiter: {
      ...pick(rest, limiterWords),
      ...(store !== undefined && { store: storeOf(store) }),
      answer: answerOf({ status, headers, body: message, ...answer }),
      rules: [rule as RuleOptions],
    },
    filter: options,
  }
}

function assertNames(given: object, own: readonly string[]): void {
  const words = known.filter(word => word !== 'peer' || own.includes(word))
  for (const name of Object.keys(given)) {
    if (!words.includes(name)) throw fault(`unknown option ${name}; ${remedyFor(name, given, words)}`)
  }
  if ((given as { readonly limit?: unknown }).limit === undefined) {
    throw fault("needs a limit, a count and its period: write rateLimit({ limit: '100/m' })")
  }
}

function remedyFor(name: string, given: object, words: readonly string[]): string {
  const foreign = foreignRemedy(name, given)
  if (foreign !== undefined) return foreign
  const hint = hintForOption(name, words)
  if (hint !== undefined) return `write ${hint}`
  const meant = suggest(name, words)
  return meant === undefined ? `write ${joinNames(words)}` : `did you mean ${meant}?`
}

/** Options that are given as undefined are left out, except for the store: a variable that is not set must not end the shared count. */
function assertValues(given: Readonly<Record<string, unknown>>): void {
  const checks = valueChecks(given)
  for (const [name, value] of Object.entries(given)) {
    const isChecked = value !== undefined ? !isOfFilter(name, value) : name === 'store'
    const wrong = isChecked ? checks[name]?.(value) : undefined
    if (wrong !== undefined) throw fault(`${name}${joint(wrong)}`)
  }
}

/** True if the options of the filter check the value, as for a cost that is a number or a function. */
function isOfFilter(name: string, value: unknown): boolean {
  return name === 'cost' && (typeof value === 'number' || typeof value === 'function')
}

function answerOf(given: { readonly [Name in keyof Answer]?: Answer[Name] | undefined }): Partial<Answer> {
  const answer = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as Partial<Answer>
  const [wrong] = answerFaults(answer)
  if (wrong !== undefined) throw fault(wrong.join(' '))
  return answer
}

/** Makes a function of the framework's request into one of the call, which has the request. */
function readerBy<Request>(
  by: string | RequestReader<Request>,
  missing: unknown,
): string | ((call: Call) => string | number | undefined) {
  if (typeof by !== 'function') return by
  return call => {
    const value = by((call as Call & { request: Request }).request, call)
    if (missing !== 'skip' || !isPromise(value)) return value
    // a promise does not mean that the caller has no name, so the call must be counted
    valueNow(value, 'by')
    return `address ${call.ip}`
  }
}

function isPromise(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'then' in value
}

function storeOf(store: NonNullable<RateLimitOptions<never>['store']>): GivenStore {
  const isNamed = typeof store === 'object' && ('redis' in store || 'custom' in store)
  const named = isNamed ? (store as GivenStore) : { redis: store as never }
  try {
    assertStore(named)
  } catch (error) {
    throw fault((error as Error).message)
  }
  return named
}

function pick<Given extends object>(given: Given, words: readonly string[]): Partial<Given> {
  return Object.fromEntries(Object.entries(given).filter(([word]) => words.includes(word))) as Partial<Given>
}

function without<Given extends object>(given: Given, words: readonly string[]): Partial<Given> {
  return Object.fromEntries(Object.entries(given).filter(([word]) => !words.includes(word))) as Partial<Given>
}

export function fault(message: string): DianaError {
  return new DianaError('BAD_CALL', `rateLimit: ${message}`)
}
