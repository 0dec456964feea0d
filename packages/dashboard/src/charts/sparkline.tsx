import { useSignalEffect } from '@preact/signals'
import type { JSX } from 'preact'
import { useRef } from 'preact/hooks'
import { ringOf, second } from '../figures/live.ts'
import type { Ring } from '../figures/ring.ts'
import { ink, repaint } from '../theme.ts'
import { prepare } from './canvas.ts'

const LENGTH = 60

/** Shows the last minute of a rule in a thumb's width: admitted calls above the line, refused ones below. */
export function Sparkline({ rule }: { rule: string }): JSX.Element {
  const canvas = useRef<HTMLCanvasElement>(null)
  useSignalEffect(() => {
    repaint.value
    const now = second.value
    if (canvas.current) draw(canvas.current, ringOf(rule), now)
  })
  return <canvas class="sparkline" ref={canvas} />
}

function draw(canvas: HTMLCanvasElement, ring: Ring | undefined, now: number): void {
  const surface = prepare(canvas)
  if (surface === undefined) return
  const { context, width, height } = surface
  const above = height * 0.68
  context.fillStyle = ink('line')
  context.fillRect(0, above, width, 1)
  if (ring === undefined) return
  const passed = ring.window(now, LENGTH, 'allowed')
  const refused = ring.window(now, LENGTH, 'refused')
  const shadow = ring.window(now, LENGTH, 'shadowRefused')
  const step = width / LENGTH
  // each half has a scale of its own, so that few refusals among many calls are still seen
  const rise = (above - 1) / Math.max(1, ...passed)
  const fall = (height - above - 2) / Math.max(1, ...refused)
  for (let index = 0; index < LENGTH; index++) {
    const left = index * step
    context.fillStyle = ink('allowed')
    context.fillRect(left, above - passed[index]! * rise, step - 0.5, passed[index]! * rise)
    // these passed: a part of the bar above the line
    const reported = Math.min(shadow[index]!, passed[index]!) * rise
    context.fillStyle = ink('shadow-refused')
    context.fillRect(left, above - reported, step - 0.5, reported)
    context.fillStyle = ink('refused')
    context.fillRect(left, above + 1, step - 0.5, refused[index]! * fall)
  }
}
