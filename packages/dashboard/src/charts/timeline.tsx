import { useSignalEffect } from '@preact/signals'
import type { JSX } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import type { Caller } from '../api/generated.ts'
import { ink, repaint } from '../theme.ts'
import { prepare } from './canvas.ts'

/** Shows ten minutes of one caller: calls, and the refused ones among them. */
export function Timeline({ timeline }: { timeline: Caller['timeline'] }): JSX.Element {
  const canvas = useRef<HTMLCanvasElement>(null)
  const paint = () => canvas.current && timeline && draw(canvas.current, timeline)
  useSignalEffect(() => {
    repaint.value
    paint()
  })
  useEffect(() => void paint(), [timeline])
  return <canvas class="sparkline" ref={canvas} />
}

function draw(canvas: HTMLCanvasElement, { calls, refused }: NonNullable<Caller['timeline']>): void {
  const surface = prepare(canvas)
  if (surface === undefined) return
  const { context, width, height } = surface
  const most = Math.max(1, ...calls, ...refused)
  const step = width / calls.length
  context.fillStyle = ink('line')
  context.fillRect(0, height - 1, width, 1)
  for (const [index, count] of calls.entries()) {
    const [tall, low] = [Math.max(count, refused[index]!), refused[index]!].map(one => (one / most) * (height - 2))
    context.fillStyle = ink('allowed')
    context.fillRect(index * step, height - 1 - tall!, step - 1, tall!)
    context.fillStyle = ink('refused')
    context.fillRect(index * step, height - 1 - low!, step - 1, low!)
  }
}
