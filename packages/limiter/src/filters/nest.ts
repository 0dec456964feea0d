import type { CanActivate, DynamicModule, ExecutionContext } from '@nestjs/common'
import type { Limiter } from '../limiter.ts'
import { admit } from './admit.ts'
import type { Filter, FilterOptions } from './filter.ts'
import { frameworkUnder, type NestReply, type NestRequest, refusalOf } from './nest-framework.ts'

export type { FilterOptions } from './filter.ts'
export type { NestRequest } from './nest-framework.ts'

/**
 * Judges the calls that reach a controller, by all rules that match and by those that `@RateLimit` states on the controller
 * or the handler. What is refused is thrown as an HttpException, which Nest answers.
 */
export class DianaGuard implements CanActivate {
  readonly #limiter: Limiter
  readonly #options: FilterOptions<NestRequest>
  readonly #filters = new WeakMap<object, WeakMap<object, Filter<NestRequest, NestReply>>>()

  constructor(limiter: Limiter, options: FilterOptions<NestRequest> = {}) {
    this.#limiter = limiter
    this.#options = options
  }

  canActivate(context: ExecutionContext): boolean | Promise<boolean> {
    // messages and sockets have no request to judge
    if (context.getType() !== 'http') return true
    const http = context.switchToHttp()
    const request = http.getRequest<NestRequest>()
    const reply = http.getResponse<NestReply>()
    const passes = admit(this.#filterFor(context, request), request, reply)
    if (passes === true) return true
    return passes === false ? refuse(reply) : passes.then(passed => passed || refuse(reply))
  }

  #filterFor(context: ExecutionContext, request: NestRequest): Filter<NestRequest, NestReply> {
    const controller = context.getClass()
    const handler = context.getHandler()
    let ofController = this.#filters.get(controller)
    if (ofController === undefined) {
      ofController = new WeakMap()
      this.#filters.set(controller, ofController)
    }
    let filter = ofController.get(handler)
    if (filter === undefined) {
      const framework = frameworkUnder(request)
      filter = { limiter: this.#limiter, framework, options: this.#options, rules: [], only: false }
      ofController.set(handler, filter)
    }
    return filter
  }
}

/** Puts a guard of this limiter before all controllers of an application: `imports: [DianaModule.forRoot(limiter)]`. */
// biome-ignore lint/complexity/noStaticOnlyClass: Nest's modules are classes
export class DianaModule {
  static forRoot(limiter: Limiter, options: FilterOptions<NestRequest> = {}): DynamicModule {
    // what @nestjs/core exports as APP_GUARD
    return { module: DianaModule, providers: [{ provide: 'APP_GUARD', useValue: new DianaGuard(limiter, options) }] }
  }
}

async function refuse(reply: NestReply): Promise<boolean> {
  const refusal = refusalOf(reply)
  // the caller left while he waited
  if (refusal === undefined) return false
  const { HttpException } = await import('@nestjs/common')
  throw new HttpException(JSON.parse(refusal.body) as object, refusal.status)
}
