import { availableParallelism, cpus } from 'node:os'

export const percent = share => `${(share * 100).toFixed(1)} %`

const columns = [
  ['case', 4, ({ number }) => number],
  ['algorithm', -40, ({ kind }) => kind],
  ['limit', -9, ({ limit }) => limit.text],
  ['processes', 9, ({ processes }) => processes],
  ['load', 4, ({ load }) => load],
  ['spread', -6, ({ spread }) => spread],
  ['offered', 7, ({ offered }) => offered],
  ['admitted', 8, ({ admitted }) => admitted],
  ['over', 4, ({ over }) => over],
  ['of limit', 8, ({ ofLimit }) => percent(ofLimit)],
  ['used', 8, ({ used }) => percent(used)],
]

const pad = (text, width) => (width < 0 ? `${text}`.padEnd(-width) : `${text}`.padStart(width))

export function headLine() {
  return columns.map(([name, width]) => pad(name, width)).join('  ')
}

export function rowLine(result) {
  const line = columns.map(([, width, read]) => pad(read(result), width)).join('  ')
  return [line, ...notesOf(result)].join('  ')
}

/** The same in Markdown, with what there is to say about single cases below. */
export function markdownTable(results) {
  const row = cells => `| ${cells.join(' | ')} |`
  const head = row(columns.map(([name]) => name))
  const line = row(columns.map(([, width]) => (width < 0 ? '---' : '--:')))
  const rows = results.map(result => row(columns.map(([, , read]) => read(result))))
  const notes = results.flatMap(result => notesOf(result).map(note => `\nCase ${result.number}: ${note}`))
  return [head, line, ...rows, ...notes].join('\n')
}

function notesOf({ faults, tried }) {
  return [...faults.map(fault => `MISSED: ${fault}`), ...(tried > 1 ? [`tried ${tried} times`] : [])]
}

/** What all cases show together. */
export function summaryOf(results, { seconds, redis }) {
  const loaded = results.filter(({ load }) => load >= 1)
  const missed = results.filter(({ faults }) => faults.length > 0)
  const over = results.reduce((sum, one) => sum + one.over, 0)
  const least = Math.min(...loaded.map(({ used }) => used))
  const full = loaded.filter(({ ofLimit }) => ofLimit >= 0.98).length
  return [
    `${results.length} cases in ${seconds.toFixed(0)} s: ${over} calls over a limit, at least ${percent(least)} used, ${missed.length} missed.`,
    `Of ${loaded.length} cases with more load than the limit, ${full} used at least 98 % of the limit itself.`,
    ...spreadLine(
      'The time at which Redis decided a call is known to within',
      'ms',
      results.flatMap(one => one.widthUs),
    ),
    ...spreadLine(
      'Calls that waited passed',
      'ms after their scheduled time',
      results.flatMap(one => one.lateUs),
    ),
    machineLine(redis),
  ]
}

function spreadLine(what, unit, us) {
  if (us.length === 0) return []
  const sorted = Float64Array.from(us).sort()
  const at = share => (sorted[Math.floor(share * (sorted.length - 1))] / 1000).toFixed(2)
  return [`${what} ${at(0.5)} ${unit} (median; 99 %: ${at(0.99)} ms).`]
}

function machineLine(redis) {
  const version = /redis_version:(\S+)/.exec(redis)?.[1]
  return `${availableParallelism()} cores (${cpus()[0]?.model.trim() ?? process.arch}), Node ${process.versions.node}, Redis ${version}.`
}
