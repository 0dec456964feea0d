import { type Signal, useSignal } from '@preact/signals'
import type { JSX } from 'preact'
import { useMemo } from 'preact/hooks'
import type UPlot from 'uplot'
import { COUNTS, type Count } from '../figures/ring.ts'
import { formatMoment, formatShort } from '../i18n/format.ts'
import { messages } from '../i18n/index.ts'
import { ink } from '../theme.ts'
import { Plot, plain, timeAxis, valueAxis } from './plot.tsx'

const HEIGHT = 260

/** The curves of a chart: moments in seconds, and calls per second at each; null if nothing is known. */
export interface ChartData {
  readonly seconds: readonly number[]
  readonly rates: Readonly<Record<Count, readonly (number | null)[]>>
  /** The curves of the time before, if they are compared. */
  readonly before?: Readonly<Record<'allowed' | 'refused', readonly (number | null)[]>> | undefined
}

interface ChartProps {
  readonly label: string
  /** Changes with what is drawn; the chart also follows each second. */
  readonly subject: string
  readonly data: (now: number) => ChartData
  /** A part of the time was marked; in milliseconds. */
  readonly onZoom: (from: number, to: number) => void
}

/** Calls per second: what passed stands on the line, with the part that a shadow rule would have refused; what was refused hangs below it. */
export function Chart({ label, subject, data, onZoom }: ChartProps): JSX.Element {
  const pointed = useSignal<number | undefined>(undefined)
  const drawn = useMemo(() => ({ current: undefined as ChartData | undefined }), [])
  const read = (now: number): UPlot.AlignedData => {
    const { seconds, rates, before } = data(now)
    drawn.current = { seconds, rates, before }
    const below = (numbers: readonly (number | null)[]) => numbers.map(number => number && -number)
    const none = seconds.map(() => null)
    return [
      [...seconds],
      [...rates.allowed],
      [...rates.waited],
      below(rates.refused),
      [...rates.shadowRefused],
      before ? [...before.allowed] : none,
      before ? below(before.refused) : none,
    ]
  }
  return (
    <>
      <Plot
        label={label}
        height={HEIGHT}
        subject={subject}
        options={width => options(width, pointed, onZoom)}
        data={read}
        isExplored
      />
      <Readout pointed={pointed} drawn={drawn} />
    </>
  )
}

/** Shows the numbers under the pointer. */
function Readout(props: {
  readonly pointed: Signal<number | undefined>
  readonly drawn: { readonly current: ChartData | undefined }
}): JSX.Element {
  const { counts, now: texts } = messages.value
  const at = props.pointed.value
  const { seconds, rates, before } = props.drawn.current ?? {}
  const moment = at === undefined ? undefined : seconds?.[at]
  if (at === undefined || moment === undefined || !rates) return <p class="readout hush">{texts.explore}</p>
  const show = (number: number | null | undefined) => (number == null ? '–' : formatShort(number))
  return (
    <p class="readout">
      <b>{formatMoment(moment * 1000)}</b>
      {COUNTS.map(name => (
        <span key={name} class={name}>
          {counts[name]} <b>{show(rates[name][at])}</b>
        </span>
      ))}
      {before && (
        <span class="hush">
          {texts.before}: {show(before.allowed[at])} / {show(before.refused[at])}
        </span>
      )}
    </p>
  )
}

function options(
  width: number,
  pointed: Signal<number | undefined>,
  onZoom: (from: number, to: number) => void,
): UPlot.Options {
  const line = (color: string, more: Partial<UPlot.Series> = {}): UPlot.Series => {
    return { stroke: ink(color), width: 1.5, points: { show: false }, ...more }
  }
  const earlier = { dash: [2, 4], width: 1.25 }
  return {
    ...plain,
    padding: [...plain.padding],
    cursor: { y: false, points: { show: false }, drag: { x: true, y: false, setScale: false } },
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
      line('allowed', { fill: ink('allowed-wash') }),
      line('waited'),
      line('refused', { fill: ink('refused-wash') }),
      line('shadow-refused', { dash: [4, 3] }),
      line('muted', earlier),
      line('muted', earlier),
    ],
    hooks: {
      drawAxes: [drawZero],
      setCursor: [
        plot => {
          pointed.value = plot.cursor.idx ?? undefined
        },
      ],
      setSelect: [
        plot => {
          const { left, width: wide } = plot.select
          if (wide < 4) return
          const [from, to] = [left, left + wide].map(at => plot.posToVal(at, 'x') * 1000)
          plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false)
          onZoom(from!, to!)
        },
      ],
    },
  }
}

/** Draws the line between admitted and refused calls. */
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
