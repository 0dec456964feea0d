interface Counts {
  readonly allowed: number
  readonly refused: number
  readonly waited: number
  readonly shadowRefused: number
  readonly waiting: number
}

interface RuleCounts extends Counts {
  readonly load?: number | undefined
}

/** One second, as the admin API reports it. */
export interface LiveStats {
  readonly at: number
  readonly total: Counts
  readonly rules: Readonly<Record<string, RuleCounts>>
}

/** The part of the gateway's status that is shown. */
export interface TopStatus {
  readonly version?: string
  readonly uptimeMs?: number
  readonly keys?: number
  readonly store?: { readonly healthy: boolean; readonly what?: string | undefined } | undefined
  readonly sources?: readonly { readonly name: string; readonly trouble?: string | undefined }[]
}

const mostRules = 40
const clear = '\u001b[H\u001b[2J'
const columns = ['allowed/s', 'refused/s', 'waited/s', 'shadow/s', 'waiting', 'load']

/** The orders in which rules are listed, by the key that chooses one, each with the figure that comes first. */
export const orders: Readonly<Record<string, { readonly name: string; readonly of: (counts: RuleCounts) => number }>> =
  {
    r: { name: 'refused', of: ({ refused }) => refused },
    a: { name: 'allowed', of: ({ allowed }) => allowed },
    w: { name: 'waiting', of: ({ waiting, waited }) => waiting + waited },
    l: { name: 'load', of: ({ load }) => load ?? -1 },
    n: { name: 'name', of: () => 0 },
  }

const red = 31
const yellow = 33
const bold = 1

interface Screen {
  readonly isClearing: boolean
  /** A key of `orders`; refused if it is left out. */
  readonly order?: string | undefined
  readonly hasColors?: boolean | undefined
  /** Left out where lines may be as long and as many as they are. */
  readonly size?: { readonly columns: number; readonly rows: number } | undefined
}

/** Returns the lines of one second: the total, then the rules in the chosen order, as many as the screen has room for. */
export function drawTop({ at, total, rules }: LiveStats, status: TopStatus, screen: Screen): string[] {
  const { isClearing, size, order = 'r', hasColors = false } = screen
  const { of, name: ordered } = orders[order]!
  const ranked = Object.entries(rules).sort(([one, a], [other, b]) => {
    if (order === 'n') return one < other ? -1 : 1
    return of(b) - of(a) || b.refused - a.refused || b.allowed - a.allowed
  })
  const time = new Date(at).toISOString().slice(11, 19)
  const keys = isClearing ? `  by ${ordered}: keys r a w l n, q ends` : ''
  const trouble = troubles(status)
  const head = [`Diana ${status.version ?? ''}  ${time} UTC  ${status.keys ?? 0} keys${keys}`, ...trouble, '']
  // below the head: the columns, the total, the line that says how many more there are, and the cursor
  const room = size === undefined ? mostRules : Math.max(1, size.rows - head.length - 4)
  const shown = ranked.slice(0, room)
  const longest = Math.max(10, ...shown.map(([id]) => id.length))
  const width = size?.columns ?? Number.POSITIVE_INFINITY
  const wide = Math.max(10, Math.min(longest, width - columns.length * 10 - 1))
  const lines = [
    ...head,
    `${'rule'.padEnd(wide)} ${columns.map(name => name.padStart(10)).join('')}`,
    row('all calls', total, wide),
    ...shown.map(([id, counts]) => row(id, counts, wide)),
  ]
  if (ranked.length > shown.length) lines.push(`and ${ranked.length - shown.length} more rules`)
  const first = head.length
  const colorOf = (at: number): number | undefined => {
    if (at === 0 || at === first) return bold
    if (at <= trouble.length) return yellow
    const [, counts] = ranked[at - first - 2] ?? []
    return counts !== undefined && counts.refused > 0 ? red : undefined
  }
  return lines.map((line, i) => {
    const color = hasColors && line !== '' ? colorOf(i) : undefined
    return `${isClearing && i === 0 ? clear : ''}${paint(fit(line, width), color)}`
  })
}

function paint(text: string, color: number | undefined): string {
  return color === undefined ? text : `\u001b[${color}m${text}\u001b[0m`
}

function fit(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, Math.max(0, width - 1))}…`
}

function row(name: string, counts: RuleCounts, wide: number): string {
  const { allowed, refused, waited, shadowRefused, waiting, load } = counts
  const share = load === undefined ? '' : `${Math.round(load * 100)} %`
  const cells = [allowed, refused, waited, shadowRefused, waiting].map(String).concat(share)
  return `${fit(name, wide).padEnd(wide)} ${cells.map(cell => cell.padStart(10)).join('')}`.trimEnd()
}

function troubles({ store, sources = [] }: TopStatus): string[] {
  const lines =
    store && !store.healthy ? [`DEGRADED: ${printable(store.what ?? '')}; each process counts by itself`] : []
  for (const { name, trouble } of sources) {
    if (trouble !== undefined)
      lines.push(`the last good rules stay in force, ${printable(name)}: ${printable(trouble)}`)
  }
  return lines
}

/** Escapes a message, which may hold what a terminal obeys. */
function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}]+/gu, ' ')
}
