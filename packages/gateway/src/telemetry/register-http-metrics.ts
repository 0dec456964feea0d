import type { Metric, Registry } from 'prom-client'
import { httpMeasures } from './http-measures.ts'
import type { HttpStats } from './http-stats.ts'

/** Adds the measurements of HTTP traffic to a registry; they are read when the registry is. */
export function registerHttpMetrics(read: () => HttpStats | Promise<HttpStats>, registry: Registry): void {
  let current: Promise<HttpStats> | undefined
  // a registry asks all its metrics in one turn of the event loop, and all of them tell of the same moment
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
