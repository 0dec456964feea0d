// Lines over time as SVG: answers in time per second of every run, and the limit that the adaptive one has found.
const [WIDTH, HEIGHT, LEFT, TOP] = [860, 220, 60, 30]
const colors = ['#8c959f', '#d4803a', '#b08cd8', '#4c8dd8', '#0b7a75']

const line = (points, color) =>
  `<polyline fill="none" stroke="${color}" stroke-width="2" points="${points.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(' ')}"/>`

function panel(title, y, most, seconds, series) {
  const xOf = ms => LEFT + (ms / (seconds * 1000)) * (WIDTH - LEFT - 20)
  const yOf = value => y + TOP + (HEIGHT - TOP - 30) * (1 - Math.min(1, value / most))
  const parts = [`<text x="${LEFT}" y="${y + 18}" font-weight="600">${title}</text>`]
  for (const value of [0, most / 2, most]) {
    parts.push(`<line x1="${LEFT}" x2="${WIDTH - 20}" y1="${yOf(value)}" y2="${yOf(value)}" stroke="#d0d7de"/>`)
    parts.push(`<text x="${LEFT - 8}" y="${yOf(value) + 4}" text-anchor="end">${value}</text>`)
  }
  for (const { points, color } of series)
    parts.push(
      line(
        points.map(([ms, value]) => [xOf(ms), yOf(value)]),
        color,
      ),
    )
  for (let second = 0; second <= seconds; second += 2)
    parts.push(`<text x="${xOf(second * 1000)}" y="${y + HEIGHT - 8}" text-anchor="middle">${second} s</text>`)
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
  const legend = runs.map(
    ({ kind }, i) => `<text x="${LEFT + i * 155}" y="${3 * HEIGHT + 20}" fill="${colors[i]}">${kind}</text>`,
  )
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${3 * HEIGHT + 36}" font-family="system-ui, sans-serif" font-size="12">
<rect width="100%" height="100%" fill="#ffffff"/>
${panel('answers within a second, per second', 0, capacity * 1.25, seconds, goodput)}
${panel('99th percentile of their time, ms', HEIGHT, 1000, seconds, latency)}
${panel('limit found', 2 * HEIGHT, 60, seconds, limits)}
${legend.join('\n')}
</svg>
`
}
