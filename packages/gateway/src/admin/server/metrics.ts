import type { registerMetrics } from 'diana-limiter/prom-client'
import type { Registry } from 'prom-client'
import type { HttpStats } from '../../telemetry/http-stats.ts'
import type { WrongTokens } from '../identity/guesses.ts'

/** The sources of all measurements. */
interface Measured {
  readonly limits: Parameters<typeof registerMetrics>[0]
  readonly httpStats: (() => HttpStats | Promise<HttpStats>) | undefined
  readonly wrongTokens: () => WrongTokens
}

/** Reads the measurements as Prometheus wants them. prom-client is loaded when they are asked for the first time. */
export function createMetrics(measured: Measured): () => Promise<{ readonly type: string; readonly text: string }> {
  let opened: Promise<Registry> | undefined
  return async () => {
    opened ??= openRegistry(measured)
    const registry = await opened
    return { type: registry.contentType, text: await registry.metrics() }
  }
}

async function openRegistry({ limits, httpStats, wrongTokens }: Measured): Promise<Registry> {
  const [{ Registry }, { registerMetrics }, { registerHttpMetrics }, { registerAdminMetrics }] = await Promise.all([
    import('prom-client'),
    import('diana-limiter/prom-client'),
    import('../../telemetry/http-measures.ts'),
    import('./admin-metrics.ts'),
  ])
  const registry = new Registry()
  registerMetrics(limits, registry)
  if (httpStats) registerHttpMetrics(httpStats, registry)
  registerAdminMetrics(wrongTokens, registry)
  return registry
}
