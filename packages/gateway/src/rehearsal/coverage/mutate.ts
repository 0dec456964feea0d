import { DianaError, InvalidLimitError } from 'diana-limiter'
import type { Case, Place } from '../cases/case-file.ts'
import type { RuleSet } from '../run/rule-set.ts'
import { runCase } from '../run/run-case.ts'
import { mutationsOf } from './mutations.ts'

export interface MutationResult {
  readonly rules: string
  /** The number of changes that were tried. */
  readonly changes: number
  readonly unnoticed: readonly { readonly rule: string; readonly place: Place | undefined; readonly what: string }[]
}

/** Runs the cases against rules with one change each, and lists the changes with which all cases still pass. */
export async function mutate(rules: RuleSet, cases: readonly Case[]): Promise<MutationResult> {
  const unnoticed: MutationResult['unnoticed'][number][] = []
  // a case that noticed a change notices the next one of the same rule, too
  let order = [...cases]
  let changes = 0
  for (const { rule, what, document } of mutationsOf(rules.document)) {
    let noticedBy: Case | undefined
    try {
      for (const one of order) {
        const { failures } = await runCase({ ...rules, document }, one)
        if (failures.length === 0) continue
        noticedBy = one
        break
      }
    } catch (error) {
      // such a rule could not be put in force
      if (error instanceof DianaError || error instanceof InvalidLimitError) continue
      throw error
    }
    changes++
    if (noticedBy === undefined) unnoticed.push({ rule, place: rules.placeOf(rule), what })
    else order = [noticedBy, ...order.filter(one => one !== noticedBy)]
  }
  return { rules: rules.file, changes, unnoticed }
}
