// docs/benchmarks.md and its charts, from what was measured. Topics that this run did not measure stay as they were.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { drawChart } from './chart.mjs'
import { byCase, rounded } from './results.mjs'
import { why } from './why.mjs'

const kept = new URL('../measured.json', import.meta.url)
const page = new URL('../../docs/benchmarks.md', import.meta.url)
const images = new URL('../../docs/images/', import.meta.url)

/** Keeps what was measured beside what earlier runs did, and writes the page from all of it. */
export function writePage(measured, order) {
  const before = existsSync(kept) ? JSON.parse(readFileSync(kept, 'utf8')) : []
  const all = order.flatMap(topic => [...measured, ...before].find(one => one.topic === topic) ?? [])
  writeFileSync(kept, `${JSON.stringify(all, undefined, 2)}\n`)
  mkdirSync(images, { recursive: true })
  for (const one of all) writeFileSync(new URL(`bench-${one.topic}.svg`, images), drawChart(one))
  writeFileSync(page, textOf(all))
}

function textOf(all) {
  const marks = all.flatMap(one => one.marks)
  const missed = marks.filter(({ met }) => !met).length
  return `# What Diana costs

\`npm run bench\` measures it; this page is written by \`npm run bench -- --write\`. Every subject runs in a process of its own, so
that subjects do not affect each other, and warms up before it is timed. Rounds are interleaved (A B C, A B C, …);
figures are medians of the number of rounds that a table names, with their spread, and less is better unless a column states otherwise.
Peers run with the settings that their own documentation recommends, doing the same work with the same or weaker guarantees.
Compare figures of one run only: they are ratios, not records.

Each topic ends with its targets; \`npm run bench -- --check\` exits with 1 if one is missed. Of ${marks.length}
targets, ${missed === 0 ? 'all are met' : `${marks.length - missed} are met and ${missed} missed`} on the machine named.

${all.map(sectionOf).join('\n')}`
}

function sectionOf({ topic, about, machine, results, marks }) {
  return `## ${topic}

${about}
![${topic}: Diana compared with its peers](images/bench-${topic}.svg)

${byCase(results)
  .map(([name, rows]) => caseTable(name, rows))
  .join('\n')}
${markTable(marks)}
${marks.some(({ met }) => !met) && why[topic] ? `${why[topic]}\n` : ''}${machineLine(machine)}
`
}

function caseTable(name, rows) {
  const columns = Object.keys(rows[0].beside)
  const lines = rows.map(({ subject, value, spread, beside }) => {
    const others = columns.map(column => rounded(beside[column]))
    return `| ${[subject, rounded(value), `${rounded(spread[0])} – ${rounded(spread[1])}`, ...others].join(' | ')} |`
  })
  const rounds = rows[0].rounds === 1 ? 'one round' : `${rows[0].rounds} rounds`
  const heading = `| ${[rounds, rows[0].unit, 'spread', ...columns].join(' | ')} |`
  return [`### ${name}`, '', heading, `|---|${'---:|'.repeat(2 + columns.length)}`, ...lines, ''].join('\n')
}

function markTable(marks) {
  const lines = marks.map(({ case: name, ours, asked, reached, met }) => {
    return `| ${met ? 'met' : '**missed**'} | ${ours} | ${reached} | ${asked} | ${name} |`
  })
  return ['| target | what | reached | asked | in |', '|---|---|---|---|---|', ...lines, ''].join('\n')
}

function machineLine({ node, platform, cpu, cores, memoryGiB, programs, peers }) {
  const beside = [...programs, ...peers].join(', ')
  const machine = `Measured with Node ${node} (${platform}) on ${cores} cores (${cpu}), ${memoryGiB} GiB`
  return beside === '' ? `${machine}.` : `${machine};\n${beside}.`
}
