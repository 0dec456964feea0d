import { Annotation, type FunctionCall, type RateLimitWords } from './annotation.ts'
import { DianaError } from './errors.ts'
import type { Limiter } from './limiter.ts'
import type { Verdict } from './verdict.ts'

/** A call of a limited function that its rules refuse, with their verdict; its code is LIMITED. */
export class LimitedError extends DianaError {
  readonly verdict: Verdict

  constructor(verdict: Verdict) {
    const after = Number.isFinite(verdict.retryAfterMs) ? `in ${Math.ceil(verdict.retryAfterMs)} ms` : 'later'
    super('LIMITED', `rule "${verdict.rule}" refuses this call (${verdict.reason}): try again ${after}`)
    this.verdict = verdict
  }
}

type AnyFunction = (this: unknown, ...args: never[]) => unknown

/**
 * The same function within limits; of several, all must hold. A refused call throws a LimitedError, or gives the fallback.
 * The result is a promise where it has to wait, or is counted for the fleet; else it is what the function returns.
 */
export function rateLimited<Args extends unknown[], Result>(
  work: (...args: Args) => Result,
  words: RateLimitWords<Args> | readonly RateLimitWords<Args>[],
): (...args: Args) => Result | Promise<Awaited<Result>> {
  const all = (Array.isArray(words) ? words : [words]) as readonly RateLimitWords[]
  const annotations = all.map(one => new Annotation(one))
  const limited: unknown = limit(work as unknown as AnyFunction, annotations, () => work.name)
  return limited as typeof work
}

/** Puts annotations on a function, judged together; `nameOf` names it, given what it is called on. */
export function limit(
  work: AnyFunction,
  annotations: readonly Annotation[],
  nameOf: (self: unknown, limited: AnyFunction) => string,
): AnyFunction {
  const limited = function (this: unknown, ...args: never[]): unknown {
    const limiter = limiterOf(annotations)
    const ids = annotations.map(annotation => annotation.idIn(limiter, () => nameOf(this, limited)))
    const proceed = (verdict: Verdict): unknown => {
      if (verdict.allowed) return run(work, this, args, verdict)
      const { words, hasFallback } = annotations[ids.indexOf(verdict.rule ?? '')] ?? annotations[0]!
      if (!hasFallback) throw new LimitedError(verdict)
      return typeof words.fallback === 'function' ? words.fallback.apply(this, args) : words.fallback
    }
    const verdict = judge(limiter, callOf(ids[0]!, this, args, annotations), ids)
    // Diana never breaks what she guards: a limiter that was closed refuses nobody
    if (verdict === undefined) return work.apply(this, args)
    return verdict instanceof Promise ? verdict.then(proceed) : proceed(verdict)
  }
  Object.defineProperty(limited, 'name', { value: work.name, configurable: true })
  Object.defineProperty(limited, 'length', { value: work.length, configurable: true })
  return limited
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

/** All are judged at once, so that a call that one refuses is charged by none; that takes one limiter. */
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
