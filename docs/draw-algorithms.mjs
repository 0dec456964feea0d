#!/usr/bin/env node
// Draws docs/images/algorithms.svg: the same bursty traffic through every algorithm. Run `npm run build` first.
import { writeFileSync } from 'node:fs'
import { createLimiter } from '../packages/limiter/dist/index.js'
import { drawing } from '../scripts/drawing.mjs'

const SECONDS = 8
const BIN_MS = 100

/** Moments of calls, in milliseconds: two bursts around a second's edge, a quiet while, then twice the limit for long. */
function traffic() {
  const calls = []
  for (let i = 0; i < 12; i++) calls.push(950 + i * 4, 1000 + i * 4)
  for (let i = 0; i < 30; i++) calls.push(2300 + i)
  for (let at = 4000; at < 7000; at += 50) calls.push(at)
  return calls.toSorted((a, b) => a - b)
}

const rules = [
  { title: 'fixed-window', rule: { limit: '10/s', algorithm: 'fixed-window' } },
  { title: 'sliding-window (default)', rule: { limit: '10/s' } },
  { title: 'sliding-log', rule: { limit: '10/s', algorithm: 'sliding-log' } },
  { title: 'token-bucket, burst: 20', rule: { limit: '10/s', algorithm: 'token-bucket', burst: 20 } },
  { title: 'leaky-bucket, burst: 10', rule: { limit: '10/s', algorithm: 'leaky-bucket', burst: 10 } },
  {
    title: 'leaky-bucket, burst: 10, whenFull: wait',
    rule: { limit: '10/s', algorithm: 'leaky-bucket', burst: 10, whenFull: 'wait' },
  },
  { title: 'warm-up, warmUp: 2s', rule: { limit: '10/s', algorithm: 'warm-up', warmUp: '2s' } },
]

/** Calls per bin that passed at once, passed later, and were refused. */
async function run(rule) {
  let now = 0
  const bins = Array.from({ length: (SECONDS * 1000) / BIN_MS }, () => ({ passed: 0, held: 0, refused: 0 }))
  const limiter = await createLimiter({ rules: [{ id: 'plot', ...rule }], clock: () => now })
  for (const at of traffic()) {
    now = at
    const call = { method: 'GET', path: '/' }
    const { allowed, waitMs } = await limiter.peek(call)
    limiter.decide(call)
    const bin = bins[Math.floor((at + waitMs) / BIN_MS)]
    if (!allowed) bin.refused++
    else if (waitMs > 0) bin.held++
    else bin.passed++
  }
  await limiter.close()
  return bins
}

const WIDTH = 760
const PANEL = 92
const LEFT = 16
const BAR = (WIDTH - 2 * LEFT) / ((SECONDS * 1000) / BIN_MS)
const HEIGHT_OF_CALL = 1.8
const COLORS = { passed: 'green', held: 'blue', refused: 'red' }

function panel({ title, bins }, index) {
  const top = 34 + index * PANEL
  const floor = top + PANEL - 22
  const count = kind => bins.reduce((sum, bin) => sum + bin[kind], 0)
  const bars = bins.flatMap((bin, i) => {
    let y = floor
    return Object.entries(COLORS).flatMap(([kind, color]) => {
      const height = bin[kind] * HEIGHT_OF_CALL
      y -= height
      if (height === 0) return []
      const x = (LEFT + i * BAR).toFixed(1)
      return `<rect x="${x}" y="${y.toFixed(1)}" width="${(BAR - 1).toFixed(1)}" height="${height.toFixed(1)}" class="${color}"/>`
    })
  })
  const ticks = Array.from({ length: SECONDS + 1 }, (_, second) => {
    const x = LEFT + ((second * 1000) / BIN_MS) * BAR
    return `<text x="${x.toFixed(1)}" y="${floor + 13}" class="muted small" text-anchor="${second === 0 ? 'start' : second === SECONDS ? 'end' : 'middle'}">${second} s</text>`
  })
  const tally = `${count('passed')} at once, ${count('held')} delayed, ${count('refused')} refused`
  return `<g><text x="${LEFT}" y="${top + 8}" class="title">${title}</text>
<text x="${WIDTH - LEFT}" y="${top + 8}" class="muted small" text-anchor="end">${tally}</text>
<line x1="${LEFT}" x2="${WIDTH - LEFT}" y1="${floor}" y2="${floor}" class="grid"/>
${bars.join('')}${ticks.join('')}</g>`
}

const panels = await Promise.all(rules.map(async ({ title, rule }) => ({ title, bins: await run(rule) })))
const legend = Object.entries({ passed: 'passed at once', held: 'delayed, then passed', refused: 'refused' })
  .map(([kind, text], i) => {
    const x = LEFT + i * 180
    return `<rect x="${x}" y="10" width="10" height="10" class="${COLORS[kind]}"/><text x="${x + 15}" y="19" class="small">${text}</text>`
  })
  .join('')
writeFileSync(
  new URL('images/algorithms.svg', import.meta.url),
  drawing({
    width: WIDTH,
    height: 40 + panels.length * PANEL,
    title: 'The same traffic through every algorithm',
    fontSize: 12,
    parts: [legend, ...panels.map(panel)],
  }),
)
