import { useSignalEffect } from '@preact/signals'
import type { JSX } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { ink, repaint } from '../theme.ts'
import { prepare } from './canvas.ts'

interface TrendProps {
  readonly label: string
  /** Bars above the line, and below it; each side has a scale of its own. */
  readonly above: readonly (number | null)[]
  readonly below?: readonly number[]
  /** The value that fills the upper side; the highest bar unless given. */
  readonly full?: number
}

/** Shows the last minutes in a thumb's width, as bars. */
export function Trend({ label, above, below, full }: TrendProps): JSX.Element {
  const canvas = useRef<HTMLCanvasElement>(null)
  const paint = () => canvas.current && draw(canvas.current, { label, above, below: below ?? [], full: full ?? 0 })
  useSignalEffect(() => {
    repaint.value
    paint()
  })
  useEffect(() => void paint())
  return <canvas class="sparkline" ref={canvas} role="img" aria-label={label} title={label} />
}

function draw(canvas: HTMLCanvasElement, { above, below, full }: Required<TrendProps>): void {
  const surface = prepare(canvas)
  if (surface === undefined) return
  const { context, width, height } = surface
  const line = below.length > 0 ? height * 0.68 : height - 1
  context.fillStyle = ink('line')
  context.fillRect(0, line, width, 1)
  const step = width / Math.max(1, above.length)
  const rise = (line - 1) / (full > 0 ? full : Math.max(1, ...above.map(value => value ?? 0)))
  // each side has a scale of its own, so that few errors among many calls are still seen
  const fall = (height - line - 2) / Math.max(1, ...below)
  for (const [index, value] of above.entries()) {
    const tall = Math.min(line - 1, (value ?? 0) * rise)
    context.fillStyle = ink('allowed')
    context.fillRect(index * step, line - tall, step - 0.5, tall)
    context.fillStyle = ink('refused')
    context.fillRect(index * step, line + 1, step - 0.5, (below[index] ?? 0) * fall)
  }
}
