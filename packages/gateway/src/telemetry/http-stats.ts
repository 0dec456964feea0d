import type { HealthState } from '../services/address-state.ts'
import type { CallRecord } from './call-record.ts'

/** Calls of one route that went to one address; both are empty for calls that got that far not. */
export interface TrafficStats {
  readonly route: string
  readonly upstream: string
  /** By method and class of the status: `GET 2xx`. */
  readonly calls: Readonly<Record<string, number>>
  readonly retries: number
  /** Calls that the gateway answered with a 5xx of its own, by the reason. */
  readonly errors: Readonly<Record<string, number>>
  readonly bytesIn: number
  readonly bytesOut: number
  readonly duration: HistogramStats
  readonly firstByte: HistogramStats
}

/** The state of an address; one that no route has any more is draining until its last call has ended. */
export type UpstreamState = HealthState['state'] | 'draining'

/** The addresses of a service that have one label, at this moment. */
export interface UpstreamStats {
  readonly upstream: string
  readonly inProgress: number
  readonly waiting: number
  /** Connections to them that are open. */
  readonly connections: number
  /** The number of addresses by state. */
  readonly states: Readonly<Record<UpstreamState, number>>
}

/** The addresses of one route, at this moment. */
export interface RouteStats {
  readonly route: string
  /** The number of addresses by state. */
  readonly states: Readonly<Record<HealthState['state'], number>>
}

/** The connections and calls of callers that a process has. */
export interface CallerSide {
  /** Calls and connections that were turned away without a rule, by the reason. */
  readonly rejected: Readonly<Record<string, number>>
  readonly inProgress: number
  readonly connections: number
}

/** HTTP traffic of a gateway since its start, as plain values. */
export interface HttpStats extends CallerSide {
  readonly traffic: readonly TrafficStats[]
  readonly upstreams: readonly UpstreamStats[]
  /** Routes to services; those that the gateway answers itself are not in it. */
  readonly routes: readonly RouteStats[]
  readonly droppedLines: number
  readonly exportedSpans: number
  readonly droppedSpans: number
  /** Errors of Diana's own that ended no call and no process, by where they were caught. */
  readonly faults: Readonly<Record<string, number>>
}

/** Returns the figures of several processes as those of one. */
export function mergeHttpStats(all: readonly HttpStats[]): HttpStats {
  const sum = (read: (figures: HttpStats) => number): number => all.reduce((total, one) => total + read(one), 0)
  return {
    traffic: mergeBy(
      all.flatMap(one => one.traffic),
      mergeTraffic,
    ),
    upstreams: mergeBy(
      all.flatMap(one => one.upstreams.map(upstream => ({ route: '', ...upstream }))),
      mergeUpstreams,
    ),
    routes: mergeBy(
      all.flatMap(one => one.routes.map(route => ({ upstream: '', ...route }))),
      (one, other) => ({ ...one, states: addCounts(one.states, other.states) as RouteStats['states'] }),
    ).map(({ route, states }) => ({ route, states })),
    rejected: all.reduce((counts, one) => addCounts(counts, one.rejected), {}),
    inProgress: sum(one => one.inProgress),
    connections: sum(one => one.connections),
    droppedLines: sum(one => one.droppedLines),
    exportedSpans: sum(one => one.exportedSpans),
    droppedSpans: sum(one => one.droppedSpans),
    faults: all.reduce((counts, one) => addCounts(counts, one.faults), {}),
  }
}

/** The number of series that are kept of processes that have ended. */
const mostEndedSeries = 10_000

/** Returns what a process had counted; nothing that was true of its last moment only. */
export function httpCountersOf({ traffic, ...stats }: HttpStats): HttpStats {
  return {
    ...stats,
    traffic: traffic.slice(0, mostEndedSeries),
    upstreams: [],
    routes: [],
    inProgress: 0,
    connections: 0,
  }
}

function mergeBy<Item extends { readonly route: string; readonly upstream: string }>(
  items: readonly Item[],
  merge: (one: Item, other: Item) => Item,
): Item[] {
  const merged = new Map<string, Item>()
  for (const item of items) {
    const key = `${item.route} ${item.upstream}`
    const known = merged.get(key)
    merged.set(key, known === undefined ? item : merge(known, item))
  }
  return [...merged.values()]
}

function mergeTraffic(one: TrafficStats, other: TrafficStats): TrafficStats {
  return {
    ...one,
    calls: addCounts(one.calls, other.calls),
    retries: one.retries + other.retries,
    errors: addCounts(one.errors, other.errors),
    bytesIn: one.bytesIn + other.bytesIn,
    bytesOut: one.bytesOut + other.bytesOut,
    duration: mergeHistograms(one.duration, other.duration),
    firstByte: mergeHistograms(one.firstByte, other.firstByte),
  }
}

