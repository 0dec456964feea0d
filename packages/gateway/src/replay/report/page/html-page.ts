import type { CallerReport, Report, RuleReport } from '../report.ts'
import { rangeOf } from '../terminal.ts'
import { curvePlot, escapeHtml, peaksPlot, timelinePlot } from './plots.ts'

const number = new Intl.NumberFormat('en')

/** Returns a report as one page: no scripts, nothing from the network. */
export function htmlPage(report: Report): string {
  const { log } = report
  const files = log.files.map(({ name, format, lines, bad }) => {
    return `${escapeHtml(name)} (${escapeHtml(format)}, ${number.format(lines)} lines${bad > 0 ? `, ${number.format(bad)} unreadable` : ''})`
  })
  const from =
    log.from === undefined ? 'no calls' : `${number.format(report.calls)} calls from ${log.from} to ${log.to}`
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>Diana replay</title><style>${style}</style></head>
<body><header><h1>What these rules would have done</h1>
<p>${from}.<br>Refused in all: <strong>${rangeOf(report.refused)}</strong>.</p>
<p class="quiet">${files.join('<br>')}</p></header>
<main>
<section><h2>All calls</h2>${legend}${timelinePlot(report.timeline, 'Calls and refusals of all rules over time')}${table(report)}${unjudged(report)}</section>
${report.rules.map(ruleSection).join('\n')}
${against(report)}
<section><h2>How to read this</h2><ul>${log.notes.map(note => `<li>${escapeHtml(note)}</li>`).join('')}</ul></section>
</main></body></html>
`
}

const legend =
  '<p class="legend"><span><i class="key-calls"></i>calls</span><span><i class="key-most"></i>refused at the most</span><span><i class="key-least"></i>refused at the least</span></p>'

function table({ rules }: Report): string {
  const rows = rules.map(({ id, text, calls, refused, callers, worstMinute, enforced }) => {
    const worst = worstMinute ? `${worstMinute.at.slice(0, 16).replace('T', ' ')} (${rangeOf(worstMinute)})` : ''
    const cells = [
      `${id}${enforced ? '' : ' (shadow)'}`,
      text,
      number.format(calls),
      rangeOf(refused),
      `${rangeOf(callers.hit)} of ${number.format(callers.count)}`,
      worst,
    ]
    return `<tr>${cells.map(cell => `<td>${escapeHtml(cell)}</td>`).join('')}</tr>`
  })
  const heads = ['rule', 'limit', 'calls', 'refused', 'callers hit', 'worst minute']
  return `<div class="scroll" tabindex="0" role="region" aria-label="Rules"><table><caption>Rules</caption><thead><tr>${heads.map(one => `<th scope="col">${one}</th>`).join('')}</tr></thead><tbody>${rows.join('')}</tbody></table></div>`
}

function unjudged({ unjudged: rules }: Report): string {
  if (rules.length === 0) return ''
  const items = rules.map(({ id, missing, remedy }) => {
    return `<li>${escapeHtml(id)}: the log has no ${escapeHtml(missing.join(', '))}; ${escapeHtml(remedy)}</li>`
  })
  return `<h3>Rules that could not be judged</h3><ul>${items.join('')}</ul>`
}

function ruleSection(rule: RuleReport): string {
  const { id, text, calls, refused } = rule
  return `<section><h2>Rule ${escapeHtml(id)}</h2>
<p>${escapeHtml(text)}: ${number.format(calls)} calls, ${rangeOf(refused)} refused.</p>
${rulePlots(rule)}
${callersList(rule)}</section>`
}

/** Returns the plots of one rule, each with its heading. */
export function rulePlots(rule: RuleReport): string {
  const parts = [
    `<h3>Refused over time</h3>${legend}${timelinePlot(rule.timeline, `Calls and refusals of rule ${rule.id} over time`)}`,
  ]
  if (rule.peaks.length > 0 && rule.periodMs > 0) {
    parts.push(
      `<h3>Peaks of callers against the limit</h3>${peaksPlot(rule, `How many callers of rule ${rule.id} had which peak`)}`,
    )
    parts.push(
      `<h3>Limit, and the share that it refuses</h3><p class="legend"><span><i class="key-least"></i>of calls</span><span><i class="key-most"></i>of callers</span></p>${curvePlot(rule, `Share of calls and callers that limits of rule ${rule.id} refuse`)}`,
    )
  }
  return parts.join('\n')
}

function callersList({ top }: RuleReport): string {
  if (top.length === 0) return ''
  return `<h3>Callers refused most</h3>${top.map(callerDetails).join('')}`
}

/** Returns one caller, with their calls over time when it is opened. */
function callerDetails({ caller, calls, refused, peak, timeline }: CallerReport): string {
  const line = `${escapeHtml(caller)}: ${number.format(calls)} calls, ${rangeOf(refused)} refused, peak ${number.format(peak)}`
  const plot = timeline
    ? timelinePlot(timeline, `Calls and refusals of ${caller} over time`)
    : '<p class="quiet">No timeline was kept.</p>'
  return `<details><summary>${line}</summary>${plot}</details>`
}

function against({ against: old, refused, rules }: Report): string {
  if (old === undefined) return ''
  const before = new Map(old.rules.map(rule => [rule.id, rule]))
  const ids = [...new Set([...rules.map(({ id }) => id), ...before.keys()])]
  const rows = ids.map(id => {
    const now = rules.find(rule => rule.id === id)
    return [id, before.has(id) ? rangeOf(before.get(id)!.refused) : 'new', now ? rangeOf(now.refused) : 'removed']
  })
  rows.push(['all', rangeOf(old.refused), rangeOf(refused)])
  const body = rows.map(row => `<tr>${row.map(cell => `<td>${escapeHtml(cell)}</td>`).join('')}</tr>`).join('')
  return `<section><h2>Against the old rules</h2><div class="scroll" tabindex="0" role="region" aria-label="Difference"><table><caption>Refused by the old rules and by these</caption><thead><tr><th scope="col">rule</th><th scope="col">old</th><th scope="col">new</th></tr></thead><tbody>${body}</tbody></table></div></section>`
}

/** The look of the page: light and dark, from a phone to a wide screen. */
const style = `
:root { color-scheme: light dark; --ground: #fff; --text: #1b1f24; --quiet: #57606a; --line: #d0d7de; --calls: #a9c6e8; --most: #e8a33d; --least: #b3261e; --limit: #1b1f24; }
@media (prefers-color-scheme: dark) { :root { --ground: #12161b; --text: #e6edf3; --quiet: #9aa6b2; --line: #38424d; --calls: #35577d; --most: #d98e25; --least: #ff8a80; --limit: #e6edf3; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 60rem; padding: 1rem; font: 1rem/1.5 system-ui, sans-serif; background: var(--ground); color: var(--text); }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2.5rem; border-top: 1px solid var(--line); padding-top: 1rem; } h3 { font-size: 1rem; margin-bottom: 0.25rem; }
p.quiet, li, caption { color: var(--quiet); } caption { text-align: left; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: 0.3rem 0.75rem 0.3rem 0; border-bottom: 1px solid var(--line); white-space: nowrap; }
.plot { display: block; width: 100%; height: auto; } .plot-text { fill: var(--quiet); font-size: 11px; } .plot-axis { fill: none; stroke: var(--line); }
.plot-calls { fill: var(--calls); } .plot-most { fill: var(--most); } .plot-least { fill: var(--least); } .plot-limit { stroke: var(--limit); stroke-dasharray: 4 3; }
.plot-line-calls { fill: none; stroke: var(--least); stroke-width: 2; } .plot-line-callers { fill: none; stroke: var(--most); stroke-width: 2; } .plot-dot { fill: var(--least); }
.legend span { display: inline-block; margin-right: 1rem; color: var(--quiet); } .legend i { display: inline-block; width: 0.8em; height: 0.8em; margin-right: 0.35em; }
.key-calls { background: var(--calls); } .key-most { background: var(--most); } .key-least { background: var(--least); }
summary { cursor: pointer; padding: 0.35rem 0; overflow-wrap: anywhere; }
`
