import { isAsyncFunction } from '../common/promises.ts'
import { DianaError } from '../errors.ts'
import { joinNames, show } from '../rules/show.ts'
import { suggest } from '../rules/suggest.ts'

/** A function that says what is wrong with the value of an option; undefined if nothing is. */
type Fault = (value: unknown) => string | undefined

const isFunction: Fault = value => (typeof value === 'function' ? undefined : `must be a function, not ${show(value)}`)

const isSyncFunction: Fault = value => {
  return isAsyncFunction(value) ? 'must not be async: return the value itself' : isFunction(value)
}

const options: Readonly<Record<string, Fault>> = {
  cost: value => {
    if (typeof value === 'function') return isSyncFunction(value)
    return Number.isSafeInteger(value) && (value as number) >= 0
      ? undefined
      : `must be a whole number of 0 or more, or a function, not ${show(value)}`
  },
  attributes: isSyncFunction,
  skip: isFunction,
  resource: value => (value === 'route' || value === 'path' ? undefined : `must be route or path, not ${show(value)}`),
  caseSensitive: value => (typeof value === 'boolean' ? undefined : `must be true or false, not ${show(value)}`),
  onError: isFunction,
  onRefused: isFunction,
  forwardErrors: value => (typeof value === 'boolean' ? undefined : `must be true or false, not ${show(value)}`),
  peer: isSyncFunction,
}

const common: readonly string[] = Object.keys(options).filter(name => name !== 'peer')

const rules = "limits are rules of the limiter: createLimiter({ rules: [{ id: 'all', limit: '100/m' }] })"
const answers = 'say it in the rules, as in answer: { status: 429, body: … }, or with onRefused'

/** The names that other rate limiters give an option, and where it is here. */
const elsewhere: Readonly<Record<string, string>> = {
  max: rules,
  limit: rules,
  windowMs: rules,
  timeWindow: rules,
  duration: rules,
  ttl: rules,
  points: rules,
  rules,
  config: rules,
  keyGenerator: "whom a rule counts is its by, as in by: 'ip'; what your code knows goes into attributes",
  by: "whom a rule counts is its by, as in createLimiter({ rules: [{ id: 'all', by: 'ip', limit: '100/m' }] })",
  handler: answers,
  message: answers,
  statusCode: answers,
  status: answers,
  answer: 'answer is a word of the rules: createLimiter({ answer: { status: 429 }, rules })',
  errorResponseBuilder: answers,
  onLimitReached: answers,
  standardHeaders: "the style of the headers is a word of the rules: answer: { headers: 'draft-7' }",
  legacyHeaders: "the style of the headers is a word of the rules: answer: { headers: 'legacy' }",
  headers: "the style of the headers is a word of the rules: answer: { headers: 'draft-7' }",
  allowList: 'write skip, a function of the request; or allow in the rules',
  whitelist: 'write skip, a function of the request; or allow in the rules',
  skipFailedRequests: 'write countWhen in the rule',
  skipSuccessfulRequests: "write countWhen: 'failed' in the rule",
  store: "the store belongs to the limiter: createLimiter({ store: { redis: 'redis://127.0.0.1:6379' }, rules })",
  redis: "the store belongs to the limiter: createLimiter({ store: { redis: 'redis://127.0.0.1:6379' }, rules })",
  trustProxy: 'trustProxy belongs to the limiter: createLimiter({ trustProxy: 1, rules })',
}

/** Throws, with the remedy, for options that a filter does not have or cannot use; `own` are those of this filter alone. */
export function assertOptions(given: unknown, caller: string, own: readonly string[] = []): void {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw fault(`${caller}: the options must be an object such as { cost: 2 }, not ${show(given)}`)
  }
  const known = [...common, ...own]
  for (const [name, value] of Object.entries(given)) {
    if (!known.includes(name)) throw fault(`${caller}: unknown option ${name}; ${remedyFor(name, known)}`)
    if (value === undefined) continue
    const wrong = options[name]?.(value)
    if (wrong !== undefined) throw fault(`${caller}: ${name} ${wrong}`)
  }
  const { forwardErrors, onRefused } = given as Readonly<Record<string, unknown>>
  if (forwardErrors === true && onRefused !== undefined) {
    throw fault(`${caller}: forwardErrors and onRefused both say what a refused caller gets: leave one out`)
  }
}

/** Throws unless the options of a route's filter name a rule at least. */
export function assertRouteOptions(given: unknown, caller: string, own: readonly string[] = []): void {
  const example = `${caller}(limiter, { rule: { id: 'login', limit: '5/m' } })`
  if (given === undefined) throw fault(`${caller} was told no rule: write ${example}`)
  assertOptions(given, caller, ['rule', ...own])
  const { rule } = given as { readonly rule?: unknown }
  const all = Array.isArray(rule) ? rule : [rule]
  const isRule = (one: unknown): boolean => (typeof one === 'string' && one !== '') || isOptions(one)
  if (all.length > 0 && all.every(isRule)) return
  throw fault(`${caller}: rule must be the id of a rule, or a rule such as ${example}, not ${show(rule)}`)
}

function isOptions(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'id' in value
}

function remedyFor(name: string, known: readonly string[]): string {
  const there = Object.hasOwn(elsewhere, name) ? elsewhere[name] : undefined
  if (there !== undefined) return there
  const meant = suggest(name, known)
  return meant ? `did you mean ${meant}?` : `it can be told ${joinNames(known)}`
}

function fault(message: string): DianaError {
  return new DianaError('BAD_CALL', message)
}
