import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Case } from '../cases/case-file.ts'
import type { RuleSet } from './rule-set.ts'
import { type CallObserver, type CaseResult, runCase } from './run-case.ts'

export interface SuiteOptions {
  readonly observer?: CallObserver | undefined
  /** Called with each result; the rest is left out if it returns false. */
  readonly onResult?: ((result: CaseResult) => boolean | undefined) | undefined
}

const CASES_OF_TURN = 20

/** Runs cases one after another against one set of rules. */
export async function runCases(
  rules: RuleSet,
  cases: readonly Case[],
  options: SuiteOptions = {},
): Promise<CaseResult[]> {
  const results: CaseResult[] = []
  for (const one of cases) {
    const result = await runCase(rules, one, options.observer)
    results.push(result)
    // what is closed is freed between two turns of the event loop
    if (results.length % CASES_OF_TURN === 0) await nextTurn()
    if (options.onResult?.(result) === false) break
  }
  return results
}
