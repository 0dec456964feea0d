// Lines as SVG, readable on light and dark pages.
const WIDTH = 760
const HEIGHT = 300
const [LEFT, RIGHT, TOP, BOTTOM] = [64, 150, 40, 48]

const style = `
  text { font: 13px system-ui, -apple-system, 'Segoe UI', sans-serif; fill: #24292f }
  .title { font-weight: 600 }
  .paper { fill: #ffffff }
  .axis { stroke: #afb8c1; fill: none }
  .line { fill: none; stroke-width: 2 }
  .s0 { stroke: #0b7a75; fill: #0b7a75 } .s1 { stroke: #d4803a; fill: #d4803a } .s2 { stroke: #6e5aa8; fill: #6e5aa8 } .s3 { stroke: #57606a; fill: #57606a }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 }
    .paper { fill: #0d1117 }
    .axis { stroke: #57606a }
    .s0 { stroke: #3fb8af; fill: #3fb8af } .s1 { stroke: #e39a5b; fill: #e39a5b } .s2 { stroke: #a895e0; fill: #a895e0 } .s3 { stroke: #9da7b3; fill: #9da7b3 }
  }`

const escaped = text => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')

export function drawLines({ title, x, y, lines, ticksX }) {
  const points = lines.flatMap(line => line.points)
  const [minX, maxX] = [Math.min(...points.map(([at]) => at)), Math.max(...points.map(([at]) => at))]
  const maxY = Math.max(...points.map(([, value]) => value)) * 1.1
  const toX = at => LEFT + ((at - minX) / (maxX - minX || 1)) * (WIDTH - LEFT - RIGHT)
  const toY = value => HEIGHT - BOTTOM - (value / maxY) * (HEIGHT - TOP - BOTTOM)
  const ticks = ticksX ?? [...new Set(points.map(([at]) => at))].map(at => [at, String(at)])
  const parts = [
    `<text class="title" x="${LEFT}" y="22">${escaped(title)}</text>`,
    `<path class="axis" d="M${LEFT},${TOP}V${HEIGHT - BOTTOM}H${WIDTH - RIGHT}"/>`,
    ...ticks.map(
      ([at, text]) => `<text x="${toX(at)}" y="${HEIGHT - BOTTOM + 18}" text-anchor="middle">${text}</text>`,
    ),
    ...[0, 0.25, 0.5, 0.75, 1].map(part => {
      const value = (maxY / 1.1) * part
      return `<text x="${LEFT - 8}" y="${toY(value) + 4}" text-anchor="end">${value.toFixed(3)}</text>`
    }),
    `<text x="${(LEFT + WIDTH - RIGHT) / 2}" y="${HEIGHT - 8}" text-anchor="middle">${escaped(x)}</text>`,
    `<text x="14" y="${(TOP + HEIGHT - BOTTOM) / 2}" text-anchor="middle" transform="rotate(-90 14 ${(TOP + HEIGHT - BOTTOM) / 2})">${escaped(y)}</text>`,
  ]
  lines.forEach(({ name, points: own }, i) => {
    const path = own
      .map(([at, value], n) => `${n === 0 ? 'M' : 'L'}${toX(at).toFixed(1)},${toY(value).toFixed(1)}`)
      .join('')
    parts.push(`<path class="line s${i % 4}" style="fill:none" d="${path}"/>`)
    for (const [at, value] of own)
      parts.push(`<circle class="s${i % 4}" cx="${toX(at).toFixed(1)}" cy="${toY(value).toFixed(1)}" r="3"/>`)
    parts.push(`<rect class="s${i % 4}" x="${WIDTH - RIGHT + 14}" y="${TOP + i * 22}" width="12" height="12"/>`)
    parts.push(`<text x="${WIDTH - RIGHT + 32}" y="${TOP + i * 22 + 11}">${escaped(name)}</text>`)
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${HEIGHT}" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img">
<title>${escaped(title)}</title>
<style>${style}</style>
<rect class="paper" width="${WIDTH}" height="${HEIGHT}"/>
${parts.join('\n')}
</svg>
`
}
