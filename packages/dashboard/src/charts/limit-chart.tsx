import type { JSX } from 'preact'
import type UPlot from 'uplot'
import { drawnSeconds } from '../figures/drawn-seconds.ts'
import { overloadFigures } from '../figures/live.ts'
import { formatShort } from '../i18n/format.ts'
import { messages } from '../i18n/index.ts'
import { ink } from '../theme.ts'
import { Plot, plain, timeAxis, valueAxis } from './plot.tsx'

const HEIGHT = 200

/** Shows the limit that an adaptive rule has found and the calls in flight, with the latency on an axis of its own. */
export function LimitChart({ rule, label }: { rule: string; label: string }): JSX.Element {
  return <Plot label={label} height={HEIGHT} subject={rule} options={options} data={now => dataOf(rule, now)} />
}

function dataOf(rule: string, now: number): UPlot.AlignedData {
  const seconds = drawnSeconds(now)
  const curves = overloadFigures.curvesOf(rule)
  const read = (name: 'limit' | 'inFlight' | 'latencyMs') => seconds.map(at => curves?.[name].at(at) ?? null)
  return [seconds, read('limit'), read('inFlight'), read('latencyMs')]
}

function options(width: number): UPlot.Options {
  const fromZero = (_plot: unknown, _low: number, high: number): [number, number] => [0, Math.max(high * 1.15, 4)]
  const line = { width: 1.5, points: { show: false } }
  return {
    ...plain,
    padding: [...plain.padding],
    width,
    height: HEIGHT,
    scales: { y: { range: fromZero }, ms: { range: fromZero } },
    axes: [
      timeAxis(),
      { ...valueAxis(), values: (_plot, values) => values.map(formatShort) },
      {
        ...valueAxis(),
        scale: 'ms',
        side: 1,
        size: 64,
        grid: { show: false },
        values: (_plot, values) => values.map(value => `${formatShort(value)} ${messages.peek().units.ms}`),
      },
    ],
    series: [
      {},
      { ...line, stroke: ink('refused'), dash: [6, 3] },
      { ...line, stroke: ink('allowed'), fill: ink('allowed-wash') },
      { ...line, stroke: ink('waited'), scale: 'ms' },
    ],
  }
}
