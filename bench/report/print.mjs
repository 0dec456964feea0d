import { byCase, rounded } from './results.mjs'

/** A topic's figures and marks, for a terminal. */
export function print({ results, marks }) {
  for (const [name, rows] of byCase(results)) {
    console.log(`\n${name} (${rows[0].unit})`)
    for (const { subject, value, spread, beside } of rows) {
      const range = `${rounded(spread[0])}–${rounded(spread[1])}`
      const others = Object.entries(beside).map(([column, figure]) => `${column} ${rounded(figure)}`)
      console.log(`  ${subject.padEnd(38)}${rounded(value).padStart(8)}   ${range.padEnd(14)}   ${others.join('   ')}`)
    }
  }
  console.log('\nmarks')
  for (const { met, case: name, ours, asked, reached } of marks) {
    console.log(`  ${met ? 'met   ' : 'MISSED'}  ${ours}: ${reached}, asked ${asked}   (${name})`)
  }
}
