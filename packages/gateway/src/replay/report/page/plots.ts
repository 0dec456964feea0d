import type { RuleReport, TimelineReport } from '../report.ts'

/*
 * The plots of a report as SVG, without scripts: the page of `--html` and the dashboard show the same ones. Colors are classes, so that
 * each page gives them its own: plot-calls, plot-least, plot-most, plot-limit, plot-axis.
 */
const WIDTH = 640
const HEIGHT = 200
const LEFT = 48
const BOTTOM = 24
const TOP = 10
const RIGHT = 10

const number = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })

/** Calls over time, and how many of them were refused at the least and at the most. */
export function timelinePlot({ rows, binSeconds }: TimelineReport, title: string): string {
  const [first, last] = [rows[0]?.[0] ?? 0, (rows.at(-1)?.[0] ?? 0) + binSeconds]
  const highest = Math.max(1, ...rows.map(([, calls, , most]) => Math.max(calls, most)))
  const x = (at: number): number => LEFT + ((at - first) / Math.max(1, last - first)) * (WIDTH - LEFT - RIGHT)
  const y = scale(highest)
  const bar = (at: number, value: number, kind: string, text: string): string => {
    if (value === 0) return ''
    const width = Math.max(0.6, x(at + binSeconds) - x(at) - 0.2)
    return `<rect class="${kind}" x="${round(x(at))}" y="${round(y(value))}" width="${round(width)}" height="${round(HEIGHT - BOTTOM - y(value))}"><title>${text}</title></rect>`
  }
  const bars = rows.map(([at, calls, least, most]) => {
    const text = `${timeOf(at)}: ${calls} calls, ${least === most ? most : `${least} to ${most}`} refused`
    return bar(at, calls, 'plot-calls', text) + bar(at, most, 'plot-most', text) + bar(at, least, 'plot-least', text)
  })
  return svg(
    title,
    bars.join('') + yAxis(highest, y) + xLabels([timeOf(first), timeOf((first + last) / 2), timeOf(last)]),
  )
}

/** Plots how many callers had which peak, beside the limit. */
export function peaksPlot({ peaks, limit }: Pick<RuleReport, 'peaks' | 'limit'>, title: string): string {
  const bins = binned(peaks)
  const highest = Math.max(1, ...bins.map(({ callers }) => callers))
  const y = scale(highest)
  const width = (WIDTH - LEFT - RIGHT) / Math.max(1, bins.length)
  const bars = bins.map(({ from, to, callers }, at) => {
    const kind = from > limit ? 'plot-most' : 'plot-calls'
    const text = `${callers} callers with a peak of ${from === to ? from : `${from} to ${to}`}`
    return `<rect class="${kind}" x="${round(LEFT + at * width)}" y="${round(y(callers))}" width="${round(Math.max(1, width - 1))}" height="${round(HEIGHT - BOTTOM - y(callers))}"><title>${text}</title></rect>`
  })
  const at = bins.findIndex(({ to }) => to >= limit)
  const line = at < 0 ? '' : verticalLine(LEFT + (at + 1) * width, `limit ${limit}`)
  const labels = [bins[0], bins[bins.length >> 1], bins.at(-1)].map(bin => (bin ? number.format(bin.to) : ''))
  return svg(title, bars.join('') + line + yAxis(highest, y) + xLabels(labels))
}

