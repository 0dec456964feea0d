import type { Metric, Registry } from 'prom-client'
import {
  durationBounds,
  type HistogramStats,
  type HttpStats,
  type TrafficStats,
  type UpstreamState,
  type UpstreamStats,
} from './http-stats.ts'

/** One measurement of HTTP traffic. Labels are routes, addresses and known methods, never what a caller can invent. */
export interface HttpMeasure {
  readonly name: string
  readonly kind: 'counter' | 'gauge' | 'histogram'
  readonly help: string
  read(figures: HttpStats): readonly HttpSample[]
}

export interface HttpSample {
  /** The series of a histogram; that of the measurement unless given. */
  readonly metricName?: string
  readonly labels: Readonly<Record<string, string | number>>
  readonly value: number
}

const firstByte = 'diana_http_upstream_first_byte_seconds'
const routeStates = ['healthy', 'resting', 'unhealthy'] as const
const states: readonly UpstreamState[] = ['healthy', 'resting', 'unhealthy', 'draining']
const duration = 'diana_http_request_duration_seconds'

export const httpMeasures: readonly HttpMeasure[] = [
  {
    name: 'diana_http_requests_total',
    kind: 'counter',
    help: 'Calls that have ended, each once; route and upstream are empty for calls that no service was asked about.',
    read: perTraffic(one =>
      Object.entries(one.calls).map(([name, value]) => {
        const [method = '', status = ''] = name.split(' ')
        return { labels: { method, status }, value }
      }),
    ),
  },
  {
    name: duration,
    kind: 'histogram',
    help: 'How long calls took, from their first line to the end of the answer.',
    read: perTraffic(one => histogram(duration, one.duration)),
  },
  {
    name: firstByte,
    kind: 'histogram',
    help: 'How long services took to begin an answer, from the first try on.',
    read: perTraffic(one => histogram(firstByte, one.firstByte)),
  },
  {
    name: 'diana_http_request_bytes_total',
    kind: 'counter',
    help: 'Bytes that callers sent, headers included.',
    read: perTraffic(({ bytesIn }) => [{ labels: {}, value: bytesIn }]),
  },
  {
    name: 'diana_http_response_bytes_total',
    kind: 'counter',
    help: 'Bytes that callers were sent, headers included.',
    read: perTraffic(({ bytesOut }) => [{ labels: {}, value: bytesOut }]),
  },
  {
    name: 'diana_http_retries_total',
    kind: 'counter',
    help: 'Further tries to get an answer, counted at the address of the last one.',
    read: perTraffic(({ retries }) => (retries > 0 ? [{ labels: {}, value: retries }] : [])),
  },
  {
    name: 'diana_http_gateway_errors_total',
    kind: 'counter',
    help: 'Calls that the gateway answered with a 5xx of its own, in place of a service; refusals by rules are not among them.',
    read: perTraffic(({ errors }) => Object.entries(errors).map(([reason, value]) => ({ labels: { reason }, value }))),
  },
  {
    name: 'diana_http_rejected_total',
    kind: 'counter',
    help: 'Calls and connections that were turned away before a rule was asked, or by the throttle of a route (overload).',
    read: ({ rejected }) => Object.entries(rejected).map(([reason, value]) => ({ labels: { reason }, value })),
  },
  {
    name: 'diana_http_requests_in_progress',
    kind: 'gauge',
    help: 'Calls under way, also those that have become WebSockets.',
    read: ({ inProgress }) => [{ labels: {}, value: inProgress }],
  },
  {
    name: 'diana_http_connections',
    kind: 'gauge',
    help: "Callers' connections that are open.",
    read: ({ connections }) => [{ labels: {}, value: connections }],
  },
  {
    name: 'diana_http_upstream_in_progress',
    kind: 'gauge',
    help: 'Calls that are under way at an address of a service.',
    read: perUpstream(({ inProgress }) => inProgress),
  },
  {
    name: 'diana_http_upstream_queue',
    kind: 'gauge',
    help: 'Calls that wait for a connection to an address of a service.',
    read: perUpstream(({ waiting }) => waiting),
  },
  {
    name: 'diana_http_upstream_connections',
    kind: 'gauge',
    help: 'Connections to an address of a service that are open.',
    read: perUpstream(({ connections }) => connections),
  },
  {
    name: 'diana_http_upstream_state',
    kind: 'gauge',
    help: 'How many machines behind an address of a service are in a state, as each worker sees them.',
    read: ({ upstreams }) =>
      states.flatMap(state =>
        perUpstream(one => one.states[state])({ upstreams } as HttpStats).map(({ labels, value }) => ({
          labels: { ...labels, state },
          value,
        })),
      ),
  },
  {
    name: 'diana_http_route_addresses',
    kind: 'gauge',
    help: 'How many addresses of a route are in a state, as each worker sees them.',
    read: ({ routes }) =>
      routes.flatMap(({ route, states }) =>
        routeStates.map(state => ({ labels: { route, state }, value: states[state] })),
      ),
  },
  {
    name: 'diana_access_log_dropped_total',
    kind: 'counter',
    help: 'Lines of the access log that were dropped because they could not be written in time.',
    read: ({ droppedLines }) => [{ labels: {}, value: droppedLines }],
  },
  {
    name: 'diana_trace_spans_exported_total',
    kind: 'counter',
    help: 'Spans that the collector has taken.',
    read: ({ exportedSpans }) => [{ labels: {}, value: exportedSpans }],
  },
  {
    name: 'diana_trace_spans_dropped_total',
    kind: 'counter',
    help: 'Spans that were dropped because the collector is too slow or has refused them.',
    read: ({ droppedSpans }) => [{ labels: {}, value: droppedSpans }],
  },
  {
    name: 'diana_internal_errors_total',
    kind: 'counter',
    help: "Errors of Diana's own that ended no process, by the place that caught them; uncaught: nothing but the last resort did.",
    read: ({ faults }) =>
      Object.entries({ uncaught: 0, ...faults }).map(([place, value]) => ({ labels: { place }, value })),
  },
]

