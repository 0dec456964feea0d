import type { AlgorithmChoice } from '../../algorithms/index.ts'
import type { Call } from '../../call.ts'
import { isThenable, valueNow } from '../../common/promises.ts'
import { assertStore } from '../../create/create-limiter.ts'
import type { LimiterOptions } from '../../create/limiter-options.ts'
import { limitOfCall } from '../../decision/check-options.ts'
import { DianaError } from '../../errors.ts'
import { answerFaults } from '../../rules/answer-option.ts'
import { isMap } from '../../rules/is-map.ts'
import type { Answer, HeaderStyle } from '../../rules/rule.ts'
import { hintForOption } from '../../rules/schema/hints.ts'
import type { CommonRuleOptions, PlanOptions, RuleOptions } from '../../rules/schema/options.ts'
import { joinNames, show } from '../../rules/show.ts'
import { suggest } from '../../rules/suggest.ts'
import { unusedOptions } from '../../rules/unused-options.ts'
import { assertOptions } from '../assert-options.ts'
import type { FilterOptions } from '../filter.ts'
import type { RequestCall } from '../request-call.ts'
import { algorithmOptionNames, joint, limitChecks, needsDefault, valueChecks } from './check-values.ts'
import { foreignRemedy } from './foreign-options.ts'
import { GivenLimits } from './given-limits.ts'
import { RequestFunctions } from './request-functions.ts'

/** A function that reads what a caller is counted by from a request of the framework: `request => request.user.id`; may be async. */
export type RequestReader<Request> = (
  request: Request,
  call: Call,
) => string | number | undefined | Promise<string | number | undefined>

/** The limit of one request: `100/m`, a plan's name, or a limit with a burst of its own. */
export type RequestLimit = string | number | { readonly limit: string | number; readonly burst?: number | undefined }

/** The limit of a request, found by a function: `request => (request.user.isPaying ? '1000/m' : '100/m')`; may be async. */
export type LimitReader<Request> = (
  request: Request,
  call: Call,
) => RequestLimit | undefined | Promise<RequestLimit | undefined>

/** Limits by a function that returns the name of a plan, another limit, or nothing for the default. */
export interface RequestPlans<Request> extends Pick<PlanOptions, 'values' | 'overrides'> {
  readonly by: LimitReader<Request>
  /** The limit of requests for which the function returns nothing, or a plan that is not listed. */
  readonly default: string | number
}

type GivenStore = NonNullable<LimiterOptions['store']>
type OneOrList<T> = T | readonly T[]

/**
 * One limit, without a limiter of its own: the options of a rule, those of a filter, and the few of a rule file that one limit
 * needs. All but functions mean the same in a rule file.
 */
export type RateLimitOptions<Request, Reply = unknown, Next = unknown> = AlgorithmChoice &
  LimitOptions<Request, Reply, Next>

interface LimitOptions<Request, Reply, Next>
  extends Omit<CommonRuleOptions, 'id' | 'enabled' | 'by' | 'limit' | 'cost'>,
    Omit<FilterOptions<Request, Reply, Next>, 'cost'>,
    Pick<
      LimiterOptions,
      'identify' | 'trustProxy' | 'forwardedBy' | 'ipv6Prefix' | 'jwt' | 'whenFailed' | 'clock' | 'maxKeys'
    > {
  /** The number of calls in a time: `100/m`; of several, all must hold. A function of the request gives each its own. */
  readonly limit: NonNullable<CommonRuleOptions['limit']> | LimitReader<Request> | RequestPlans<Request>
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
  /** True if preflight requests of CORS are counted; default false: they pass. */
  readonly countPreflights?: boolean | undefined
}

/** The options of one limit, sorted by what uses them. */
export interface SortedOptions<Request, Reply> {
  readonly limiter: LimiterOptions
  readonly filter: FilterOptions<Request, Reply, never>
  /** The functions that are called with each request before it is decided; undefined if no option is such a function. */
  readonly functions: RequestFunctions<Request> | undefined
  readonly passesPreflights: boolean
}

/** The dimension that has the plan of a request. */
const PLAN = 'rate-limit-plan'

export const DEFAULT_ID = 'rate-limit'

const filterWords = [
  ...(['attributes', 'resource', 'caseSensitive', 'skip', 'onRefused', 'forwardErrors', 'onError', 'peer'] as const),
] as const
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
const answerWords = ['store', 'status', 'message', 'headers', 'countPreflights'] as const
const known: readonly string[] = [...ruleWords, ...answerWords, ...limiterWords, ...filterWords]

const example = "rateLimit({ limit: '100/m' })"

