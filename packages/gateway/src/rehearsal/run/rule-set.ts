import type { RuleDocument } from 'diana-limiter'
import type { Extensions } from 'diana-limiter/gateway'
import type { Place, RuleNames } from '../cases/case-file.ts'

/** Rules that cases are run against. */
export interface RuleSet {
  readonly file: string
  readonly document: RuleDocument
  readonly extensions: Partial<Extensions>
  /** Returns the place of a rule in the file; undefined if it is not known. */
  placeOf(rule: string): Place | undefined
}

const ALWAYS = ['account', 'device', 'resource']

/** Returns the names that cases may use. */
export function namesOf({ identify, rules }: RuleDocument): RuleNames {
  const dimensions = new Set([...ALWAYS, ...Object.keys(identify)])
  for (const { by, plans, match } of rules) {
    for (const name of [...by, ...(plans?.by === undefined ? [] : [plans.by])]) dimensions.add(name)
    for (const name of Object.keys(match.attribute ?? {})) dimensions.add(name)
  }
  for (const name of ['ip', 'host', 'method']) dimensions.delete(name)
  return { rules: rules.map(({ id }) => id), dimensions: [...dimensions] }
}

/** True if any rule is counted in a store. */
export function countsInStore({ rules, store }: RuleDocument): boolean {
  return store !== undefined && rules.some(({ enabled, count }) => enabled && count === 'distributed')
}
