import type { Metric, Registry } from 'prom-client'
import { engineOf } from '../engine/engine-of.ts'
import type { Limiter } from '../limiter.ts'
import { durationBounds } from '../stats/durations.ts'
import type { Stats } from '../stats/stats.ts'
import { durationName, type Measured, measures } from './measure.ts'

/** The interface that a registry expects of a metric. */
interface Registered {
  name: string
  readonly help: string
  readonly type: string
  readonly aggregator: 'sum'
  get(): Promise<object>
  reset(): void
}

interface Sample {
  readonly metricName?: string
  readonly labels: Readonly<Record<string, string | number>>
  readonly value: number
}

/** Adds a limiter's measurements to a prom-client registry; they are read when the registry is. */
export function registerMetrics(measured: Limiter | Measured, registry: Pick<Registry, 'registerMetric'>): void {
  const readOnce = oncePerTurn(async () => [await statsOf(measured), await measured.status()] as const)
  for (const { name, help, kind, read } of measures) {
    register(registry, name, help, kind, async () => read(...(await readOnce())))
  }
  const { name, help } = durationName
  register(registry, name, help, 'histogram', async () => {
    const [{ durations }] = await readOnce()
    return Object.entries(durations).flatMap(([store, { counts, sumSeconds }]) =>
      counts.some(count => count > 0) ? histogram(store, counts, sumSeconds) : [],
    )
  })
}

function statsOf(measured: Limiter | Measured): Stats | Promise<Stats> {
  return 'stats' in measured ? measured.stats() : engineOf(measured).stats()
}

/** Reads once in a turn: a registry reads all its metrics in one turn of the event loop, so all of them show the same moment. */
function oncePerTurn<Result>(read: () => Promise<Result>): () => Promise<Result> {
  let known: Promise<Result> | undefined
  return () => {
    if (!known) {
      known = read()
      setImmediate(() => {
        known = undefined
      })
    }
    return known
  }
}

function histogram(store: string, counts: readonly number[], sum: number): Sample[] {
  const { name } = durationName
  let below = 0
  const buckets = [...durationBounds, '+Inf' as const].map((le, i): Sample => {
    below += counts[i] ?? 0
    return { metricName: `${name}_bucket`, labels: { le, store }, value: below }
  })
  const labels = { store }
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels, value: sum },
    { metricName: `${name}_count`, labels, value: below },
  ]
}

function register(
  registry: Pick<Registry, 'registerMetric'>,
  name: string,
  help: string,
  type: string,
  read: () => Promise<readonly Sample[]>,
): void {
  const metric: Registered = {
    name,
    help,
    type,
    aggregator: 'sum',
    // the registry gives counters another name while it speaks OpenMetrics
    get: async () => ({ name: metric.name, help, type, aggregator: 'sum', values: await read() }),
    reset: () => {},
  }
  // an object with a metric's face: the library itself is not needed to make one
  registry.registerMetric(metric as unknown as Metric)
}