/** True if `rateLimit` was given one limit in place of a limiter. Throws if it was given neither; `more` is its second argument. */
export function isOneLimit(given: unknown, more?: unknown): given is RateLimitOptions<never, never, never> {
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
export function sortOptions<Request, Reply>(
  given: RateLimitOptions<Request, Reply, never>,
  own: readonly string[],
): SortedOptions<Request, Reply> {
  assertNames(given, own)
  assertValues(given as Readonly<Record<string, unknown>>)
  const { store, status, message, headers, answer, cost, id = DEFAULT_ID, by = 'ip', ...others } = given
  const { limit, countPreflights = false, ...rest } = others
  const isOfFilter = typeof cost === 'number' || typeof cost === 'function'
  const filter = pick(rest, filterWords)
  const options = { ...filter, ...(isOfFilter && { cost }) } as FilterOptions<Request, Reply, never>
  assertOptions(options, 'rateLimit', own)
  const readers = (Array.isArray(by) ? by : [by]) as readonly (string | RequestReader<Request>)[]
  const functionsOfBy = readers.filter(one => typeof one === 'function')
  const limits = limitOf(given)
  const rule = {
    id,
    limit: limits.ofRule,
    by: readers.map(one => (typeof one === 'string' ? one : readerBy(one, functionsOfBy.indexOf(one), rest.missing))),
    // callers that a function does not know are distinguished by address, as those without an account are
    ...(functionsOfBy.length > 0 && { missing: 'address' }),
    // the burst is that of the limits that the function returns: a limit of 0 has none
    ...without(rest, [...filterWords, ...limiterWords, ...(limits.isWholly === true ? ['burst'] : [])]),
    ...(cost !== undefined && !isOfFilter && { cost }),
  }
  const unused = unusedOptions(rule, store !== undefined)[0]
  if (unused !== undefined) throw fault(`${unused.path.join('.')} ${unused.what}`)
  const hasFunctions = functionsOfBy.length > 0 || limits.read !== undefined
  return {
    passesPreflights: !countPreflights,
    functions: hasFunctions
      ? new RequestFunctions<Request>({
          by: functionsOfBy,
          limit: limits.read as LimitReader<Request> | undefined,
          limits: limits.given,
          countsUnknown: rest.missing === undefined || rest.missing === 'address',
          whenFailed: rest.whenFailed,
          isShadow: rest.whenFull === 'shadow',
        })
      : undefined,
    limiter: {
      ...pick(rest, limiterWords),
      ...(limits.hasPlans === true && { identify: { ...rest.identify, [PLAN]: planOfCall } }),
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

/** Makes a function of the framework's request into one of the call. A call of a filter has what the functions have found; any other call is given to the function. */
function readerBy<Request>(
  by: RequestReader<Request>,
  index: number,
  missing: unknown,
): (call: Call) => string | number | undefined {
  return call => {
    const { found, request } = call as Partial<RequestCall<Request>> & Call
    if (found !== undefined) return found.by[index]
    const value = by(request as Request, call)
    if (!isThenable(value)) return value as string | number | undefined
    valueNow(value, 'by')
    // a promise does not mean that the caller has no name, so the call must be counted
    return missing === 'skip' ? `address ${call.ip}` : undefined
  }
}

function planOfCall(call: Call): string | undefined {
  return (call as Partial<RequestCall<unknown>>).found?.plan
}

interface SortedLimit {
  readonly ofRule: unknown
  readonly read?: LimitReader<never> | undefined
  readonly given?: GivenLimits | undefined
  readonly hasPlans?: boolean | undefined
  /** True if no limit is written. */
  readonly isWholly?: boolean | undefined
}

/** Returns the limit as the rule has it; that of a function comes with each call, and others have the default, or pass none. */
function limitOf(given: RateLimitOptions<never, never, never>): SortedLimit {
  const { limit } = given as { readonly limit: unknown }
  const isPlans = isMap(limit) && typeof limit.by === 'function'
  if (typeof limit !== 'function' && !isPlans) return { ofRule: limit }
  if (Array.isArray(given.by) && given.by.length === 0) {
    throw fault("limit is a function, so callers need names to count them by: write by: 'ip', or by: request => …")
  }
  if (!isPlans && needsDefault(given as never)) {
    throw fault(`limit must have a default for ${given.algorithm}: write limit: { by: request => …, default: '5/s' }`)
  }
  const plans: Readonly<Record<string, unknown>> = isPlans ? limit : {}
  const { by, values, ...rest } = plans
  const { isCount, ...checks } = limitChecks(given as never)
  return {
    ofRule: {
      default: isCount ? 0 : '0/s',
      ...rest,
      from: limitOfCall,
      ...(values !== undefined && { by: PLAN, values }),
    },
    hasPlans: values !== undefined,
    isWholly: !isPlans,
    read: (isPlans ? by : limit) as LimitReader<never>,
    given: new GivenLimits({
      ...checks,
      burst: (given as { readonly burst?: unknown }).burst,
      plans: Object.keys((values as object | undefined) ?? {}),
      hasDefault: isPlans,
    }),
  }
}

function storeOf(store: NonNullable<RateLimitOptions<never>['store']>): GivenStore {
  const isNamed = typeof store === 'object' && ['redis', 'transact', 'custom'].some(word => word in store)
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
