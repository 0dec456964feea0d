import type { JSX } from 'preact'
import type UPlot from 'uplot'
import { ringOf, status, total } from '../figures/live.ts'
import { type Ring, SECONDS } from '../figures/ring.ts'
import { formatShort } from '../i18n/format.ts'
import { ink } from '../theme.ts'
import { Plot, plain, timeAxis, valueAxis } from './plot.tsx'

const HEIGHT = 260
/** Seconds that are drawn at least. */
const SHORTEST = 60

interface ChartProps {
  /** One rule, or all calls. */
  readonly rule: string | undefined
  readonly label: string
}

/** Calls per second: what passed stands on the line, with the part that a shadow rule would have refused; what was refused hangs below it. */
export function Chart({ rule, label }: ChartProps): JSX.Element {
  return <Plot label={label} height={HEIGHT} subject={rule} options={options} data={now => dataOf(rule, now)} />
}

function dataOf(rule: string | undefined, now: number): UPlot.AlignedData {
  const ring: Ring | undefined = rule === undefined ? total : ringOf(rule)
  const seconds = drawnSeconds(now)
  const read = (name: Parameters<Ring['at']>[1], sign: number) =>
    seconds.map(at => sign * (ring === undefined ? 0 : ring.at(at, name)))
  const allowed = read('allowed', 1)
  return [seconds, allowed, read('waited', 1), read('refused', -1), read('shadowRefused', 1)]
}

/** The seconds that charts show. */
export function drawnSeconds(now: number): number[] {
  const length = Math.min(SECONDS, now - beginningOf(now) + 1)
  return Array.from({ length }, (_, index) => now - length + 1 + index)
}

/** Where the drawing begins: a gateway that has just started needs no minutes of nothing, but one to grow into. */
function beginningOf(now: number): number {
  const known = total.window(now, SECONDS, 'allowed').findIndex((passed, index) => {
    return passed > 0 || total.at(now - SECONDS + 1 + index, 'refused') > 0
  })
  const first = known < 0 ? now : now - SECONDS + 1 + known
  const started = Math.ceil((status.peek()?.startedAt ?? 0) / 1000)
  return Math.min(first, started, now - SHORTEST + 1)
}

function options(width: number): UPlot.Options {
  return {
    ...plain,
    padding: [...plain.padding],
    width,
    height: HEIGHT,
    scales: { y: { range: (_plot, low, high) => [Math.min(low * 1.15, -high * 0.25, -1), Math.max(high * 1.15, 4)] } },
    axes: [
      timeAxis(),
      {
        ...valueAxis(),
        incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 500_000],
        values: (_plot, values) => values.map(value => formatShort(Math.abs(value))),
      },
    ],
    series: [
      {},
      { stroke: ink('allowed'), fill: ink('allowed-wash'), width: 1.5, points: { show: false } },
      { stroke: ink('waited'), width: 1.5, points: { show: false } },
      { stroke: ink('refused'), fill: ink('refused-wash'), width: 1.5, points: { show: false } },
      { stroke: ink('shadow-refused'), width: 1.5, dash: [4, 3], points: { show: false } },
    ],
    hooks: { drawAxes: [drawZero] },
  }
}

/** The line between passing and being refused. */
function drawZero({ ctx, bbox, valToPos }: UPlot): void {
  const y = Math.round(valToPos(0, 'y', true)) + 0.5
  ctx.save()
  ctx.strokeStyle = ink('muted')
  ctx.lineWidth = devicePixelRatio
  ctx.beginPath()
  ctx.moveTo(bbox.left, y)
  ctx.lineTo(bbox.left + bbox.width, y)
  ctx.stroke()
  ctx.restore()
}
