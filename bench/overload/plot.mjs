// Lines over time as SVG: answers in time per second of every run, and the limit that the adaptive one has found.
import { drawing, escaped } from '../../scripts/drawing.mjs'

const [WIDTH, HEIGHT, LEFT, TOP] = [860, 220, 60, 30]
const colors = ['gray', 'orange', 'purple', 'blue', 'teal']

const line = (points, color) =>
  `<polyline class="${color}-line" points="${points.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(' ')}"/>`

function panel(title, y, most, seconds, series) {
  const xOf = ms => LEFT + (ms / (seconds * 1000)) * (WIDTH - LEFT - 20)
  const yOf = value => y + TOP + (HEIGHT - TOP - 30) * (1 - Math.min(1, value / most))
  const parts = [`<text class="title" x="${LEFT}" y="${y + 18}">${title}</text>`]
  for (const value of [0, most / 2, most]) {
    parts.push(`<line class="grid" x1="${LEFT}" x2="${WIDTH - 20}" y1="${yOf(value)}" y2="${yOf(value)}"/>`)
    parts.push(`<text x="${LEFT - 8}" y="${yOf(value) + 4}" class="muted" text-anchor="end">${value}</text>`)
  }
  for (const { points, color } of series)
    parts.push(
      line(
        points.map(([ms, value]) => [xOf(ms), yOf(value)]),
        color,
      ),
    )
  for (let second = 0; second <= seconds; second += 2)
    parts.push(
      `<text x="${xOf(second * 1000)}" y="${y + HEIGHT - 8}" class="muted" text-anchor="middle">${second} s</text>`,
    )
  return parts.join('\n')
}

export function drawRuns(runs, seconds, capacity) {
  const goodput = runs.map(({ calls }, i) => {
    const counts = new Array(seconds).fill(0)
    for (const [at, ms, status] of calls)
      if (status === 200 && at + ms < seconds * 1000) counts[Math.floor((at + ms) / 1000)]++
    return { color: colors[i], points: counts.map((count, second) => [second * 1000 + 500, count]) }
  })
  const latency = runs.map(({ calls }, i) => {
    const times = Array.from({ length: seconds }, () => [])
    for (const [at, ms, status] of calls)
      if (status === 200 && at < seconds * 1000) times[Math.floor(at / 1000)].push(ms)
    const points = times.map((list, second) => [
      second * 1000 + 500,
      list.sort((a, b) => a - b)[Math.floor(list.length * 0.99)] ?? 1000,
    ])
    return { color: colors[i], points }
  })
  const limits = runs.flatMap(({ limits }, i) => (limits.length > 0 ? [{ color: colors[i], points: limits }] : []))
  return drawing({
    width: WIDTH,
    height: 3 * HEIGHT + 36,
    title: 'Answers, latency and limit of a service at three times its capacity',
    fontSize: 12,
    parts: [
      panel('answers within a second, per second', 0, capacity * 1.25, seconds, goodput),
      panel('99th percentile of their time, ms', HEIGHT, 1000, seconds, latency),
      panel('limit found', 2 * HEIGHT, 60, seconds, limits),
      ...runs.map(({ kind }, i) => legendEntry(kind, i)),
    ],
  })
}

function legendEntry(kind, i) {
  const [x, y] = [LEFT + i * 155, 3 * HEIGHT + 20]
  return `<rect class="${colors[i]}" x="${x}" y="${y - 10}" width="10" height="10"/><text x="${x + 15}" y="${y}">${escaped(kind)}</text>`
}
