import { type Algorithm, InvalidLimitError } from '../../algorithms/algorithm.ts'
import { algorithms } from '../../algorithms/index.ts'
import { DURATION_PATTERN, durationFault, FOREVER, parseDuration } from '../../common/duration.ts'
import type { SchemaKit } from '../../common/option-shape.ts'
import { isAsyncFunction } from '../../common/promises.ts'
import { redisAddressFault } from '../../common/redis-url.ts'
import { certificateParts } from '../../http/client-certificate.ts'
import { headerStyles } from '../../rules/answer-option.ts'
import { byFault, nameFault, sourceFault } from '../../rules/dimension-name.ts'
import { explainOption, wrongKind } from '../../rules/explain.ts'
import { isMap } from '../../rules/is-map.ts'
import { explainCount, explainRate, MOST, namesCalendar, parseRate } from '../../rules/limit-text.ts'
import { networkFault } from '../../rules/match/address.ts'
import { parseStatuses, statusFault } from '../../rules/match/count-when.ts'
import { headerFault, hostFault, methodFault, methods, pathFault } from '../../rules/match/pattern.ts'
import { hintForValue } from '../../rules/schema/hints.ts'
import { joinNames, show } from '../../rules/show.ts'
import { suggest } from '../../rules/suggest.ts'

/*
 * The values of the options of one limit, checked without schemas where `rateLimit` is called. The limiter checks all options again when
 * it is made; a mistake that only it notices makes the filter refuse all requests. `check-values.test.ts` compares both.
 */

/** A function that says what is wrong with a value; the name of the option goes before it. Undefined if nothing is. */
type Check = (value: unknown) => string | undefined
type Checks = Readonly<Record<string, Check>>

const MOST_COUNT = 1e9
const JWT_FAULT = 'needs a key to verify tokens by, or verified: true if a proxy in front has verified them; not both'

/** The dimensions that `by` may name, as far as names are checked. */
export const dimensionNames: Parameters<typeof byFault>[1]['dimensions'] = [
  ...['ip', 'resource', 'host', 'method'].map(name => ({ name, argument: 'none' as const })),
  ...['header', 'query', 'cookie'].map(name => ({ name, argument: 'required' as const })),
  { name: 'jwt', argument: 'required', needs: 'jwt' },
  { name: 'client-certificate', argument: 'required', arguments: certificateParts },
  { name: 'attribute', argument: 'required' },
]

function checksOf({ options }: Algorithm): Checks {
  const shape = typeof options === 'function' ? options(checkedShapes()) : options
  return Object.fromEntries(Object.entries(shape).map(([name, one]) => [name, (one as unknown as CheckedShape).check]))
}

/** An option in the words of a schema, as a check of its value. */
class CheckedShape {
  readonly check: Check

  constructor(check: Check) {
    this.check = check
  }

  optional(): this {
    return this
  }

  describe(): this {
    return this
  }
}

class CheckedRange extends CheckedShape {
  readonly #make: (least: number, most: number) => Check
  readonly #range: readonly [least: number, most: number]

  constructor(make: (least: number, most: number) => Check, ...range: [least: number, most: number]) {
    super(make(...range))
    this.#make = make
    this.#range = range
  }