function perTraffic(read: (one: TrafficStats) => readonly HttpSample[]): HttpMeasure['read'] {
  return ({ traffic }) =>
    traffic.flatMap(one => {
      const { route, upstream } = one
      return read(one).map(sample => ({ ...sample, labels: { route, upstream, ...sample.labels } }))
    })
}

/** Sums up a number by address: several routes may have connections of their own to one. */
function perUpstream(read: (one: UpstreamStats) => number): HttpMeasure['read'] {
  return ({ upstreams }) => {
    const sums = new Map<string, number>()
    for (const one of upstreams) sums.set(one.upstream, (sums.get(one.upstream) ?? 0) + read(one))
    return [...sums].map(([upstream, value]) => ({ labels: { upstream }, value }))
  }
}

/** Buckets hold all that is below them, as Prometheus wants it. */
function histogram(name: string, { counts, sumSeconds }: HistogramStats): HttpSample[] {
  let below = 0
  const buckets = [...durationBounds, '+Inf' as const].map((le, at): HttpSample => {
    below += counts[at] ?? 0
    return { metricName: `${name}_bucket`, labels: { le }, value: below }
  })
  if (below === 0) return []
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels: {}, value: sumSeconds },
    { metricName: `${name}_count`, labels: {}, value: below },
  ]
}

/** Adds the measurements of HTTP traffic to a registry; they are read when the registry is. */
export function registerHttpMetrics(read: () => HttpStats | Promise<HttpStats>, registry: Registry): void {
  let current: Promise<HttpStats> | undefined
  // a registry asks all its metrics in one turn of the event loop, and all of them report the same moment
  const readOnce = (): Promise<HttpStats> => {
    current ??= Promise.resolve(read())
    setImmediate(() => {
      current = undefined
    })
    return current
  }
  for (const { name, help, kind, read: samples } of httpMeasures) {
    const metric = {
      ...{ name, help, type: kind, aggregator: 'sum' },
      get: async () => ({
        // the registry renames counters for OpenMetrics
        ...{ name: metric.name, help, type: kind, aggregator: 'sum' },
        values: samples(await readOnce()),
      }),
      reset: () => {},
    }
    registry.registerMetric(metric as unknown as Metric)
  }
}
