import type { Case } from '../cases/case-file.ts'
import type { RuleSet } from './rule-set.ts'
import { type CallObserver, type CaseResult, runCase } from './run-case.ts'

export interface SuiteOptions {
  readonly observer?: CallObserver | undefined
  /** Called with each result; the rest is left out if it returns false. */
  readonly onResult?: ((result: CaseResult) => boolean | undefined) | undefined
}

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
    if (options.onResult?.(result) === false) break
  }
  return results
}
