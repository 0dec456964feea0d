// docs/benchmarks.md from what was measured.
import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { availableParallelism, cpus } from 'node:os'

const round = value => (value >= 100 ? value.toFixed(0) : value.toFixed(1))

function caseTable(name, rows) {
  const lines = rows.map(({ subject, value, spread, cpuNs }) => {
    const cpu = cpuNs === undefined ? '' : round(cpuNs)
    return `| ${subject} | ${round(value)} | ${round(spread[0])} – ${round(spread[1])} | ${cpu} |`
  })
  return [`### ${name}`, '', `| | ${rows[0].unit} | spread | CPU, ns |`, '|---|---:|---:|---:|', ...lines, ''].join(
    '\n',
  )
}

function markTable(marks) {
  const lines = marks.map(({ case: name, ours, asked, reached, met }) => {
    return `| ${met ? 'met' : '**missed**'} | ${ours} | ${reached} | ${asked} | ${name} |`
  })
  return ['| | what | reached | asked | in |', '|---|---|---|---|---|', ...lines, ''].join('\n')
}

export function writePage(measured, rounds) {
  const { dependencies } = JSON.parse(readFileSync(new URL('package.json', import.meta.url), 'utf8'))
  const require = createRequire(import.meta.url)
  const versions = Object.keys(dependencies).map(name => {
    const { version } = JSON.parse(readFileSync(require.resolve(`./node_modules/${name}/package.json`), 'utf8'))
    return `${name} ${version}`
  })
  const sections = measured.flatMap(({ topic, results, marks }) => [
    `## ${topic}`,
    '',
    ...[...new Set(results.map(result => result.case))].map(name => {
      return caseTable(
        name,
        results.filter(result => result.case === name),
      )
    }),
    markTable(marks),
  ])
  const page = `# What Diana costs

\`npm run bench\` measures it; this page is written by \`npm run bench -- --write\`. Every subject runs in a process of its own, so
that nothing one leaves behind helps or hurts another; rounds are interleaved (A B C, A B C, …), and the figures are medians
of ${rounds} rounds with their spread. Peers run with their recommended settings, doing the same work with the same or weaker
guarantees. Compare figures of one run only: they are ratios, not records.

Measured with Node ${process.version} on ${availableParallelism()} cores (${cpus()[0]?.model.trim()}); ${versions.join(', ')}.

${sections.join('\n')}`
  writeFileSync(new URL('../docs/benchmarks.md', import.meta.url), page)
}
