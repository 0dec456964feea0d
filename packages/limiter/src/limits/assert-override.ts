import { DianaError } from '../errors.ts'
import type { CompiledRule } from '../rules/compile.ts'
import { readLimit } from './limit-cache.ts'

/** The limit that an operator gives a caller. */
export interface OverrideOptions {
  /** Such as `5000/h`. */
  readonly limit: string
  /** Milliseconds since 1970; left out, it has no end. */
  readonly until?: number | undefined
  readonly setBy?: string | undefined
  readonly reason?: string | undefined
}

/** Throws if a rule cannot give a caller this limit. */
export function assertOverride({ id, plans }: CompiledRule, { limit, until }: OverrideOptions, nowMs: number): void {
  if (!plans?.overrides) {
    const remedy = 'write limit: { default: 100/h, overrides: true }'
    throw new DianaError('BAD_CALL', `rule "${id}" has no overrides: ${remedy}`)
  }
  if (until !== undefined && !(until > nowMs)) {
    throw new DianaError('BAD_CALL', 'until is past: give a moment to come, or leave it out')
  }
  try {
    const read = readLimit(limit)
    if (read === undefined) throw new Error('is missing: write one such as 5000/h')
    plans.withLimit(read.limit, 'override')
  } catch (error) {
    const trouble = error instanceof Error ? error.message.replace(/^has answered /, '') : String(error)
    throw new DianaError('BAD_CALL', `rule "${id}": limit ${trouble}`)
  }
}
