import type { Range, Report, RuleReport, RulesReport } from './report.ts'

const number = new Intl.NumberFormat('en')

/** Returns a report as lines for a terminal. */
export function terminalLines(report: Report): string[] {
  const { log } = report
  const lines = log.files.map(({ name, format, lines, bad, fault }) => {
    const trouble = bad === 0 ? '' : `, ${number.format(bad)} of them unreadable`
    return `${name}: ${format}, ${number.format(lines)} lines${trouble}${fault === undefined ? '' : `; ${fault}`}`
  })
  for (const { name, badLines } of log.files)
    for (const { line, text } of badLines) lines.push(`  ${name}:${line} unreadable: ${text}`)
  lines.push('')
  if (log.from === undefined) return [...lines, 'No calls to judge.', ...unjudgedLines(report)]
  lines.push(`${number.format(report.calls)} calls from ${short(log.from)} to ${short(log.to!)}`)
  lines.push(`refused in all: ${rangeOf(report.refused)}${shareOf(report.refused, report.calls)}`, '')
  lines.push(...table(report.rules), ...unjudgedLines(report))
  for (const rule of report.rules) lines.push(...callersOf(rule))
  if (report.against) lines.push('', 'against the old rules', ...differences(report, report.against))
  lines.push('', ...log.notes.map(note => `note: ${note}`))
  return lines
}

function table(rules: readonly RuleReport[]): string[] {
  const rows = rules.map(rule => {
    const { callers, refused, calls } = rule
    const hit = `${rangeOf(callers.hit)} of ${callers.isEstimate ? 'about ' : ''}${number.format(callers.count)}`
    const worst = rule.worstMinute ? `${short(rule.worstMinute.at)} (${rangeOf(rule.worstMinute)})` : ''
    return [
      `${rule.id}${rule.enforced ? '' : ' (shadow)'}`,
      rule.text,
      number.format(calls),
      `${rangeOf(refused)}${shareOf(refused, calls)}`,
      hit,
      worst,
    ]
  })
  return columns([['rule', 'limit', 'calls', 'refused', 'callers hit', 'worst minute'], ...rows])
}

function callersOf(rule: RuleReport): string[] {
  if (rule.top.length === 0) return []
  const rows = rule.top.slice(0, 5).map(({ caller, calls, refused, peak }) => {
    return [
      `  ${caller}`,
      `${number.format(calls)} calls`,
      `${rangeOf(refused)} refused`,
      `peak ${number.format(peak)}`,
    ]
  })
  return ['', `rule ${rule.id}: callers refused most`, ...columns(rows)]
}

function unjudgedLines({ unjudged }: RulesReport): string[] {
  return unjudged.map(
    ({ id, missing, remedy }) => `rule ${id} could not be judged: the log has no ${missing.join(', ')}; ${remedy}`,
  )
}

function differences(now: RulesReport, old: RulesReport): string[] {
  const before = new Map(old.rules.map(rule => [rule.id, rule]))
  const rows = now.rules.map(rule => {
    const was = before.get(rule.id)
    before.delete(rule.id)
    return [rule.id, was ? rangeOf(was.refused) : '(new rule)', '→', rangeOf(rule.refused)]
  })
  for (const [id, was] of before) rows.push([id, rangeOf(was.refused), '→', '(removed)'])
  return columns([...rows, ['all', rangeOf(old.refused), '→', rangeOf(now.refused)]])
}

function columns(rows: readonly (readonly string[])[]): string[] {
  const widths = rows[0]?.map((_cell, column) => Math.max(...rows.map(row => row[column]!.length))) ?? []
  return rows.map(row =>
    row
      .map((cell, column) => cell.padEnd(widths[column]!))
      .join('  ')
      .trimEnd(),
  )
}

export function rangeOf({ least, most }: Range): string {
  return least === most ? number.format(least) : `${number.format(least)} to ${number.format(most)}`
}

function shareOf({ least, most }: Range, calls: number): string {
  if (calls === 0 || most === 0) return ''
  const percent = (value: number): string => `${((100 * value) / calls).toFixed(value / calls < 0.01 ? 2 : 1)} %`
  return least === most ? ` (${percent(most)})` : ` (${percent(least)} to ${percent(most)})`
}

function short(iso: string): string {
  return iso.slice(0, 16).replace('T', ' ')
}
