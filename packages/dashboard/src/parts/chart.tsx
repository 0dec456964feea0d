import { useSignalEffect } from '@preact/signals'
import type { JSX } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import UPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { ringOf, second, status, total } from '../figures/live.ts'
import { type Ring, SECONDS } from '../figures/ring.ts'
import { ink, repaint } from '../theme.ts'
import { formatShort } from '../words/format.ts'
import { language } from '../words/index.ts'

const HEIGHT = 260
/** Seconds that are drawn at least. */
const SHORTEST = 60

interface ChartProps {
  /** One rule, or all calls. */
  readonly rule: string | undefined
  readonly label: string
}

/** Calls per second: what passed stands on the line, what was refused hangs below it. */
export function Chart({ rule, label }: ChartProps): JSX.Element {
  const box = useRef<HTMLDivElement>(null)
  const plot = useRef<UPlot | undefined>(undefined)

  useSignalEffect(() => {
    repaint.value
    language.value
    plot.current?.destroy()
    plot.current = box.current ? new UPlot(options(box.current.clientWidth), [[]], box.current) : undefined
    plot.current?.setData(dataOf(rule, second.peek()))
  })
  useSignalEffect(() => {
    plot.current?.setData(dataOf(rule, second.value))
  })
  useEffect(() => {
    plot.current?.setData(dataOf(rule, second.peek()))
  }, [rule])
  useEffect(() => {
    const watcher = new ResizeObserver(([entry]) => {
      plot.current?.setSize({ width: Math.floor(entry!.contentRect.width), height: HEIGHT })
    })
    watcher.observe(box.current!)
    return () => {
      watcher.disconnect()
      plot.current?.destroy()
      plot.current = undefined
    }
  }, [])

  return <div class="chart" ref={box} role="img" aria-label={label} />
}

function dataOf(rule: string | undefined, now: number): UPlot.AlignedData {
  const ring: Ring | undefined = rule === undefined ? total : ringOf(rule)
  const length = Math.min(SECONDS, now - beginningOf(now) + 1)
  const seconds = Array.from({ length }, (_, index) => now - length + 1 + index)
  const read = (name: Parameters<Ring['at']>[1], sign: number) =>
    seconds.map(at => sign * (ring === undefined ? 0 : ring.at(at, name)))
  const allowed = read('allowed', 1)
  return [seconds, allowed, read('waited', 1), read('refused', -1), read('shadowRefused', -1)]
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
  const muted = ink('muted')
  const grid = { stroke: ink('line'), width: 1 }
  const font = '12px ui-sans-serif, system-ui, sans-serif'
  return {
    width,
    height: HEIGHT,
    legend: { show: false },
    cursor: { show: false },
    padding: [8, 8, 0, 0],
    scales: { y: { range: (_plot, low, high) => [Math.min(low * 1.15, -high * 0.25, -1), Math.max(high * 1.15, 4)] } },
    axes: [
      { stroke: muted, font, grid: { show: false }, ticks: { show: false }, space: 90, size: 30, values: times },
      {
        stroke: muted,
        font,
        grid,
        ticks: { show: false },
        size: 52,
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

function times(_plot: UPlot, seconds: number[]): string[] {
  const locale = language.peek() === 'zh' ? 'zh-CN' : 'en-GB'
  const clock = new Intl.DateTimeFormat(locale, { hour: '2-digit', minute: '2-digit', second: '2-digit' })
  return seconds.map(at => clock.format(at * 1000))
}
