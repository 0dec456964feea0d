import type { Place } from './cases/case-file.ts'
import type { Coverage } from './coverage/coverage.ts'
import type { MutationResult } from './coverage/mutate.ts'
import type { CaseResult } from './run/run-case.ts'

/** The results of cases, with the rule file that they were run against. */
export interface SetResult {
  readonly rules: string
  readonly cases: string
  readonly results: readonly CaseResult[]
}

interface Totals {
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

function placeInWords({ file, line, column }: Place): string {
  return `${file}:${line}:${column}`
}

/** Writes the lines of a failed case: what is wrong, where it is expected, and where the rule stands that decided. */
function failureLines({ failures }: CaseResult): string[] {
  const lines: string[] = []
  for (const { place, message, rule } of failures) {
    lines.push(`${placeInWords(place)}: ${message}`)
    if (rule?.place !== undefined) lines.push(`${placeInWords(rule.place)}: rule "${rule.id}" decided this`)
  }
  return lines
}

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

/** Writes the XML that CI servers read as JUnit's. */
export function junitReport(sets: readonly SetResult[]): string[] {
  const { cases, failed } = totalsOf(sets)
  const lines = ['<?xml version="1.0" encoding="UTF-8"?>', `<testsuites tests="${cases}" failures="${failed}">`]
  for (const set of sets) {
    const own = totalsOf([set])
    lines.push(`  <testsuite name="${xml(set.cases)}" tests="${own.cases}" failures="${own.failed}">`)
    for (const result of set.results) {
      const { name, place } = result.case
      const head = `    <testcase name="${xml(name)}" classname="${xml(set.rules)}" file="${xml(place.file)}" line="${place.line}"`
      if (result.failures.length === 0) lines.push(`${head}/>`)
      else {
        const text = failureLines(result)
        lines.push(
          `${head}>`,
          `      <failure message="${xml(text[0]!)}">${xml(text.join('\n'))}</failure>`,
          '    </testcase>',
        )
      }
    }
    lines.push('  </testsuite>')
  }
  lines.push('</testsuites>')
  return lines
}

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

/** Writes text as XML; characters that XML cannot contain are left out. */
function xml(text: string): string {
  return text
    .replace(/[^\t\n\r\x20-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu, '')
    .replace(/[&<>"]/g, one => entities[one]!)
}

export function coverageLines(coverage: Coverage): string[] {
  const { branches, missed } = coverage.result()
  const reached = branches - missed.length
  const lines = [`coverage of ${coverage.rules}: ${reached} of ${branches} (${percentOf(reached, branches)} %)`]
  for (const { rule, place, what } of missed) {
    const subject = rule === '' ? '' : ` rule "${rule}":`
    lines.push(`  ${place === undefined ? coverage.rules : placeInWords(place)}:${subject} no case ${what}`)
  }
  return lines
}

export function mutationLines({ rules, changes, unnoticed }: MutationResult): string[] {
  const noticed = changes - unnoticed.length
  const lines = [`changes of ${rules}: ${noticed} of ${changes} are noticed (${percentOf(noticed, changes)} %)`]
  for (const { rule, place, what } of unnoticed) {
    lines.push(`  ${place === undefined ? rules : placeInWords(place)}: rule "${rule}": no case notices that ${what}`)
  }
  return lines
}

function percentOf(part: number, all: number): string {
  return all === 0 ? '100' : ((part / all) * 100).toFixed(1).replace(/\.0$/, '')
}