/** Returns the share of calls and of callers that would be refused by limits around the present one. */
export function curvePlot({ curve, limit }: Pick<RuleReport, 'curve' | 'limit'>, title: string): string {
  if (curve.length === 0) return ''
  const [least, most] = [Math.log(curve[0]![0]), Math.log(curve.at(-1)![0])]
  const x = (value: number): number =>
    LEFT + ((Math.log(Math.max(1, value)) - least) / Math.max(1e-9, most - least)) * (WIDTH - LEFT - RIGHT)
  const highest = Math.max(0.01, ...curve.map(([, calls, callers]) => Math.max(calls, callers)))
  const y = scale(highest)
  const path = (kind: string, of: (row: (typeof curve)[number]) => number): string => {
    return `<polyline class="${kind}" points="${curve.map(row => `${round(x(row[0]))},${round(y(of(row)))}`).join(' ')}"/>`
  }
  const dots = curve.map(([one, calls, callers]) => {
    const text = `limit ${one}: ${percent(calls)} of calls, ${percent(callers)} of callers`
    return `<circle class="plot-dot" cx="${round(x(one))}" cy="${round(y(calls))}" r="3"><title>${text}</title></circle>`
  })
  const lines = path('plot-line-calls', ([, calls]) => calls) + path('plot-line-callers', ([, , callers]) => callers)
  const labels = [curve[0]!, curve[curve.length >> 1]!, curve.at(-1)!].map(([one]) => number.format(one))
  return svg(
    title,
    lines + dots.join('') + verticalLine(x(limit), `limit ${limit}`) + yAxis(highest, y, percent) + xLabels(labels),
  )
}

/** Sorts peaks into at most forty bins, of equal width on a logarithmic scale if there are more peaks. */
function binned(peaks: RuleReport['peaks']): { from: number; to: number; callers: number }[] {
  if (peaks.length <= 40) return peaks.map(([peak, callers]) => ({ from: peak, to: peak, callers }))
  const highest = peaks.at(-1)![0]
  const bins: { from: number; to: number; callers: number }[] = []
  for (const [peak, callers] of peaks) {
    const at = Math.floor((Math.log(peak) / Math.log(highest + 1)) * 40)
    const bin = bins[at]
    if (bin === undefined) bins[at] = { from: peak, to: peak, callers }
    else {
      bin.to = peak
      bin.callers += callers
    }
  }
  return bins.filter(bin => bin !== undefined)
}

function scale(highest: number): (value: number) => number {
  return value => HEIGHT - BOTTOM - (value / highest) * (HEIGHT - BOTTOM - TOP)
}

function yAxis(highest: number, y: (value: number) => number, show: (value: number) => string = number.format): string {
  const marks = [0, highest / 2, highest].map(value => {
    return `<text class="plot-text" x="${LEFT - 6}" y="${round(y(value) + 4)}" text-anchor="end">${show(value)}</text>`
  })
  return `<path class="plot-axis" d="M${LEFT} ${TOP}V${HEIGHT - BOTTOM}H${WIDTH - RIGHT}"/>${marks.join('')}`
}

function xLabels([left, middle, right]: readonly string[]): string {
  const y = HEIGHT - 7
  const text = (x: number, anchor: string, label: string | undefined): string => {
    return `<text class="plot-text" x="${x}" y="${y}" text-anchor="${anchor}">${escapeHtml(label ?? '')}</text>`
  }
  return (
    text(LEFT, 'start', left) + text((LEFT + WIDTH - RIGHT) / 2, 'middle', middle) + text(WIDTH - RIGHT, 'end', right)
  )
}

function verticalLine(x: number, label: string): string {
  const anchor = x > WIDTH / 2 ? 'end' : 'start'
  const text = `<text class="plot-text" x="${round(x + (anchor === 'end' ? -4 : 4))}" y="${TOP + 10}" text-anchor="${anchor}">${escapeHtml(label)}</text>`
  return `<path class="plot-limit" d="M${round(x)} ${TOP}V${HEIGHT - BOTTOM}"/>${text}`
}

function svg(title: string, content: string): string {
  return `<svg class="plot" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${escapeHtml(title)}">${content}</svg>`
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}

function percent(share: number): string {
  return `${Number((share * 100).toPrecision(2))} %`
}

function timeOf(seconds: number): string {
  return new Date(seconds * 1000).toISOString().slice(5, 16).replace('T', ' ')
}

const signs: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

/** Returns a text from outside for use in HTML, between tags and in quoted attributes. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, sign => signs[sign]!)
}
