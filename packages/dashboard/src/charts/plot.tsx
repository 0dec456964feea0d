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
  /** What is drawn; the plot is drawn again at once if it changes. */
  readonly subject: string | undefined
  readonly options: (width: number) => UPlot.Options
  readonly data: (now: number) => UPlot.AlignedData
}

/** A plot over time that moves with each second, and follows colors, language and the width of its box. */
export function Plot({ label, height, subject, options, data }: PlotProps): JSX.Element {
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

  return <div class="chart" ref={box} role="img" aria-label={label} />
}

/** What all plots have in common; the page has a legend of its own. */
export const plain = { legend: { show: false }, cursor: { show: false }, padding: [8, 8, 0, 0] } as const

const font = '12px ui-sans-serif, system-ui, sans-serif'

export function timeAxis(): UPlot.Axis {
  const look = { stroke: ink('muted'), font, grid: { show: false }, ticks: { show: false } }
  return { ...look, space: 90, size: 30, values: times }
}

export function valueAxis(): UPlot.Axis {
  return { stroke: ink('muted'), font, grid: { stroke: ink('line'), width: 1 }, ticks: { show: false }, size: 52 }
}

function times(_plot: UPlot, seconds: number[]): string[] {
  const locale = language.peek() === 'zh' ? 'zh-CN' : 'en-GB'
  const clock = new Intl.DateTimeFormat(locale, { hour: '2-digit', minute: '2-digit', second: '2-digit' })
  return seconds.map(at => clock.format(at * 1000))
}
