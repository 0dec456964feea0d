import type { Metric, Registry } from 'prom-client'
import type { HttpFigures } from './http-figures.ts'
import { httpMeasures } from './http-measures.ts'

/** Adds the measurements of HTTP traffic to a registry; they are read when the registry is. */
export function registerHttpMetrics(read: () => HttpFigures | Promise<HttpFigures>, registry: Registry): void {
  let current: Promise<HttpFigures> | undefined
  // a registry asks all its metrics in one turn of the event loop, and all of them tell of the same moment
  const readOnce = (): Promise<HttpFigures> => {
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
