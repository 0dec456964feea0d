import { DianaError } from '../errors.ts'
import type { Limiter } from '../limiter.ts'
import type { RuleOptions } from '../rules/schema/options.ts'
import { assertStore } from './given-store.ts'
import type { LimiterOptions } from './limiter-options.ts'

export { assertStore } from './given-store.ts'
export type { LimiterOptions } from './limiter-options.ts'

/** Long enough to join a store that answers, so that the first calls are counted there. */
const BRIEF_WAIT_MS = 250

/** Rules that `typedRules` was given, with their ids. */
export type TypedRules<Id extends string> = readonly RuleOptions[] & { readonly [typed]?: Id }

declare const typed: unique symbol

/** Returns the same rules; TypeScript then knows their ids wherever the limiter takes one: `limiter.consume('login', ip)`. */
export function typedRules<const Id extends string>(
  rules: readonly (RuleOptions & { readonly id: Id })[],
): TypedRules<Id> {
  return rules
}

/** Makes a limiter whose rules have these ids alone. */
export function createLimiter<Id extends string>(
  options: Omit<LimiterOptions, 'rules'> & { readonly rules: TypedRules<Id> & { readonly [typed]?: Id } },
): Promise<Limiter<Id>>
/** Makes a limiter from a rule file or from rules in code; throws a DianaError that lists every mistake in them. */
export function createLimiter(options: LimiterOptions): Promise<Limiter>
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
