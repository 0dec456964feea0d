import type { CheckSettings } from '../../settings/upstreams/health-settings.ts'
import type { Connection } from '../clients.ts'
import type { Upstream } from '../upstream.ts'

const firstPauseMs = 500

/** Asks one address again and again how it is. */
export class HealthChecks {
  readonly #upstream: Upstream
  readonly #settings: CheckSettings
  #timer: NodeJS.Timeout | undefined
  #hasStopped = false

  constructor(upstream: Upstream, settings: CheckSettings) {
    this.#upstream = upstream
    this.#settings = settings
    // the first one soon, but not those of all addresses and workers at one moment
    this.#next(Math.random() * Math.min(firstPauseMs, settings.intervalMs))
  }

  stop(): void {
    this.#hasStopped = true
    clearTimeout(this.#timer)
  }

  #next(pauseMs: number): void {
    this.#timer = setTimeout(() => void this.#check(), pauseMs).unref()
  }

  async #check(): Promise<void> {
    const fault = await faultOf(this.#upstream, this.#settings)
    if (this.#hasStopped) return
    this.#upstream.health.check(performance.now(), fault)
    this.#next(this.#settings.intervalMs * (0.9 + Math.random() * 0.2))
  }
}

/** What is wrong with an address, if anything. Only the head of its answer is read. */
export async function faultOf(upstream: Upstream, settings: CheckSettings): Promise<string | undefined> {
  // a connection of its own: whether one can be made is part of the question
  const connection = upstream.clients.open()
  const timer = setTimeout(() => void connection.destroy(new Error('no answer in time')), settings.timeoutMs)
  try {
    const status = await statusAt(connection, upstream, settings)
    return settings.statuses.some(([from, to]) => status >= from && status <= to) ? undefined : `status ${status}`
  } catch (error) {
    return (error as Error).message || 'no answer'
  } finally {
    clearTimeout(timer)
    upstream.clients.discard(connection)
  }
}

async function statusAt(connection: Connection, upstream: Upstream, { path, host }: CheckSettings): Promise<number> {
  const { statusCode, body } = await connection.request({
    path: upstream.basePath + path,
    method: 'GET',
    headers: { host: host ?? upstream.url.host, 'user-agent': 'diana-health-check', connection: 'close' },
    ...(upstream.serverName === undefined ? {} : { servername: upstream.serverName }),
  } as Parameters<Connection['request']>[0])
  body.on('error', () => {}).destroy()
  return statusCode
}
