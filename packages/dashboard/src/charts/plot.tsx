import { useSignalEffect } from '@preact/signals'
import type { JSX } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import UPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { second } from '../figures/live.ts'
import { language } from '../i18n/index.ts'
import { ink, repaint } from '../theme.ts'

interface PlotProps {
  readonly label: string
  readonly height: number
  /** The subject of the plot; the plot is drawn again at once if it changes. */
  readonly subject: string | undefined
  readonly options: (width: number) => UPlot.Options
  readonly data: (now: number) => UPlot.AlignedData
  /** True if arrow keys move a pointer over the plot. */
  readonly isExplored?: boolean
}

/** Shows a plot over time that moves with each second, and follows colors, language and the width of its box. */
export function Plot({ label, height, subject, options, data, isExplored = false }: PlotProps): JSX.Element {
  const box = useRef<HTMLDivElement>(null)
  const plot = useRef<UPlot | undefined>(undefined)

  useSignalEffect(() => {
    repaint.value
    language.value
    plot.current?.destroy()
    plot.current = box.current ? new UPlot(options(box.current.clientWidth), [[]], box.current) : undefined
    plot.current?.setData(data(second.peek()))
  })
  useSignalEffect(() => {
    plot.current?.setData(data(second.value))
  })
  useEffect(() => {
    plot.current?.setData(data(second.peek()))
  }, [subject])
  useEffect(() => {
    const watcher = new ResizeObserver(([entry]) => {
      plot.current?.setSize({ width: Math.floor(entry!.contentRect.width), height })
    })
    watcher.observe(box.current!)
    return () => {
      watcher.disconnect()
      plot.current?.destroy()
      plot.current = undefined
    }
  }, [])

  if (!isExplored) return <div class="chart" ref={box} role="img" aria-label={label} />
  return (
    <div
      class="chart"
      ref={box}
      role="group"
      aria-label={label}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: arrow keys move the pointer
      tabIndex={0}
      onKeyDown={event => {
        const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key]
        if (step === undefined || !plot.current) return
        event.preventDefault()
        movePointer(plot.current, step)
      }}
    />
  )
}

function movePointer(plot: UPlot, step: number): void {
  const moments = plot.data[0]
  const at = plot.cursor.idx ?? (step > 0 ? -1 : moments.length)
  const moment = moments[Math.max(0, Math.min(moments.length - 1, at + step))]
  if (moment !== undefined) plot.setCursor({ left: plot.valToPos(moment, 'x'), top: 0 })
}

/** The options that all plots share; the page has a legend of its own. */
export const plain = { legend: { show: false }, cursor: { show: false }, padding: [8, 8, 0, 0] } as const

const font = '12px ui-sans-serif, system-ui, sans-serif'

export function timeAxis(): UPlot.Axis {
  const look = { stroke: ink('muted'), font, grid: { show: false }, ticks: { show: false } }
  return { ...look, space: 90, size: 30, values: times }
}

export function valueAxis(): UPlot.Axis {
  return { stroke: ink('muted'), font, grid: { stroke: ink('line'), width: 1 }, ticks: { show: false }, size: 52 }
}

/** Writes each moment with the parts that differ from the next one on the axis: a day, a time, or both. */
function times(_plot: UPlot, seconds: number[], _axis: number, _space: number, increment: number): string[] {
  const locale = language.peek() === 'zh' ? 'zh-CN' : 'en-GB'
  const time: Intl.DateTimeFormatOptions = { hour: '2-digit', minute: '2-digit' }
  if (increment < 60) time.second = '2-digit'
  const day = { month: 'short', day: 'numeric' } as const
  const isLong = (seconds.at(-1) ?? 0) - (seconds[0] ?? 0) > 36 * 3600
  const look = increment >= 86_400 ? day : isLong ? { ...day, ...time } : time
  const clock = new Intl.DateTimeFormat(locale, look)
  return seconds.map(at => clock.format(at * 1000))
}
