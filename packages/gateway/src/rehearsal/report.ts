import type { Place } from '../cases/case-file.ts'
import type { CaseResult } from '../run/run-case.ts'

/** The results of cases, with the rule file that they were run against. */
export interface SetResult {
  readonly rules: string
  readonly cases: string
  readonly results: readonly CaseResult[]
}

export interface Totals {
  readonly cases: number
  readonly failed: number
  readonly calls: number
}

export function totalsOf(sets: readonly SetResult[]): Totals {
  const all = sets.flatMap(({ results }) => results)
  return {
    cases: all.length,
    failed: all.filter(({ failures }) => failures.length > 0).length,
    calls: all.reduce((sum, { calls }) => sum + calls, 0),
  }
}

export function placeInWords({ file, line, column }: Place): string {
  return `${file}:${line}:${column}`
}

/** Writes the lines of a failed case: what is wrong, where it is expected, and where the rule stands that decided. */
export function failureLines({ failures }: CaseResult): string[] {
  const lines: string[] = []
  for (const { place, message, rule } of failures) {
    lines.push(`${placeInWords(place)}: ${message}`)
    if (rule?.place !== undefined) lines.push(`${placeInWords(rule.place)}: rule "${rule.id}" decided this`)
  }
  return lines
}
