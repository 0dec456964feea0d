import { failureLines, type SetResult, totalsOf } from './results.ts'

/** Writes the report for a person: the cases that failed, and one line for the others. */
export function terminalReport(sets: readonly SetResult[], seconds: number): string[] {
  const lines: string[] = []
  for (const { cases, rules, results } of sets) {
    const failed = results.filter(({ failures }) => failures.length > 0)
    const passed = results.length - failed.length
    lines.push(`${cases} on ${rules}: ${passed} passed${failed.length > 0 ? `, ${failed.length} failed` : ''}`)
    for (const result of failed) {
      lines.push('', `  FAILED  ${result.case.name}`)
      for (const line of failureLines(result)) lines.push(`    ${line}`)
    }
    if (failed.length > 0) lines.push('')
  }
  const { cases, failed, calls } = totalsOf(sets)
  const all = `${cases} ${cases === 1 ? 'case' : 'cases'}, ${calls} ${calls === 1 ? 'call' : 'calls'}`
  lines.push(`${failed === 0 ? 'ok' : 'failed'}: ${all}, ${failed} failed, ${seconds.toFixed(1)} s`)
  return lines
}
