import type { Limit, Terms } from '../algorithms/algorithm.ts'
import type { Call } from '../call.ts'
import { type KeyInput, readerOf } from '../dimensions/key.ts'
import type { Plans, Rule } from './rule.ts'

/** The limits that callers of one rule can have. */
export interface CompiledPlans<CompiledRule> {
  /** The value of the dimension that names the plan; undefined if plans do not depend on the call. */
  readonly read: ((call: Call) => string | undefined) | undefined
  /** The rule with the limit of each value. */
  readonly values: ReadonlyMap<string, CompiledRule>
  readonly from: Plans['from']
  readonly overrides: boolean
  /**
   * Makes the rule with a limit from outside, and options of its own; throws an InvalidLimitError if its algorithm cannot count that.
   */
  withLimit(limit: Limit, label: string, own?: Terms['options']): CompiledRule
}

/** Compiles the limits of a rule; `compile` makes the same rule with another limit. */
export function compilePlans<CompiledRule>(
  { plans, limits, options }: Rule,
  lookup: KeyInput,
  compile: (terms: Terms, label: string) => CompiledRule,
): CompiledPlans<CompiledRule> | undefined {
  if (plans === undefined) return undefined
  const { by, values, from, overrides } = plans
  const compiled = Object.entries(values).map(
    ([name, terms]) =>
      [name, compile({ ...terms, options: { ...options, ...terms.options } }, `plan ${name}`)] as const,
  )
  // a burst that the rule states is that of its default, not of limits of any size
  const { burst: _, ...others } = options
  const isRate = limits[0]!.periodMs > 0
  return {
    read: by === undefined ? undefined : readerOf(by, lookup),
    values: new Map(compiled),
    from,
    overrides,
    withLimit(limit, label, own) {
      if (limit.periodMs > 0 !== isRate)
        throw new Error(isRate ? 'has no period' : 'is a rate, and the rule takes a count')
      return compile({ limit, options: own === undefined ? others : { ...others, ...own } }, label)
    },
  }
}
