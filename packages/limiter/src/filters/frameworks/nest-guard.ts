import type { CanActivate, ExecutionContext, Type } from '@nestjs/common'
import type { Refusal } from '../../answers/answer.ts'
import { assertLimiter } from '../../common/assert-limiter.ts'
import { warnOfEach } from '../../common/warn-once.ts'
import { leaveToGuard } from '../../decorators/wrap-function.ts'
import { engineOf } from '../../engine/engine-of.ts'
import type { Limiter } from '../../limiter.ts'
import { admit } from '../admit.ts'
import { assertOptions } from '../assert-options.ts'
import type { Filter, FilterOptions } from '../filter.ts'
import { AnnotatedRules } from './annotated-rules.ts'
import { frameworkUnder, type NestReply, type NestRequest, refusalOf } from './nest.ts'
import { skippedBy } from './nest-skip.ts'

/**
 * Decides the calls to a controller, by all rules that match and by those of `@RateLimit` on the controller or the handler.
 * A refusal is thrown as an HttpException, which Nest answers.
 */
export class DianaGuard implements CanActivate {
  readonly #limiter: Limiter
  readonly #options: FilterOptions<NestRequest, NestReply>
  readonly #more: OneLimitParts
  readonly #rules: AnnotatedRules
  readonly #filters = new WeakMap<object, WeakMap<object, Filter<NestRequest, NestReply>>>()

  constructor(limiter: Limiter, options: FilterOptions<NestRequest, NestReply> & OneLimitParts = {}) {
    assertLimiter(limiter, 'DianaGuard')
    if (typeof options !== 'object') assertOptions(options, 'DianaGuard')
    const { functions, passesPreflights, ...rest } = options
    assertOptions(rest, 'DianaGuard')
    this.#limiter = limiter
    this.#options = rest
    this.#more = { functions, passesPreflights }
    this.#rules = new AnnotatedRules(limiter)
  }

  canActivate(context: ExecutionContext): boolean | Promise<boolean> {
    // messages and sockets have no request to decide
    if (context.getType() !== 'http') return true
    const handler = context.getHandler() as () => unknown
    if (skippedBy(context.getClass(), handler) === 'all') {
      leaveToGuard(handler)
      return true
    }
    const http = context.switchToHttp()
    const request = http.getRequest<NestRequest>()
    const reply = http.getResponse<NestReply>()
    const passes = admit(this.#filterFor(context, request), request, reply)
    if (passes === true) return true
    return passes === false ? refuse(reply) : passes.then(passed => passed || refuse(reply))
  }

  /** Reads the decorators of a controller, and throws if one is invalid. */
  prepare(controller: Type): void {
    for (const name of Object.getOwnPropertyNames(controller.prototype)) {
      const handler: unknown = Object.getOwnPropertyDescriptor(controller.prototype, name)?.value
      if (typeof handler === 'function') this.#rules.of(controller, handler as () => unknown)
    }
  }

  /** Warns of ids that no rule has. */
  #known(ids: readonly string[]): readonly string[] {
    for (const id of ids) {
      if (!this.#limiter.rules.some(rule => rule.id === id)) warnOfEach('DIANA_NO_SUCH_RULE', `"${id}"`)
    }
    return ids
  }

  #filterFor(context: ExecutionContext, request: NestRequest): Filter<NestRequest, NestReply> {
    const controller = context.getClass()
    const handler = context.getHandler() as () => unknown
    let ofController = this.#filters.get(controller)
    if (ofController === undefined) {
      ofController = new WeakMap()
      this.#filters.set(controller, ofController)
    }
    let filter = ofController.get(handler)
    if (filter === undefined) {
      const rules = this.#rules.of(controller, handler)
      const skipped = skippedBy(controller, handler)
      filter = {
        limiter: this.#limiter,
        trust: engineOf(this.#limiter),
        framework: frameworkUnder(request),
        options: this.#options,
        rules,
        only: false,
        except: skipped instanceof Set ? this.#known([...skipped]) : undefined,
        ...this.#more,
        pending: undefined,
      }
      ofController.set(handler, filter)
    }
    return filter
  }
}

/** The parts that one limit has besides the options of a filter. */
type OneLimitParts = Pick<Filter<NestRequest, NestReply>, 'functions' | 'passesPreflights'>

async function refuse(reply: NestReply): Promise<boolean> {
  const refusal = refusalOf(reply)
  // the caller left while it waited
  if (refusal === undefined) return false
  const { HttpException } = await import('@nestjs/common')
  throw new HttpException(await bodyOf(refusal), refusal.status)
}

/** Returns the body for Nest, which sends objects as JSON and wraps text into one; any other body is sent as a file. */
export async function bodyOf({ headers, body }: Refusal): Promise<object> {
  const type = headers.find(([name]) => name === 'Content-Type')?.[1] ?? 'text/plain'
  if (/^application\/(?:[\w.-]+\+)?json\b/.test(type)) {
    const value: unknown = JSON.parse(body)
    if (typeof value === 'object' && value !== null) return value
  }
  const { StreamableFile } = await import('@nestjs/common')
  return new StreamableFile(Buffer.from(body), { type })
}