  min(least: number): CheckedRange {
    return new CheckedRange(this.#make, least, this.#range[1])
  }

  max(most: number): CheckedRange {
    return new CheckedRange(this.#make, this.#range[0], most)
  }

  gt(least: number): CheckedRange {
    return this.min(least + Number.EPSILON)
  }
}

/** Makes checks of the words in which algorithms describe their options. */
function checkedShapes(): SchemaKit {
  const z = {
    int: () => new CheckedRange(whole, Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER),
    number: () => new CheckedRange(number, Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY),
    string: () => new CheckedRange(text, 0, Number.POSITIVE_INFINITY),
    enum: (names: readonly string[]) => new CheckedShape(oneOf(...names)),
    union: (shapes: readonly CheckedShape[]) =>
      new CheckedShape(value => {
        const wrong = shapes.map(({ check }) => check(value))
        return wrong.includes(undefined) ? undefined : wrong.at(-1)
      }),
  }
  return { z, duration: new CheckedShape(duration) } as unknown as SchemaKit
}

/** The checks of the options of each algorithm; its list and its words are those of rules. */
const checksByAlgorithm = new Map(
  algorithms.map(algorithm => [algorithm.name, { algorithm, options: checksOf(algorithm) }]),
)

/** Returns a function that checks the value of an option beside the others that are given. */
export function valueChecks(given: Readonly<Record<string, unknown>>): Checks {
  const algorithm = algorithmOf(given)
  const identified = isMap(given.identify) ? Object.keys(given.identify) : []
  const givenOptions = Object.keys(given).filter(name => given[name] !== undefined)
  const known = { dimensions: dimensionNames, givenOptions }
  const dimension = textBy(one => byFault(one, known, identified), 256)
  const source = textBy(one => sourceFault(one, known), 256)
  const callers = callersBy(dimension)
  return {
    id: matching(/^[\w.-]{1,64}$/, 'must be 1 to 64 letters, digits, -, _ and dots, since headers carry it'),
    limit: limitBy(algorithm, dimension),
    by: withoutDoubles(listOf(nameOrAnyFunction(dimension), 0, 16)),
    match: value => (value === 'none' ? undefined : match(value)),
    algorithm: oneOf(...checksByAlgorithm.keys()),
    count: oneOf('local', 'distributed'),
    whenFull: oneOf('refuse', 'wait', 'shadow', 'drop'),
    queue: mapOf('queue', { size: whole(1, 100_000), timeout: duration, perCaller: whole(1, 100_000) }),
    whenStoreDown: oneOf('share', 'local', 'allow', 'refuse'),
    whenFailed: oneOf('pass', 'refuse'),
    lease: oneOf('auto', 'off'),
    missing: oneOf('skip', 'shared', 'address'),
    cost: costBy(source),
    countWhen: statuses,
    resetWhen: statuses,
    block: blockFault,
    credit: flag,
    allow: callers,
    deny: callers,
    answer: mapOf('answer', {
      status,
      headers: headerStyle,
      body: sent,
      contentType: text(0, 256),
      tokenHeaders: flag,
    }),
    status,
    message: sent,
    headers: headerStyle,
    countPreflights: flag,
    identify: identifyBy(source),
    trustProxy,
    forwardedBy: oneOf('x-forwarded-for', 'forwarded'),
    ipv6Prefix: value => ([48, 56, 64, 128].includes(value as number) ? undefined : mustBe('48, 56, 64 or 128', value)),
    jwt,
    clock: syncFunction,
    maxKeys: whole(1, Number.MAX_SAFE_INTEGER),
    store,
    ...ownOptions(algorithm),
  }
}

/** Checks where the calls are counted: a value that `createLimiter` takes as `store`, or as `store.redis`. */
function store(value: unknown): string | undefined {
  if (value === undefined || value === null || value === '') {
    return 'is empty, as when an environment variable is not set: give the URL of Redis, or leave store out to count in this process'
  }
  const words = (typeof value === 'object' ? value : {}) as { readonly transact?: unknown; readonly custom?: unknown }
  // an object of a class, or one of before, which is refused when it is used
  if (words.custom !== undefined || (words.transact !== undefined && !isMap(value))) return undefined
  if (isMap(value) && ('redis' in value || 'transact' in value)) {
    const { redis, transact, keys, close, ...rest } = value
    const more = { timeout: duration, fleet: whole(1, 100_000), prefix: text(1, 64) }
    return (transact === undefined ? within('redis', store(redis)) : undefined) ?? mapOf('store', more)(rest)
  }
  if (typeof value === 'string') return redisUrl(value)
  if (Array.isArray(value))
    return listOf(one => (typeof one === 'string' ? redisUrl(one) : wrongKind(one, 'text')), 1, 100)(value)
  const client = value as { readonly call?: unknown; readonly sendCommand?: unknown }
  if (typeof value === 'function' || typeof client.call === 'function' || typeof client.sendCommand === 'function')
    return undefined
  return `must be the URL of Redis, such as redis://127.0.0.1:6379, or a client, not ${show(value)}`
}

function redisUrl(address: string): string | undefined {
  if (!address.startsWith('env:')) return redisAddressFault(address)
  const name = address.slice(4).trim()
  if (process.env[name]) return undefined
  return `is in the environment variable ${show(name)}, which is not set: set it, or write the value here`
}

/** Makes the checks of a limit that a function returns. */
export function limitChecks(given: Readonly<Record<string, unknown>>): {
  readonly isCount: boolean
  readonly limitFault: Check
  readonly burstFault: Check
} {
  const algorithm = algorithmOf(given)
  return {
    isCount: isCount(algorithm),
    limitFault: oneLimit(algorithm),
    burstFault: ownOptions(algorithm).burst!,
  }
}

/**
 * True if a limit that a function gives needs a default that is written: the algorithm cannot count a limit of 0, which stands for one
 * that comes with each call. The burst comes with it.
 */
export function needsDefault({ burst, ...given }: Readonly<Record<string, unknown>>): boolean {
  try {
    const algorithm = checksByAlgorithm.get(algorithmOf(given))?.algorithm
    algorithm?.meter({ count: 0, periodMs: 1000 }, given, given.whenFull === 'wait' ? {} : undefined)
    return false
  } catch (error) {
    if (error instanceof InvalidLimitError) return true
    throw error
  }
}

function isCount(algorithm: string): boolean {
  return checksByAlgorithm.get(algorithm)?.algorithm.limit === 'count'
}

function oneLimit(algorithm: string): Check {
  return value => {
    if (isCount(algorithm)) return isWhole(value, 0, MOST) ? undefined : explainCount(value, algorithm)
    const rate = typeof value === 'string' ? parseRate(value) : undefined
    if (rate === undefined) return explainRate(value)
    if (rate.unit === undefined || checksByAlgorithm.get(algorithm)?.algorithm.hasCalendar) return undefined
    return `per ${rate.unit} is a calendar period, which ${algorithm} does not count: set algorithm: fixed-window`
  }
}

function limitBy(algorithm: string, dimension: Check): Check {
  const one = oneLimit(algorithm)
  const plan: Check = value => (isMap(value) ? within('limit', one(value.limit)) : one(value))
  const plans: Check = mapOf('limit', {
    by: value => (typeof value === 'function' ? undefined : dimension(value)),
    values: recordOf(plan),
    from: value => (typeof value === 'function' ? undefined : text(1, 1024)(value)),
    refresh: duration,
    overrides: flag,
    default: one,
  })
  return value => {
    if (typeof value === 'function') return undefined
    if (Array.isArray(value)) {
      const at = value.findIndex(item => typeof item === 'function')
      return at < 0 ? listOf(one, 1, 8)(value) : `[${at}] must not be a function: write one function for limit`
    }
    if (!isMap(value)) return one(value)
    if (typeof value.by === 'function' && value.from !== undefined) {
      return '.from is not for a function, which finds the limit itself: leave from or by out'
    }
    if (typeof value.by === 'function' && value.refresh !== undefined) {
      return '.refresh is not for a function, which is asked for each request: leave refresh out'
    }
    if (value.default !== undefined) return plans(value)
    return (
      plans(value) ??
      '.default is missing: write the limit of callers without a value of their own, such as default: 100/h'
    )
  }
}

/** Returns the algorithm that counts the limit; of those that can count it for a calendar period. */
function algorithmOf({ algorithm, limit }: Readonly<Record<string, unknown>>): string {
  if (typeof algorithm === 'string') return algorithm
  const forCalendar = namesCalendar(limit) ? algorithms.find(({ hasCalendar }) => hasCalendar) : undefined
  return (forCalendar ?? algorithms[0]!).name
}

/** Returns the options of all algorithms; those of another algorithm than the chosen one are a mistake. */
function ownOptions(chosen: string): Checks {
  const all = [...checksByAlgorithm]
  const names = new Set(all.flatMap(([, { options }]) => Object.keys(options)))
  const checks = [...names].map((name): [string, Check] => {
    const own = checksByAlgorithm.get(chosen)?.options[name]
    if (own !== undefined) return [name, own]
    const owners = all.flatMap(([owner, { options }]) => (options[name] === undefined ? [] : [owner]))
    return [name, () => `belongs to ${owners.join(', ')}: set algorithm: ${joinNames(owners)}, or leave ${name} out`]
  })
  return Object.fromEntries(checks)
}

/** The names of the options that only some algorithms have. */
export const algorithmOptionNames: readonly string[] = Object.keys(ownOptions(''))

function costBy(source: Check): Check {
  const amount = whole(1, MOST_COUNT)
  const more = mapOf('cost', {
    from: source,
    least: whole(0, MOST_COUNT),
    most: amount,
    overrun: oneOf('debt', 'clip'),
    hold: duration,
    reserve: anything,
    settle: anything,
    weights: anything,
    unit: anything,
  })
  return value => {
    // numbers and functions are options of the filter
    if (!isMap(value)) return source(value)
    const isSaid = ['from', 'overrun', 'hold', 'reserve', 'settle'].some(word => value[word] !== undefined)
    return (
      more(value) ??
      (isSaid ? undefined : 'says nothing of the cost: write from, overrun or hold, as in cost: { hold: 10m }')
    )
  }
}

function callersBy(dimension: Check): Check {
  const networks = listOf(network, 1, 10_000)
  const values = listOf(
    value => (typeof value === 'number' ? whole(-MOST, MOST)(value) : text(1, 1024)(value)),
    1,
    10_000,
  )
  return value => {
    if (!isRecord(value)) return isMap(value) ? mustBe('text, a list or a map of options', value) : networks(value)
    for (const name of Object.keys(value)) {
      const wrong = dimension(name) ?? within(name, values(value[name]))
      if (wrong !== undefined) return wrong
    }
    return undefined
  }
}

function identifyBy(source: Check): Check {
  const sources = listOf(nameOrFunction(source), 0, 32)
  return value => {
    if (!isRecord(value)) return notMap('identify', value)
    for (const name of Object.keys(value)) {
      const wrong = nameFault(name, { dimensions: dimensionNames }) ?? sources(value[name])
      if (wrong !== undefined) return within(name, wrong)
    }
    return undefined
  }
}

const match: Check = mapOf('match', {
  path: listOf(textBy(pathFault, 1024), 1, 100),
  method: listOf(textBy(methodFault, 20), 1, methods.length),
  host: listOf(textBy(hostFault, 255), 1, 100),
  header: recordOf(listOf(text(0, 1024), 1, 100), headerFault),
  attribute: recordOf(listOf(text(0, 1024), 1, 100)),
  websocket: oneOf('messages'),
})

function jwt(value: unknown): string | undefined {
  const wrong = mapOf('jwt', {
    key: listOf(text(1, 65_536), 1, 20),
    verified: flag,
    issuer: text(1, 1024),
    audience: listOf(text(1, 1024), 1, 100),
  })(value)
  if (wrong !== undefined) return wrong
  const { key, verified = false } = value as Readonly<Record<string, unknown>>
  return verified === (key !== undefined) ? JWT_FAULT : undefined
}

function trustProxy(value: unknown): string | undefined {
  if (typeof value === 'number' && isWhole(value, 0, 32)) return undefined
  if (typeof value === 'string' || Array.isArray(value)) return listOf(network, 0, 1000)(value)
  const example = typeof value === 'boolean' ? ': write trustProxy: 1 if one proxy is in front' : ''
  return `must be a number of hops from 0 to 32, or a list of networks such as 10.0.0.0/8, not ${show(value)}${example}`
}

function headerStyle(value: unknown): string | undefined {
  const wrong = oneOf(...headerStyles)(value)
  return wrong !== undefined && /^draft-(?:8|9|10)$/.test(String(value)) ? `${wrong}: draft-11 has its form` : wrong
}

function blockTime(value: unknown): string | undefined {
  return value === FOREVER ? undefined : duration(value)
}

function blockFault(value: unknown): string | undefined {
  if (value === 'manual') return undefined
  if (!isMap(value)) return blockTime(value)
  const wrong = mapOf('block', {
    first: blockTime,
    factor: number(1, 100),
    max: blockTime,
    forgetAfter: duration,
    clear: flag,
  })(value)
  return wrong ?? (value.first === undefined ? '.first is missing: write how long the first block lasts' : undefined)
}

function statuses(value: unknown): string | undefined {
  return listOf(
    one => {
      const isKind = typeof one === 'string' || Number.isSafeInteger(one)
      return isKind && parseStatuses(String(one)) !== undefined ? undefined : `${statusFault}, not ${show(one)}`
    },
    1,
    100,
  )(value)
}

function status(value: unknown): string | undefined {
  return whole(200, 599)(value)
}

function sent(value: unknown): string | undefined {
  if (typeof value === 'string') return value.length > 65_536 ? 'must be at most 65536 characters long' : undefined
  return Array.isArray(value) || isRecord(value) ? undefined : mustBe('text, or an object that is sent as JSON', value)
}

function network(value: unknown): string | undefined {
  return textBy(networkFault, 64)(value)
}

function duration(value: unknown): string | undefined {
  const isDuration = typeof value === 'string' && DURATION_PATTERN.test(value) && parseDuration(value) !== undefined
  return isDuration ? undefined : durationFault(value)
}

function flag(value: unknown): string | undefined {
  return typeof value === 'boolean' ? undefined : wrongKind(value, 'true or false')
}

function anything(): undefined {
  return undefined
}

function syncFunction(value: unknown): string | undefined {
  if (isAsyncFunction(value)) return 'must not be async: return the value itself, and look it up before'
  return typeof value === 'function' ? undefined : mustBe('a function', value)
}

function nameOrAnyFunction(name: Check): Check {
  return value => (typeof value === 'function' ? undefined : name(value))
}

function nameOrFunction(name: Check): Check {
  return value => (typeof value === 'function' ? syncFunction(value) : name(value))
}

function oneOf(...names: readonly string[]): Check {
  return value => {
    if (names.includes(value as string)) return undefined
    const meant = typeof value === 'string' ? suggest(value, names) : undefined
    return `${mustBe(joinNames(names), value)}${meant === undefined ? '' : `: did you mean ${meant}?`}`
  }
}

function whole(least: number, most: number): Check {
  return value => (isWhole(value, least, most) ? undefined : mustBe(`a whole number from ${least} to ${most}`, value))
}

function number(least: number, most: number): Check {
  return value => {
    const fits = typeof value === 'number' && value >= least && value <= most
    return fits ? undefined : mustBe(`a number from ${least} to ${most}`, value)
  }
}

function isWhole(value: unknown, least: number, most: number): boolean {
  return Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most
}

function text(least: number, most: number): Check {
  return value => {
    if (typeof value !== 'string') return wrongKind(value, 'text')
    return value.length >= least && value.length <= most ? undefined : `must be ${least} to ${most} characters long`
  }
}

function textBy(fault: (text: string) => string | undefined, most: number): Check {
  return value => text(0, most)(value) ?? fault(value as string)
}

function matching(pattern: RegExp, fault: string): Check {
  return value => (typeof value === 'string' ? (pattern.test(value) ? undefined : fault) : wrongKind(value, 'text'))
}

/** Returns one item, or a list of them. */
function listOf(item: Check, least: number, most: number): Check {
  return value => {
    if (!Array.isArray(value)) return item(value)
    if (value.length < least) return 'is an empty list: put something in it'
    if (value.length > most) return `must be at most a list of ${most}, not ${value.length}`
    for (const [index, one] of value.entries()) {
      const wrong = item(one)
      if (wrong !== undefined) return within(index, wrong)
    }
    return undefined
  }
}

function withoutDoubles(list: Check): Check {
  return value => {
    const wrong = list(value)
    if (wrong !== undefined || !Array.isArray(value)) return wrong
    const double = value.find((item, at) => typeof item === 'string' && value.indexOf(item) < at)
    return double === undefined ? undefined : `names ${show(double)} twice: leave one out`
  }
}

function mapOf(name: string, checks: Checks): Check {
  const known = Object.keys(checks)
  return value => {
    if (!isMap(value)) return notMap(name, value)
    for (const [word, one] of Object.entries(value)) {
      const check = Object.hasOwn(checks, word) ? checks[word] : undefined
      if (check === undefined) return within(word, explainOption(word, known))
      const wrong = one === undefined ? undefined : check(one)
      if (wrong !== undefined) return within(word, wrong)
    }
    return undefined
  }
}

function recordOf(check: Check, nameCheck: (name: string) => string | undefined = anything): Check {
  return value => {
    if (!isRecord(value)) return wrongKind(value, 'a map of options')
    for (const [word, one] of Object.entries(value)) {
      const wrong = nameCheck(word) ?? check(one)
      if (wrong !== undefined) return within(word, wrong)
    }
    return undefined
  }
}

/** True if a value is an object that was written as one, and no instance of a class. */
function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  if (!isMap(value)) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || prototype === Object.prototype
}

function notMap(name: string, value: unknown): string {
  const hint = hintForValue(name, value)
  return `${wrongKind(value, 'a map of options')}${hint === undefined ? '' : `: ${hint}`}`
}

function mustBe(what: string, value: unknown): string {
  return `must be ${what}, not ${show(value)}`
}

/** Returns the mistake of a part of an option, in its place: `queue.timeout …`, `by[1] …`. */
function within(part: string | number, wrong: string): string
function within(part: string | number, wrong: string | undefined): string | undefined
function within(part: string | number, wrong: string | undefined): string | undefined {
  if (wrong === undefined) return undefined
  return `${typeof part === 'number' ? `[${part}]` : `.${part}`}${joint(wrong)}`
}

/** Returns what separates the name of an option from what is wrong with it, and that. */
export function joint(wrong: string): string {
  return wrong.startsWith('.') || wrong.startsWith('[') ? wrong : ` ${wrong}`
}
