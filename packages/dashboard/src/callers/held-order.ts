import { useRef } from 'preact/hooks'

interface Row {
  readonly id: string
}

/**
 * Returns the rows in their order. While a pointer or the focus is on them, they stay in their places and none disappears, though their
 * numbers change: a click then hits its target.
 */
export function holdOrder<Item extends Row>(
  before: readonly Item[],
  rows: readonly Item[],
  isHeld: boolean,
): readonly Item[] {
  if (!isHeld) return rows
  const fresh = new Map(rows.map(row => [row.id, row]))
  const known = new Set(before.map(({ id }) => id))
  return [...before.map(row => fresh.get(row.id) ?? row), ...rows.filter(({ id }) => !known.has(id))]
}

interface Held<Item> {
  readonly rows: readonly Item[]
  /** For the element around the rows. */
  readonly handlers: Readonly<
    Record<'onPointerEnter' | 'onPointerLeave' | 'onFocusCapture' | 'onBlurCapture', () => void>
  >
}

/** Holds the order of rows; `subject` is the question behind them, since rows of another question are not held. */
export function useHeldOrder<Item extends Row>(rows: readonly Item[], subject: string): Held<Item> {
  const held = useRef({ points: false, focuses: false })
  const kept = useRef<{ subject: string; rows: readonly Item[] }>({ subject, rows: [] })
  const isHeld = kept.current.subject === subject && (held.current.points || held.current.focuses)
  kept.current = { subject, rows: holdOrder(kept.current.rows, rows, isHeld) }
  const set = (name: 'points' | 'focuses', value: boolean) => () => {
    held.current[name] = value
  }
  return {
    rows: kept.current.rows,
    handlers: {
      onPointerEnter: set('points', true),
      onPointerLeave: set('points', false),
      onFocusCapture: set('focuses', true),
      onBlurCapture: set('focuses', false),
    },
  }
}
