import type { Call } from '../../call.ts'
import type { RateLimitOptions } from '../../decorators/annotation.ts'
import { rateLimitsOf } from '../../decorators/rate-limit.ts'
import { leaveToGuard } from '../../decorators/wrap-function.ts'
import type { Limiter } from '../../limiter.ts'
import { RequestCall } from '../request-call.ts'

type Controller = Parameters<typeof rateLimitsOf>[0]
type Handler = Extract<Parameters<typeof rateLimitsOf>[1], (...args: never[]) => unknown>

const onNoMethod: unique symbol = Symbol('the annotations of a class')

/** The rules that `@RateLimit` states on controllers, as a limiter knows them. `key` and `cost` are given the request. */
export class AnnotatedRules {
  readonly #limiter: Limiter
  readonly #ids = new Map<RateLimitOptions, string>()

  constructor(limiter: Limiter) {
    this.#limiter = limiter
  }

  /** Returns the ids of the rules of a handler: its own, or else those of its controller. They are added when they are first needed. */
  of(controller: Controller, handler: Handler): string[] {
    leaveToGuard(handler)
    return rateLimitsOf(controller, handler).map(words => this.#ids.get(words) ?? this.#add(words, controller, handler))
  }

  #add(words: RateLimitOptions, controller: Controller, handler: Handler): string {
    const isOfClass = rateLimitsOf(controller, onNoMethod).includes(words)
    const name = isOfClass ? controller.name : `${controller.name}.${handler.name}`
    const { id = this.#free(name), key, by, cost, limiter: _limiter, fallback: _fallback, ...rest } = words
    this.#limiter.addRule({
      match: 'none',
      ...rest,
      id,
      ...(key === undefined ? by !== undefined && { by } : { by: ofRequest(key) }),
      ...(cost !== undefined && { cost: typeof cost === 'function' ? ofRequest(cost) : cost }),
    })
    this.#ids.set(words, id)
    return id
  }

  /** Returns a name that no other rule has: a second `orders` is `orders-2`. */
  #free(name: string): string {
    const known = [...this.#ids.values()]
    let id = name
    for (let copy = 2; known.includes(id); copy++) id = `${name}-${copy}`
    return id
  }
}

function ofRequest<T>(tell: (...args: never[]) => T): (call: Call) => T {
  const ask = tell as unknown as (request: unknown) => T
  return call => ask(call instanceof RequestCall ? call.request : call)
}
