import { DianaError } from '../errors.ts'
import type { Limiter } from '../limiter.ts'
import { assertStore } from './given-store.ts'
import type { LimiterOptions } from './limiter-options.ts'

export { assertStore } from './given-store.ts'
export type { LimiterOptions } from './limiter-options.ts'

/** Long enough to join a store that answers, so that the first calls are counted there. */
const BRIEF_WAIT_MS = 250

/** Makes a limiter from a rule file or from rules in code; throws a DianaError that lists every mistake in them. */
export async function createLimiter(options: LimiterOptions): Promise<Limiter> {
  assertOptionsGiven(options)
  // a program that imports the package and creates no limiter loads neither the engine nor the schemas
  const { startLimiter } = await import('./start-limiter.ts')
  return startLimiter(options)
}

/**
 * As `createLimiter`, without the wait for a store that does not answer at once: until it does, this process counts by itself.
 */
export async function beginLimiter(options: LimiterOptions): Promise<Limiter> {
  assertOptionsGiven(options)
  const { startLimiter } = await import('./start-limiter.ts')
  return startLimiter(options, { storeWaitMs: BRIEF_WAIT_MS })
}

function assertOptionsGiven(options: unknown): void {
  const fault = (message: string): DianaError => new DianaError('BAD_RULES', message)
  if (typeof options === 'string') {
    throw fault(`createLimiter takes options: write createLimiter({ config: ${JSON.stringify(options)} })`)
  }
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw fault(
      "createLimiter takes options: write createLimiter({ config: 'diana.yaml' }) or createLimiter({ rules })",
    )
  }
  assertStore((options as LimiterOptions).store)
}
