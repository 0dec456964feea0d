import type { ComponentChildren, JSX } from 'preact'
import { useState } from 'preact/hooks'

/** The most rows that a table lays out whole; of a longer one, only the rows in sight exist. */
const WHOLE = 60
const BEYOND_SIGHT = 8
/** The number of rows that come and go together, so that most steps of scrolling move existing rows. */
const AT_A_TIME = 4

export interface Column {
  readonly name: string
  readonly title: string
  readonly numeric?: boolean
  /** For columns that the rows can be sorted by. */
  readonly sort?: ColumnSort | undefined
}

export interface ColumnSort {
  readonly direction: 'ascending' | 'descending' | undefined
  readonly onSort: () => void
}

interface LongTableProps<Row> {
  readonly label: string
  /** Names the grid of this table in the style sheet. */
  readonly kind: string
  readonly columns: readonly Column[]
  readonly rows: readonly Row[]
  readonly rowHeight: number
  readonly keyOf: (row: Row) => string
  readonly cells: (row: Row) => readonly ComponentChildren[]
  readonly isChosen?: (row: Row) => boolean
  /** Handlers of the rows, without the titles above them. */
  readonly handlers?: Readonly<Record<string, () => void>>
  /** A class of rows that look different. */
  readonly classOf?: (row: Row) => string
}

/** Shows a table that stays quick with thousands of rows, and gives their number to a screen reader. */
export function LongTable<Row>(props: LongTableProps<Row>): JSX.Element {
  const { label, kind, columns, rows, rowHeight, keyOf, cells, isChosen, handlers, classOf } = props
  const [reached, setReached] = useState(0)
  const scrolls = rows.length > WHOLE
  const inSight = Math.ceil((globalThis.innerHeight * 0.7) / rowHeight)
  const first = scrolls ? Math.max(0, Math.min(reached, rows.length) - BEYOND_SIGHT) : 0
  const last = scrolls ? Math.min(rows.length, first + inSight + 2 * BEYOND_SIGHT + AT_A_TIME) : rows.length
  return (
    <div role="table" class={`long-table ${kind}`} aria-label={label} aria-rowcount={rows.length + 1}>
      <div role="rowgroup" class="head">
        <div role="row" aria-rowindex={1}>
          {columns.map(({ name, title, numeric, sort }) => (
            <span
              role="columnheader"
              key={name}
              class={numeric ? 'numeric' : ''}
              aria-sort={sort ? (sort.direction ?? 'none') : undefined}
            >
              {sort ? (
                <button type="button" class="sort" onClick={sort.onSort}>
                  {title}
                </button>
              ) : (
                title
              )}
            </span>
          ))}
        </div>
      </div>
      <div
        role="rowgroup"
        class={scrolls ? 'scrolls' : ''}
        tabIndex={scrolls ? 0 : undefined}
        {...handlers}
        onScroll={({ currentTarget: { scrollTop } }) => {
          setReached(Math.floor(scrollTop / rowHeight / AT_A_TIME) * AT_A_TIME)
        }}
      >
        <div role="presentation" class="rows" style={{ height: `${rows.length * rowHeight}px` }}>
          {rows.slice(first, last).map((row, index) => (
            <div
              role="row"
              key={keyOf(row)}
              aria-rowindex={first + index + 2}
              class={`${isChosen?.(row) ? 'chosen' : ''} ${classOf?.(row) ?? ''}`.trim()}
              style={{ transform: `translateY(${(first + index) * rowHeight}px)`, height: `${rowHeight}px` }}
            >
              {cells(row).map((cell, at) => (
                <span
                  role="cell"
                  key={columns[at]!.name}
                  class={`${columns[at]!.name} ${columns[at]!.numeric ? 'numeric' : ''}`}
                  data-title={columns[at]!.title}
                >
                  {cell}
                </span>
              ))}
            </div>
          ))}
        </div>
      </div>
    </div>
  )
}
