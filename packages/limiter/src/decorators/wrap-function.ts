import { LimitedError } from '../answers/limited-error.ts'
import { isAsyncFunction } from '../common/promises.ts'
import { DianaError } from '../errors.ts'
import type { Limiter } from '../limiter.ts'
import type { Verdict } from '../verdict.ts'
import { Annotation, type FunctionCall, type RateLimitOptions } from './annotation.ts'

type AnyFunction = (this: unknown, ...args: never[]) => unknown

/**
 * Wraps a function in limits; of several, all must hold. A refused call throws a LimitedError, or gives the fallback; that of an
 * async function rejects. The result is a promise if it has to wait, or is counted for the fleet; else it is what the function
 * returns.
 */
export function rateLimited<Args extends unknown[], Result>(
  work: (...args: Args) => Result,
  words: RateLimitOptions<Args> | readonly RateLimitOptions<Args>[],
): (...args: Args) => Result | Promise<Awaited<Result>> {
  if (typeof work !== 'function') {
    throw new DianaError('BAD_CALL', "rateLimited was given no function: write rateLimited(work, { limit: '5/s' })")
  }
  const all = (Array.isArray(words) ? words : [words]) as readonly RateLimitOptions[]
  const annotations = all.map(one => new Annotation(one))
  if (annotations.length === 0) throw new DianaError('BAD_RULES', 'rateLimited was given no limits: give one at least')
  for (const annotation of annotations) annotation.assertCallable()
  const limited: unknown = limit(work as unknown as AnyFunction, annotations, () => work.name)
  return limited as typeof work
}

const guarded = new WeakSet<object>()

/** Leaves the annotations of a limited function to a guard that obeys them; the function then lets every call pass. */
export function leaveToGuard(limited: object): void {
  guarded.add(limited)
}

/** Applies limits to a function, which are decided together; `nameOf` returns its name for a `this` value. */
export function limit(
  work: AnyFunction,
  annotations: readonly Annotation[],
  nameOf: (self: unknown, limited: AnyFunction) => string,
): AnyFunction {
  let isAsync = isAsyncFunction(work)

  const attempt = (self: unknown, args: never[]): unknown => {
    for (const annotation of annotations) annotation.assertCallable()
    const limiter = limiterOf(annotations)
    const ids = annotations.map(annotation => annotation.idIn(limiter, () => nameOf(self, limited)))
    const proceed = (verdict: Verdict): unknown => {
      if (verdict.allowed) {
        const result = run(work, self, args, verdict)
        // a function that has once returned a promise is expected to reject from then on, and not to throw
        isAsync ||= isThenable(result)
        return result
      }
      const { words, hasFallback } = annotations[ids.indexOf(verdict.rule ?? '')] ?? annotations[0]!
      if (!hasFallback) throw new LimitedError(verdict)
      return typeof words.fallback === 'function' ? words.fallback.apply(self, args) : words.fallback
    }
    const verdict = judge(limiter, callOf(ids[0]!, self, args, annotations), ids)
    // Diana never breaks what it guards: a limiter that was closed refuses nothing
    if (verdict === undefined) return work.apply(self, args)
    return verdict instanceof Promise ? verdict.then(proceed) : proceed(verdict)
  }

  const limited = function (this: unknown, ...args: never[]): unknown {
    if (guarded.has(limited)) return work.apply(this, args)
    return isAsync ? settled(() => attempt(this, args)) : attempt(this, args)
  }
  Object.defineProperty(limited, 'name', { value: work.name, configurable: true })
  Object.defineProperty(limited, 'length', { value: work.length, configurable: true })
  return limited
}

/** Returns what a function returns or throws, as a promise. */
function settled(attempt: () => unknown): PromiseLike<unknown> {
  try {
    const result = attempt()
    return isThenable(result) ? result : Promise.resolve(result)
  } catch (error) {
    return Promise.reject(error)
  }
}

function judge(limiter: Limiter, call: FunctionCall, rule: readonly string[]): Verdict | Promise<Verdict> | undefined {
  try {
    return limiter.decide(call, { rule, only: true })
  } catch (error) {
    if (error instanceof DianaError && error.code === 'CLOSED') return undefined
    throw error
  }
}

function run(work: AnyFunction, self: unknown, args: never[], verdict: Verdict): unknown {
  const end = (failed: boolean): void => verdict.end({ failed })
  if (!verdict.holds) return work.apply(self, args)
  let result: unknown
  try {
    result = work.apply(self, args)
  } catch (error) {
    end(true)
    throw error
  }
  if (!isThenable(result)) {
    end(false)
    return result
  }
  return result.then(
    value => {
      end(false)
      return value
    },
    (error: unknown) => {
      end(true)
      throw error
    },
  )
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'
}

/**
 * Returns the limiter of several limits, which must share one: all are decided at once, so that a call that one refuses is charged
 * by none.
 */
function limiterOf([first, ...others]: readonly Annotation[]): Limiter {
  const { limiter } = first!
  if (others.every(one => one.limiter === limiter)) return limiter
  throw new DianaError('BAD_RULES', 'limits on one function are judged together: give all of them the same limiter')
}

function callOf(id: string, self: unknown, args: readonly unknown[], annotations: readonly Annotation[]): FunctionCall {
  const call = { method: 'CALL', path: `/${id}`, resource: id, self, args }
  const attributes: Record<string, string | undefined> = {}
  for (const annotation of annotations) {
    const [name, value] = annotation.attributeOf(call) ?? []
    if (name === undefined) continue
    if (Object.hasOwn(attributes, name) && attributes[name] !== value) {
      throw new DianaError('BAD_RULES', `two limits on one function give ${name} other values: leave by out of one`)
    }
    attributes[name] = value
  }
  return { ...call, attributes }
}
