import { failureLines, type SetResult, totalsOf } from './results.ts'

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
