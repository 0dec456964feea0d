import { type AlgorithmChoice, algorithms } from '../algorithms/index.ts'
import type { Call } from '../call.ts'
import { assertLimiter } from '../common/assert-limiter.ts'
import { isAsyncFunction, valueNow } from '../common/promises.ts'
import { dimensions } from '../dimensions/index.ts'
import { GivenFunctions } from '../dimensions/reading/given-functions.ts'
import { Engine } from '../engine/engine.ts'
import { DianaError } from '../errors.ts'
import { Limiter } from '../limiter.ts'
import { parseOptions } from '../rules/parse.ts'
import type { CommonRuleOptions } from '../rules/schema/options.ts'

/** A limit on a function, with the options of a rule; what depends on the call is a function of its arguments. */
export type RateLimitOptions<Args extends readonly unknown[] = never[]> = FunctionLimitOptions<Args> &
  Omit<CommonRuleOptions, keyof FunctionLimitOptions> &
  AlgorithmChoice

interface FunctionLimitOptions<Args extends readonly unknown[] = never[]> {
  /** The name of the rule; default: that of the class and the method, or of the function. */
  readonly id?: string | undefined
  readonly limit: CommonRuleOptions['limit']
  /** The dimensions that the rule counts by, for HTTP requests; elsewhere the name of what `key` returns. */
  readonly by?: string | readonly string[] | undefined
  /** The value that the rule counts by, as a function of the arguments. */
  readonly key?: ((...args: Args) => string | number | undefined) | undefined
  readonly cost?: number | ((...args: Args) => number) | undefined
  readonly whenFull?: CommonRuleOptions['whenFull']
  /** The value that a refused call returns, or a function of its arguments that returns it; left out, it throws. */
  readonly fallback?: unknown
  /** The limiter that counts it; default: a private limiter of this process. */
  readonly limiter?: Limiter | (() => Limiter) | undefined
}

/** A function's call, as its rules see it. */
export interface FunctionCall extends Call {
  readonly self: unknown
  readonly args: readonly unknown[]
}

/** The calls of a function that wait are jobs, which must not be lost, rather than requests whose callers leave. */
const JOB_QUEUE = { size: 100_000, timeout: '1d' } as const

/** One decorator: its options, and its rule in each limiter. */
export class Annotation {
  readonly words: RateLimitOptions
  readonly #ids = new WeakMap<Limiter, string>()

  constructor(words: RateLimitOptions) {
    assertRateLimitOptions(words)
    this.words = words
  }

  /** Throws for options that only a filter can use. */
  assertCallable(): void {
    const { by, key } = this.words
    if (by === undefined || (key !== undefined && typeof by === 'string')) return
    throw new DianaError(
      'BAD_RULES',
      `by: ${String(by)} is about callers of HTTP: say key, a function of the arguments that gives one; on a controller of ` +
        'Nest, import DianaModule.forRoot(limiter), whose guard obeys it',
    )
  }

  get limiter(): Limiter {
    const { limiter = defaultLimiter } = this.words
    if (typeof limiter !== 'function') return limiter
    const given = limiter()
    assertLimiter(given, 'limiter: () => …')
    return given
  }

  get hasFallback(): boolean {
    return Object.hasOwn(this.words, 'fallback')
  }

  /** Returns the id of its rule, which is added to the limiter on first use. */
  idIn(limiter: Limiter, nameOf: () => string): string {
    const known = this.#ids.get(limiter)
    if (known !== undefined) return known
    const { id = freeName(nameOf(), limiter), by, key, cost, fallback: _, limiter: __, ...words } = this.words
    limiter.addRule({
      match: 'none',
      ...(words.whenFull === 'wait' && { queue: JOB_QUEUE }),
      ...words,
      id,
      ...(by !== undefined ? { by } : key && { by: (call: Call) => apply(key, call as FunctionCall) }),
      ...(cost !== undefined && { cost: costOf(cost) }),
    })
    this.#ids.set(limiter, id)
    return id
  }

  /** Returns the attributes that the rule counts by, computed from the arguments. */
  attributeOf(call: FunctionCall): readonly [name: string, value: string | undefined] | undefined {
    const { by, key } = this.words
    if (typeof by !== 'string' || key === undefined) return undefined
    try {
      const value = valueNow(apply(key, call), 'key')
      return [by, value === undefined ? undefined : String(value)]
    } catch {
      return [by, undefined]
    }
  }
}

const example = "{ limit: '5/s' }"

/** Throws, with the remedy, if the options of a limit are invalid. */
export function assertRateLimitOptions(words: RateLimitOptions): void {
  const fault = (message: string): DianaError => new DianaError('BAD_RULES', message)
  if (typeof words !== 'object' || words === null) {
    throw fault(`a limit on a function needs its words: write @RateLimit(${example}), or rateLimited(work, ${example})`)
  }
  const { limiter, limit, key, cost } = words
  if (limiter !== undefined && typeof limiter !== 'function') assertLimiter(limiter, 'limiter:')
  if (limit === undefined) throw fault(`limit is missing: say how many in how long, as in ${example}`)
  for (const [name, value] of Object.entries({ key, cost })) {
    if (isAsyncFunction(value)) throw fault(`${name} must not be async: return the value itself`)
  }
}

function costOf(cost: number | ((...args: never[]) => number)): number | ((call: Call) => number) {
  return typeof cost === 'number' ? cost : call => apply(cost, call as FunctionCall)
}

function apply<T>(tell: (...args: never[]) => T, { self, args }: FunctionCall): T {
  return tell.apply(self, args as never[])
}

const taken = new WeakMap<Limiter, Set<string>>()

/** Returns the name, as an id may be spelled; of two functions of one name, the second is another. */
function freeName(name: string, limiter: Limiter): string {
  const ids = taken.get(limiter) ?? new Set()
  taken.set(limiter, ids)
  const spelled = name.replace(/[^\w.-]+/g, '_').slice(0, 56) || 'function'
  let id = spelled
  for (let copy = 2; ids.has(id); copy++) id = `${spelled}-${copy}`
  ids.add(id)
  return id
}

let known: Limiter | undefined

/** Returns the limiter of decorators that name none: it counts in this process, has only their rules, and is created on first use. */
export function defaultLimiter(): Limiter {
  known ??= create()
  return known
}

function create(): Limiter {
  const vocabulary = { algorithms, dimensions, sources: [] }
  const given = new GivenFunctions()
  const document = parseOptions({ rules: [] }, vocabulary).document!
  const named = [...dimensions, given.dimension]
  return new Limiter(new Engine({ algorithms, dimensions: named, given, vocabulary, document }))
}
