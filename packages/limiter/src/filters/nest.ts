import type { DynamicModule, FactoryProvider, ModuleMetadata, Provider, Type } from '@nestjs/common'
import type { HttpAdapterHost as AdapterHost, ModulesContainer } from '@nestjs/core'
import { LimitedError } from '../answers/limited-error.ts'
import { assertLimiter } from '../common/assert-limiter.ts'
import { beginLimiter } from '../create/create-limiter.ts'
import { DianaError } from '../errors.ts'
import type { Limiter } from '../limiter.ts'
import type { FilterOptions } from './filter.ts'
import type { NestReply, NestRequest } from './frameworks/nest.ts'
import { DianaGuard } from './frameworks/nest-guard.ts'
import { LimitedFilter } from './frameworks/nest-limited.ts'
import { isOneLimit, type RateLimitOptions, sortOptions } from './one-line/options.ts'

export type { CustomAnswer } from '../answers/custom-answer.ts'
export type { FilterOptions } from './filter.ts'
export type { NestReply, NestRequest } from './frameworks/nest.ts'
export { DianaGuard } from './frameworks/nest-guard.ts'
export { SkipRateLimit } from './frameworks/nest-skip.ts'
export type { RateLimitOptions, RequestReader } from './one-line/options.ts'

/** The token that injects the limiter: `constructor(@Inject(DIANA_LIMITER) limiter: Limiter)`. */
export const DIANA_LIMITER: unique symbol = Symbol('DIANA_LIMITER')

/** The way in which the limiter of a module is made from other providers. */
export interface DianaModuleAsyncOptions extends Pick<ModuleMetadata, 'imports'> {
  readonly inject?: FactoryProvider['inject']
  readonly useFactory: (...args: never[]) => Limiter | Promise<Limiter>
  readonly options?: FilterOptions<NestRequest, NestReply> | undefined
}

/**
 * Puts a guard before all controllers of an application: `imports: [DianaModule.forRoot(limiter)]`. Annotations that cannot
 * be used are reported when the application starts. The limiter is closed when the application has closed.
 */
export class DianaModule {
  constructor() {
    if (new.target !== DianaModule) return
    const remedy = 'write imports: [DianaModule.forRoot(await createLimiter({ … }))]'
    throw new DianaError('BAD_CALL', `DianaModule was imported without a limiter: ${remedy}`)
  }

  /** Makes one limit for all controllers, without a limiter or a rule file: `DianaModule.forRoot({ limit: '100/m' })`. */
  static forRoot(options: RateLimitOptions<NestRequest, NestReply>): Promise<DynamicModule>
  static forRoot(
    limiter: Limiter | Promise<Limiter>,
    options?: FilterOptions<NestRequest, NestReply>,
  ): Promise<DynamicModule>
  static forRoot(
    given: Limiter | Promise<Limiter> | RateLimitOptions<NestRequest, NestReply>,
    options: FilterOptions<NestRequest, NestReply> = {},
  ): Promise<DynamicModule> {
    if (!isPlain(given) || !isOneLimit(given)) return withLimiter(given as Limiter | Promise<Limiter>, options)
    // not in the promise: a mistake in the options is thrown where they are given
    const { limiter, filter, ...parts } = sortOptions(given as RateLimitOptions<NestRequest, NestReply>, [])
    return withLimiter(beginLimiter(limiter), { ...filter, ...parts } as FilterOptions<NestRequest, NestReply>)
  }

  /** Makes the module with a limiter that is made from what other modules provide. */
  static async forRootAsync(options: DianaModuleAsyncOptions): Promise<DynamicModule> {
    const { imports, inject = [], useFactory, options: filterOptions = {} } = options ?? {}
    if (typeof useFactory !== 'function') {
      const example = 'useFactory: () => createLimiter({ … })'
      throw new DianaError('BAD_CALL', `DianaModule.forRootAsync needs a function that makes the limiter: ${example}`)
    }
    const create = async (...args: unknown[]): Promise<Limiter> => {
      const limiter = await (useFactory as (...args: unknown[]) => unknown)(...args)
      assertLimiter(limiter, 'useFactory')
      return limiter as Limiter
    }
    const made = await dynamicModule({ provide: DIANA_LIMITER, useFactory: create, inject }, filterOptions)
    return imports === undefined ? made : { ...made, imports }
  }
}

async function withLimiter(
  given: Limiter | Promise<Limiter>,
  options: FilterOptions<NestRequest, NestReply>,
): Promise<DynamicModule> {
  const limiter = await given
  assertLimiter(limiter, 'DianaModule.forRoot')
  return await dynamicModule({ provide: DIANA_LIMITER, useValue: limiter }, options)
}

function isPlain(given: unknown): boolean {
  return typeof given === 'object' && given !== null && !Array.isArray(given)
}

/** The module that is imported instead of DianaModule once there is a limiter. */
class MountedDianaModule extends DianaModule {}

async function dynamicModule(
  limiter: Provider,
  options: FilterOptions<NestRequest, NestReply>,
): Promise<DynamicModule> {
  const [{ APP_FILTER, APP_GUARD, HttpAdapterHost, ModulesContainer }, { Catch, Inject, Optional }] = await Promise.all(
    [import('@nestjs/core'), import('@nestjs/common')],
  )
  // so that @UseGuards(DianaGuard) finds the limiter too
  Inject(DIANA_LIMITER)(DianaGuard, undefined, 0)
  Optional()(DianaGuard, undefined, 1)
  Catch(LimitedError)(LimitedFilter)
  const guarding = (ready: Limiter, modules: ModulesContainer): DianaGuard => {
    const guard = new DianaGuard(ready, options)
    for (const { controllers } of modules.values()) {
      for (const { metatype } of controllers.values()) guard.prepare(metatype as Type)
    }
    return guard
  }
  // after the server has closed, so that the last calls are decided as well
  const closing = (ready: Limiter) => ({ onApplicationShutdown: () => ready.close() })
  return {
    module: MountedDianaModule,
    global: true,
    providers: [
      limiter,
      { provide: APP_FILTER, useFactory: (host: AdapterHost) => new LimitedFilter(host), inject: [HttpAdapterHost] },
      { provide: APP_GUARD, useFactory: guarding, inject: [DIANA_LIMITER, ModulesContainer] },
      { provide: MountedDianaModule.name, useFactory: closing, inject: [DIANA_LIMITER] },
    ],
    exports: [DIANA_LIMITER],
  }
}
