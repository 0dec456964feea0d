import { drawing, escaped } from '../../scripts/drawing.mjs'
import { byCase, rounded } from './results.mjs'

const WIDTH = 860
const LABELS = 345
const BARS = 400
const ROW = 22
const TITLE = 34
const MARGIN = 14

const colorOf = (subject, ours) => {
  if (ours(subject)) return 'teal'
  return subject.startsWith('bare') ? 'gray' : 'orange'
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
      `<text class="title" x="${MARGIN}" y="${y + 18}">${escaped(name)} <tspan class="muted">(${escaped(rows[0].unit)}, less is better)</tspan></text>`,
    )
    y += TITLE - 6
    for (const { subject, value } of rows) {
      const width = Math.max(1, (value / most) * BARS).toFixed(1)
      parts.push(
        `<text x="${LABELS - 8}" y="${y + 15}" text-anchor="end">${escaped(subject)}</text>`,
        `<rect class="${colorOf(subject, ours)}" x="${LABELS}" y="${y + 3}" width="${width}" height="${ROW - 6}" rx="2"/>`,
        `<text class="muted" x="${LABELS + Number(width) + 8}" y="${y + 15}">${rounded(value)}</text>`,
      )
      y += ROW
    }
    y += MARGIN
  }
  return drawing({ width: WIDTH, height: y, title: `${topic}: Diana compared with its peers`, parts })
}
