import { DianaError } from '../errors.ts'
import type { Engine } from './engine.ts'

/** Shared by all copies of the package, since an application may have several. */
export const ENGINE: symbol = Symbol.for('diana-limiter.engine')

/** Returns the engine of a limiter, also of one that another copy of the package has made; for filters, the admin API and the gateway. */
export function engineOf(limiter: object): Engine {
  const engine = (limiter as Record<symbol, Engine | undefined>)[ENGINE]
  if (engine) return engine
  throw new DianaError('BAD_CALL', 'this is not a limiter: make one with createLimiter()')
}
