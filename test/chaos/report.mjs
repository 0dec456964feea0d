import { readFileSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'

const heads = ['fault', 'calls', 'failed', 'p99.9', 'over', 'under', 'noticed', 'back', 'stalls', 'findings']
const BEGIN = '<!-- measured -->'
const END = '<!-- /measured -->'

const inMs = ms => (ms === undefined ? '–' : `${Math.round(ms)} ms`)

function cellsOf(result) {
  const { name, calls, failed, p999Ms, over, overRules, lost, under, noticeMs, recoverMs, missed, lagMs, tried } =
    result
  const { runs, runsOver } = result
  const found = [...missed, ...(tried > 1 ? [`try ${tried}`] : [])]
  return [
    name,
    String(calls),
    String(failed),
    inMs(p999Ms),
    [
      overRules.length === 0 ? String(over) : overRules.join(', '),
      ...(runs > 1 && runsOver > 0 ? [`in ${runsOver} of ${runs}`] : []),
      ...(lost > 0 ? [`(+ ${lost} lost)`] : []),
    ].join(' '),
    `${Math.round(under * 100)} %`,
    inMs(noticeMs),
    inMs(recoverMs),
    inMs(lagMs),
    found.join('; '),
  ]
}

export function rowLine(result) {
  const [name, ...cells] = cellsOf(result)
  return [name.padEnd(55), ...cells.map(cell => cell.padStart(9))].join('  ')
}

export function headLine() {
  const [name, ...cells] = heads
  return [name.padEnd(55), ...cells.map(cell => cell.padStart(9))].join('  ')
}

/** What became of all runs of each fault: the worst of each figure, and the least of the limit that was used. */
export function summaryLines(results) {
  const rows = results.map(({ name, runs, runsMissed, worstOver, failed, under, recoverMs }) => [
    name,
    String(runs),
    String(runsMissed),
    Object.entries(worstOver)
      .flatMap(([id, over]) => (over > 0 ? [`${id} ${over}`] : []))
      .join(', ') || '0',
    String(failed),
    `${Math.round((1 - under) * 100)} %`,
    inMs(recoverMs),
  ])
  const table = [['fault', 'runs', 'missed', 'worst over', 'failed', 'used', 'back'], ...rows]
  const widths = table[0].map((_, column) => Math.max(...table.map(row => row[column].length)))
  return table.map(row =>
    row
      .map((cell, column) => cell.padEnd(widths[column]))
      .join('  ')
      .trimEnd(),
  )
}

/** Puts what was measured into the page, between its two marks. */
export function writeTable(path, results) {
  const page = readFileSync(path, 'utf8')
  const rows = [
    heads.slice(0, -1),
    heads.slice(0, -1).map(() => '---'),
    ...results.map(result => cellsOf(result).slice(0, -1)),
  ]
  const table = rows.map(cells => `| ${cells.join(' | ')} |`).join('\n')
  const missed = results.filter(result => result.missed.length > 0)
  const marks =
    missed.length === 0
      ? 'Every row meets the marks.'
      : `Missed: ${missed.map(({ name, missed: found }) => `${name} (${found.join(', ')})`).join('; ')}.`
  const lag = Math.round(Math.max(...results.map(({ lagMs }) => lagMs)))
  const about = `Measured on ${cpus().length} cores (${cpus()[0].model.trim()}), Node ${process.version}; the processes themselves were late by up to ${lag} ms (p99.9). ${marks}`
  const [before, rest] = page.split(BEGIN)
  writeFileSync(path, `${before}${BEGIN}\n\n${table}\n\n${about}\n\n${END}${rest.split(END)[1]}`)
}
