import { attempt, textOf } from 'diana-limiter/gateway'
import type { CheckSettings } from '../../settings/upstreams/health-settings.ts'
import type { Health } from '../address-state.ts'
import type { Clients, Connection } from '../clients.ts'

const firstPauseMs = 500

/** An address that is checked. */
export interface CheckedUpstream {
  readonly url: URL
  readonly basePath: string
  readonly serverName: string | undefined
  readonly clients: Pick<Clients, 'open' | 'discard'>
  readonly health: Pick<Health, 'check'>
}

/** Checks one address at intervals. */
export class HealthChecks {
  readonly #upstream: CheckedUpstream
  readonly #settings: CheckSettings
  #timer: NodeJS.Timeout | undefined
  #hasStopped = false

  constructor(upstream: CheckedUpstream, settings: CheckSettings) {
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
    const fault = await faultOf(this.#upstream, this.#settings).catch(error => textOf(error))
    if (this.#hasStopped) return
    attempt('health checks', () => this.#upstream.health.check(performance.now(), fault))
    this.#next(this.#settings.intervalMs * (0.9 + Math.random() * 0.2))
  }
}

/** Returns what is wrong with an address, if anything. Only the head of its answer is read. */
export async function faultOf(upstream: CheckedUpstream, settings: CheckSettings): Promise<string | undefined> {
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

async function statusAt(
  connection: Connection,
  upstream: CheckedUpstream,
  { path, host }: CheckSettings,
): Promise<number> {
  const { statusCode, body } = await connection.request({
    path: upstream.basePath + path,
    method: 'GET',
    headers: { host: host ?? upstream.url.host, 'user-agent': 'diana-health-check', connection: 'close' },
    ...(upstream.serverName === undefined ? {} : { servername: upstream.serverName }),
  } as Parameters<Connection['request']>[0])
  body.on('error', () => {}).destroy()
  return statusCode
}
