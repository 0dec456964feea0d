// Lines as SVG.
import { drawing, escaped } from '../../scripts/drawing.mjs'

const WIDTH = 760
const HEIGHT = 300
const [LEFT, RIGHT, TOP, BOTTOM] = [64, 150, 40, 48]

const colors = ['teal', 'orange', 'purple', 'gray']

export function drawLines({ title, x, y, lines, ticksX }) {
  const points = lines.flatMap(line => line.points)
  const [minX, maxX] = [Math.min(...points.map(([at]) => at)), Math.max(...points.map(([at]) => at))]
  const maxY = Math.max(...points.map(([, value]) => value)) * 1.1
  const toX = at => LEFT + ((at - minX) / (maxX - minX || 1)) * (WIDTH - LEFT - RIGHT)
  const toY = value => HEIGHT - BOTTOM - (value / maxY) * (HEIGHT - TOP - BOTTOM)
  const ticks = ticksX ?? [...new Set(points.map(([at]) => at))].map(at => [at, String(at)])
  const parts = [
    `<text class="title" x="${LEFT}" y="22">${escaped(title)}</text>`,
    `<path class="grid" fill="none" d="M${LEFT},${TOP}V${HEIGHT - BOTTOM}H${WIDTH - RIGHT}"/>`,
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
    const color = colors[i % colors.length]
    const path = own
      .map(([at, value], n) => `${n === 0 ? 'M' : 'L'}${toX(at).toFixed(1)},${toY(value).toFixed(1)}`)
      .join('')
    parts.push(`<path class="${color}-line" d="${path}"/>`)
    for (const [at, value] of own)
      parts.push(`<circle class="${color}" cx="${toX(at).toFixed(1)}" cy="${toY(value).toFixed(1)}" r="3"/>`)
    parts.push(`<rect class="${color}" x="${WIDTH - RIGHT + 14}" y="${TOP + i * 22}" width="12" height="12"/>`)
    parts.push(`<text x="${WIDTH - RIGHT + 32}" y="${TOP + i * 22 + 11}">${escaped(name)}</text>`)
  })
  return drawing({ width: WIDTH, height: HEIGHT, title, parts })
}