function mergeUpstreams<Item extends UpstreamStats>(one: Item, other: Item): Item {
  return {
    ...one,
    inProgress: one.inProgress + other.inProgress,
    waiting: one.waiting + other.waiting,
    connections: one.connections + other.connections,
    states: addCounts(one.states, other.states),
  }
}

/** Sums of counts by name. */
export function addCounts(
  one: Readonly<Record<string, number>>,
  other: Readonly<Record<string, number>>,
): Record<string, number> {
  const sums = { ...one }
  for (const name of Object.keys(other)) sums[name] = (sums[name] ?? 0) + other[name]!
  return sums
}

/** Upper bounds of durations in seconds, as OpenTelemetry recommends them for HTTP. */
export const durationBounds: readonly number[] = [
  0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10,
]

/** The numbers of durations below each bound, and their sum, as plain values. */
export interface HistogramStats {
  /** One count per bound, not cumulative, and one for all that are longer. */
  readonly counts: readonly number[]
  readonly sumSeconds: number
}

/** Counts durations. */
export class Histogram {
  readonly #counts: number[] = Array(durationBounds.length + 1).fill(0)
  #sumMs = 0

  add(ms: number): void {
    this.#sumMs += ms
    const seconds = ms / 1000
    let at = 0
    while (at < durationBounds.length && seconds > durationBounds[at]!) at++
    this.#counts[at]!++
  }

  figures(): HistogramStats {
    return { counts: [...this.#counts], sumSeconds: this.#sumMs / 1000 }
  }
}

export function mergeHistograms(one: HistogramStats, other: HistogramStats): HistogramStats {
  return {
    counts: one.counts.map((count, at) => count + (other.counts[at] ?? 0)),
    sumSeconds: one.sumSeconds + other.sumSeconds,
  }
}

/** Methods with a series of their own; a caller cannot make more. */
const methods: readonly string[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']
const classes = 5
const maxSeries = 10_000

/** Counters of one route and one address. */
class Series {
  readonly route: string
  readonly upstream: string
  readonly #calls: number[] = Array((methods.length + 1) * classes).fill(0)
  readonly #duration = new Histogram()
  readonly #firstByte = new Histogram()
  #retries = 0
  #errors: Record<string, number> | undefined
  #bytesIn = 0
  #bytesOut = 0

  constructor(route: string, upstream: string) {
    this.route = route
    this.upstream = upstream
  }

  add(record: CallRecord): void {
    const at = methods.indexOf(record.method ?? '')
    const row = at < 0 ? methods.length : at
    const column = Math.min(Math.max(Math.floor(record.status / 100), 1), classes) - 1
    this.#calls[row * classes + column]!++
    this.#duration.add(record.totalMs)
    const { firstByteMs } = record
    if (firstByteMs !== undefined) this.#firstByte.add(firstByteMs)
    if (record.ownError !== undefined) this.#countError(record.ownError)
    if (record.tries > 1) this.#retries += record.tries - 1
    this.#bytesIn += record.bytesIn
    this.#bytesOut += record.bytesOut
  }

  #countError(reason: string): void {
    this.#errors ??= {}
    this.#errors[reason] = (this.#errors[reason] ?? 0) + 1
  }

  figures(): TrafficStats {
    const calls: Record<string, number> = {}
    this.#calls.forEach((count, index) => {
      const method = methods[Math.floor(index / classes)] ?? 'OTHER'
      if (count > 0) calls[`${method} ${(index % classes) + 1}xx`] = count
    })
    return {
      ...{ route: this.route, upstream: this.upstream, calls, retries: this.#retries, errors: { ...this.#errors } },
      ...{ bytesIn: this.#bytesIn, bytesOut: this.#bytesOut },
      ...{ duration: this.#duration.figures(), firstByte: this.#firstByte.figures() },
    }
  }
}

/** Counts calls by route and address. The number of series is bounded, however often routes change. */
export class TrafficCounts {
  readonly #routes = new Map<string, Map<string, Series>>()
  #size = 0
  #last: Series | undefined

  add(record: CallRecord): void {
    this.#find(record.route?.label ?? '', record.upstream?.label ?? '').add(record)
  }

  figures(): TrafficStats[] {
    return [...this.#routes.values()].flatMap(series => [...series.values()].map(one => one.figures()))
  }

  #find(route: string, upstream: string): Series {
    const last = this.#last
    // most calls go where the one before went
    if (last !== undefined && last.route === route && last.upstream === upstream) return last
    const found = this.#routes.get(route)?.get(upstream) ?? this.#create(route, upstream)
    this.#last = found
    return found
  }

  #create(route: string, upstream: string): Series {
    if (this.#size >= maxSeries && route !== 'other') return this.#find('other', 'other')
    const series = new Series(route, upstream)
    const known = this.#routes.get(route)
    if (known) known.set(upstream, series)
    else this.#routes.set(route, new Map([[upstream, series]]))
    this.#size++
    return series
  }
}
