import type { Request, RequestHandler } from 'express'
import type { Limiter } from '../limiter.ts'
import { admit } from './admit.ts'
import { expressFramework } from './express-framework.ts'
import type { FilterOptions } from './filter.ts'

export { verdictOf } from './admit.ts'

/** Judges every request to an Express application: `app.use(diana(limiter))`, before anything else. */
export function diana(limiter: Limiter, options: FilterOptions<Request> = {}): RequestHandler {
  const filter = { limiter, framework: expressFramework, options }
  return (request, response, next) => {
    const passes = admit(filter, request, response)
    if (passes === true) next()
    else if (passes !== false) passes.then(passed => passed && next(), next)
  }
}
