import type { JSX } from 'preact'
import type { Count } from '../figures/ring.ts'

const SHAPES: Record<Count, JSX.Element> = {
  allowed: <circle cx="6" cy="6" r="5" />,
  refused: <path d="M1 1.5h10L6 11z" />,
  waited: <path d="M6 .5 11.5 6 6 11.5.5 6z" />,
  shadowRefused: <circle class="hollow" cx="6" cy="6" r="4.2" />,
}

/** Shows the sign of a kind of count: each has a shape of its own beside its color. */
export function Mark({ of }: { of: Count }): JSX.Element {
  return (
    <svg class={`mark ${of}`} viewBox="0 0 12 12" aria-hidden="true">
      {SHAPES[of]}
    </svg>
  )
}
