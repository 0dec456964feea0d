import type { registerMetrics } from 'diana-limiter/prom-client'
import type { Counter, Registry } from 'prom-client'
import type { HttpStats } from '../../telemetry/http-stats.ts'
import type { WrongTokens } from '../identity/guesses.ts'

/** The measurement of the admin API itself. */
export const wrongTokensName: { readonly name: string; readonly help: string } = {
  name: 'diana_admin_wrong_tokens_total',
  help: 'Wrong tokens that the admin API was sent: compared, or delayed (answered with 429, because too many had been wrong).',
}

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
  const [{ collectDefaultMetrics, Counter, Registry }, { registerMetrics }, { registerHttpMetrics }] =
    await Promise.all([
      import('prom-client'),
      import('diana-limiter/prom-client'),
      import('../../telemetry/http-measures.ts'),
    ])
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  // gauges with the ending of counters, which promtool rejects
  for (const name of ['handles', 'requests', 'resources']) registry.removeSingleMetric(`nodejs_active_${name}_total`)
  registerMetrics(limits, registry)
  if (httpStats) registerHttpMetrics(httpStats, registry)
  // it is read when the registry is
  const counter: Counter<'result'> = new Counter({
    ...wrongTokensName,
    labelNames: ['result'],
    registers: [registry],
    collect() {
      counter.reset()
      for (const [result, value] of Object.entries(wrongTokens())) counter.inc({ result }, value)
    },
  })
  return registry
}
