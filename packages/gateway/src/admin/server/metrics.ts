import type { registerMetrics } from 'diana-limiter/prom-client'
import type { Registry } from 'prom-client'
import type { HttpStats } from '../../telemetry/http-stats.ts'

type Measured = Parameters<typeof registerMetrics>[0]

/** Reads the measurements as Prometheus wants them. prom-client is loaded when they are asked for the first time. */
export function createMetrics(
  measured: Measured,
  httpStats: (() => HttpStats | Promise<HttpStats>) | undefined,
): () => Promise<{ readonly type: string; readonly text: string }> {
  let opened: Promise<Registry> | undefined
  return async () => {
    opened ??= openRegistry(measured, httpStats)
    const registry = await opened
    return { type: registry.contentType, text: await registry.metrics() }
  }
}

async function openRegistry(
  measured: Measured,
  httpStats: (() => HttpStats | Promise<HttpStats>) | undefined,
): Promise<Registry> {
  const [{ Registry }, { registerMetrics }, { registerHttpMetrics }] = await Promise.all([
    import('prom-client'),
    import('diana-limiter/prom-client'),
    import('../../telemetry/register-http-metrics.ts'),
  ])
  const registry = new Registry()
  registerMetrics(measured, registry)
  if (httpStats) registerHttpMetrics(httpStats, registry)
  return registry
}
