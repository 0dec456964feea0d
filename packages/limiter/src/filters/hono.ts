import type { Context, MiddlewareHandler } from 'hono'
import type { Limiter } from '../limiter.ts'
import { admit } from './admit.ts'
import type { FilterOptions } from './filter.ts'
import { honoFramework, isFollowed, outlive } from './hono-framework.ts'

export interface HonoFilterOptions extends FilterOptions<Context> {
  /** The address at the other end of the connection, where Hono runs on something else than Node, Bun or Deno. */
  readonly peer?: ((context: Context) => string | undefined) | undefined
}

/** Judges every request to a Hono application: `app.use(diana(limiter))`, before anything else. */
export function diana(limiter: Limiter, options: HonoFilterOptions = {}): MiddlewareHandler {
  const framework = options.peer === undefined ? honoFramework : { ...honoFramework, peer: options.peer }
  const filter = { limiter, framework, options }
  const goOn = (context: Context, next: () => Promise<void>): ReturnType<MiddlewareHandler> => {
    return isFollowed(context) ? outlive(context, next()) : next()
  }
  return (context, next) => {
    const passes = admit(filter, context, context)
    if (passes === true) return goOn(context, next)
    // a middleware that is alone on a path must return what it answers
    if (passes === false) return Promise.resolve(context.res)
    return passes.then(passed => (passed ? goOn(context, next) : context.res))
  }
}
