import type { CanActivate, DynamicModule, ExecutionContext, Type } from '@nestjs/common'
import type { ModulesContainer } from '@nestjs/core'
import type { Limiter } from '../limiter.ts'
import { admit } from './admit.ts'
import { AnnotatedRules } from './annotated-rules.ts'
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
  readonly #rules: AnnotatedRules
  readonly #filters = new WeakMap<object, WeakMap<object, Filter<NestRequest, NestReply>>>()

  constructor(limiter: Limiter, options: FilterOptions<NestRequest> = {}) {
    this.#limiter = limiter
    this.#options = options
    this.#rules = new AnnotatedRules(limiter)
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

  /** Reads the annotations of a controller, and throws where one cannot be obeyed. */
  prepare(controller: Type): void {
    for (const name of Object.getOwnPropertyNames(controller.prototype)) {
      const handler: unknown = Object.getOwnPropertyDescriptor(controller.prototype, name)?.value
      if (typeof handler === 'function') this.#rules.of(controller, handler as () => unknown)
    }
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
      filter = {
        limiter: this.#limiter,
        framework: frameworkUnder(request),
        options: this.#options,
        rules,
        only: false,
      }
      ofController.set(handler, filter)
    }
    return filter
  }
}

/**
 * Puts a guard before all controllers of an application: `imports: [DianaModule.forRoot(limiter)]`. Annotations that cannot
 * be obeyed are told when the application starts.
 */
// biome-ignore lint/complexity/noStaticOnlyClass: Nest's modules are classes
export class DianaModule {
  static async forRoot(limiter: Limiter, options: FilterOptions<NestRequest> = {}): Promise<DynamicModule> {
    const { APP_GUARD, ModulesContainer } = await import('@nestjs/core')
    const guard = new DianaGuard(limiter, options)
    const useFactory = (modules: ModulesContainer): DianaGuard => {
      for (const { controllers } of modules.values()) {
        for (const { metatype } of controllers.values()) guard.prepare(metatype as Type)
      }
      return guard
    }
    return { module: DianaModule, providers: [{ provide: APP_GUARD, useFactory, inject: [ModulesContainer] }] }
  }
}

async function refuse(reply: NestReply): Promise<boolean> {
  const refusal = refusalOf(reply)
  // the caller left while he waited
  if (refusal === undefined) return false
  const { HttpException } = await import('@nestjs/common')
  throw new HttpException(JSON.parse(refusal.body) as object, refusal.status)
}
