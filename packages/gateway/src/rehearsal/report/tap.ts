import { failureLines, placeInWords, type SetResult, totalsOf } from './results.ts'

/** Writes results in the Test Anything Protocol, version 14. */
export function tapReport(sets: readonly SetResult[]): string[] {
  const lines = ['TAP version 14', `1..${totalsOf(sets).cases}`]
  let number = 0
  for (const { results } of sets) {
    for (const result of results) {
      const isOk = result.failures.length === 0
      // a # begins a directive, and a backslash escapes
      const name = result.case.name.replace(/[\\#]/g, '\\$&').replace(/\s+/g, ' ')
      lines.push(`${isOk ? 'ok' : 'not ok'} ${++number} - ${name}`)
      if (isOk) continue
      lines.push('  ---', `  at: ${JSON.stringify(placeInWords(result.case.place))}`, '  message: |-')
      for (const line of failureLines(result)) lines.push(`    ${line}`)
      lines.push('  ...')
    }
  }
  return lines
}
