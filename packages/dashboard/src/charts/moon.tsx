import type { JSX } from 'preact'
import { formatShare } from '../i18n/format.ts'
import { messages } from '../i18n/index.ts'

/** Returns the lit part of a moon of radius 8: new at 0, full at 1. */
export function litPath(share: number): string {
  const lit = Math.min(1, Math.max(0, share))
  if (lit === 0) return ''
  const width = Math.abs(1 - 2 * lit) * 8
  return `M9 1a8 8 0 0 1 0 16A${width.toFixed(2)} 8 0 0 ${lit < 0.5 ? 0 : 1} 9 1z`
}

/** Shows the load of a rule: a moon that is full when the busiest caller is at the limit. */
export function Load({ share, withBar = false }: { share: number | undefined; withBar?: boolean }): JSX.Element {
  const { load, columns } = messages.value
  if (share === undefined) return <span class="load idle" title={load.none} aria-hidden="true" />
  const shown = Math.min(1, share)
  return (
    <span
      class={`load ${share >= 0.95 ? 'full' : ''}`}
      role="meter"
      aria-label={columns.load}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={Math.round(shown * 100)}
      aria-valuetext={load.of(formatShare(share))}
    >
      <svg viewBox="0 0 18 18" aria-hidden="true">
        <circle cx="9" cy="9" r="8" />
        <path d={litPath(share)} />
      </svg>
      {withBar && (
        <span class="bar" aria-hidden="true">
          <span style={{ width: `${(shown * 100).toFixed(1)}%` }} />
        </span>
      )}
      <span aria-hidden="true">{formatShare(share)}</span>
    </span>
  )
}
