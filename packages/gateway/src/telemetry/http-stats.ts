import type { HealthState } from '../services/health/health.ts'
import { type HistogramStats, mergeHistograms } from './histogram.ts'

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

/** How an address is doing; one that no route has any more is draining until its last call has ended. */
export type UpstreamState = HealthState['state'] | 'draining'

/** The addresses of a service that have one label, at this moment. */
export interface UpstreamStats {
  readonly upstream: string
  readonly inProgress: number
  readonly waiting: number
  /** Connections to them that are open. */
  readonly connections: number
  /** How many of them are in which state. */
  readonly states: Readonly<Record<UpstreamState, number>>
}

/** The addresses of one route, at this moment. */
export interface RouteStats {
  readonly route: string
  /** How many of them are in which state. */
  readonly states: Readonly<Record<HealthState['state'], number>>
}

/** What a process has to do with callers. */
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

/** The figures of several processes as those of one. */
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

/** How many series are kept of processes that have ended. */
const mostEndedSeries = 10_000

/** What a process had counted; nothing that was true of its last moment only. */
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
