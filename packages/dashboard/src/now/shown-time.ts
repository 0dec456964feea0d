import type { HistoryScope } from '../api/generated.ts'
import { status } from '../figures/live.ts'
import { hashWith, route } from '../route.ts'

/** The length of each range in seconds. */
export const RANGES = { '5m': 300, '1h': 3600, '24h': 86_400, '7d': 604_800 } as const
export type RangeName = keyof typeof RANGES
export const RANGE_NAMES = Object.keys(RANGES) as RangeName[]

const SHORTEST_SECONDS = 10

/** The time and the processes that are shown. */
export interface ShownTime {
  readonly range: RangeName
  readonly seconds: number
  /** The end of the time in milliseconds, if a part of the range is shown. */
  readonly to: number | undefined
  readonly scope: HistoryScope
  readonly process: string | undefined
  readonly compares: boolean
  /** True if the time is the live stream of this gateway, second by second. */
  readonly isLive: boolean
}

/** Returns the number of processes that count together. */
export function fleetSize(): number {
  return status.value?.fleetHistory ? (status.value.store?.fleet?.size ?? 1) : 1
}

/** Returns the time that the address names; of the whole fleet, if there is one, unless the address names processes. */
export function shownTime(): ShownTime {
  const { query } = route.value
  const range = RANGE_NAMES.find(name => name === query.range) ?? '5m'
  const [from, to] = [Number(query.from), Number(query.to)]
  const isPart = Number.isSafeInteger(from) && Number.isSafeInteger(to) && to - from >= SHORTEST_SECONDS * 1000
  const scope = scopeOf(query, range)
  return {
    range,
    seconds: isPart ? Math.min(RANGES['7d'], Math.round((to - from) / 1000)) : RANGES[range],
    to: isPart ? to : undefined,
    scope,
    process: scope === 'process' ? query.process : undefined,
    compares: query.compare !== 'off',
    isLive: !isPart && range === '5m' && scope === 'gateway',
  }
}

function scopeOf(query: Readonly<Record<string, string>>, range: RangeName): HistoryScope {
  if (!status.value?.fleetHistory) return 'gateway'
  if (query.scope === 'gateway' || query.scope === 'fleet') return query.scope
  if (query.scope === 'process' && query.process) return 'process'
  // one process alone is followed by seconds; Redis remembers more than it does
  return fleetSize() > 1 || range !== '5m' ? 'fleet' : 'gateway'
}

/** Returns the address of the same view with other settings, and with another rule or none if one is given. */
export function otherTime(changes: Readonly<Record<string, string | undefined>>, rule?: string | null): string {
  const { query, rest } = route.value
  const rules = rule === undefined ? rest.slice(0, 1) : rule === null ? [] : [rule]
  return hashWith({ ...query, ...changes }, 'now', ...rules)
}

/** Returns the address of a part of the range, no shorter than can be shown. */
export function partOfTime(from: number, to: number): string {
  const least = SHORTEST_SECONDS * 1000
  const middle = (from + to) / 2
  const [first, last] = to - from >= least ? [from, to] : [middle - least / 2, middle + least / 2]
  const end = Math.min(Math.round(last), Date.now())
  return otherTime({ from: String(end - Math.round(last - first)), to: String(end) })
}

export const wholeTime = (): string => otherTime({ from: undefined, to: undefined })
