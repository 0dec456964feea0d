import { byCase, rounded } from './results.mjs'

const WIDTH = 860
const LABELS = 290
const BARS = 430
const ROW = 22
const TITLE = 34
const MARGIN = 14

// the page it stands in may be light or dark, and an image cannot ask it
const style = `
  text { font: 13px system-ui, -apple-system, 'Segoe UI', sans-serif; fill: #24292f }
  .case { font-weight: 600 }
  .value, .unit { fill: #57606a }
  .paper { fill: #ffffff }
  .diana { fill: #0b7a75 }
  .floor { fill: #afb8c1 }
  .peer { fill: #d4803a }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 }
    .value, .unit { fill: #9da7b3 }
    .paper { fill: #0d1117 }
    .diana { fill: #3fb8af }
    .floor { fill: #57606a }
    .peer { fill: #e39a5b }
  }`

const escaped = text => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')

const kindOf = (subject, ours) => {
  if (ours(subject)) return 'diana'
  return subject.startsWith('bare') ? 'floor' : 'peer'
}

/** Bars of a topic's cases as SVG; each case has a scale of its own, since only its own bars compare. */
export function drawChart({ topic, results, charted, allOurs = false }) {
  const ours = subject => allOurs || subject.startsWith('diana')
  const groups = byCase(results).filter(([name]) => charted.includes(name))
  const parts = []
  let y = MARGIN
  for (const [name, rows] of groups) {
    const most = Math.max(...rows.map(({ value }) => value))
    parts.push(
      `<text class="case" x="${MARGIN}" y="${y + 18}">${escaped(name)} <tspan class="unit">(${escaped(rows[0].unit)}, less is better)</tspan></text>`,
    )
    y += TITLE - 6
    for (const { subject, value } of rows) {
      const width = Math.max(1, (value / most) * BARS).toFixed(1)
      parts.push(
        `<text x="${LABELS - 8}" y="${y + 15}" text-anchor="end">${escaped(subject)}</text>`,
        `<rect class="${kindOf(subject, ours)}" x="${LABELS}" y="${y + 3}" width="${width}" height="${ROW - 6}" rx="2"/>`,
        `<text class="value" x="${LABELS + Number(width) + 8}" y="${y + 15}">${rounded(value)}</text>`,
      )
      y += ROW
    }
    y += MARGIN
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${y}" viewBox="0 0 ${WIDTH} ${y}" role="img">
<title>${escaped(topic)}: Diana compared with its peers</title>
<style>${style}
</style>
<rect class="paper" width="${WIDTH}" height="${y}"/>
${parts.join('\n')}
</svg>
`
}
