import { attempt, reportFault } from 'diana-limiter/gateway'
import { Agent, request } from 'undici'
import type { TracingSettings } from '../../settings/tracing-settings.ts'
import { exportRequest, type OtlpSpan } from './otlp.ts'

const maxQueued = 4096
const maxBatch = 512
const pauseMs = 1000
const maxPauseMs = 30_000
const timeoutMs = 5000
const closeMs = 1000
const troubleMs = 60_000

/** Statuses after which OTLP says to try again. */
const retryable: readonly number[] = [429, 502, 503, 504]

/**
 * Sends spans to a collector in the background, as JSON over HTTP (OTLP). The queue is bounded: while the collector is slow or
 * cannot be reached, further spans are dropped and counted, and calls are served as ever.
 */
export class SpanExporter {
  readonly #url: string
  readonly #settings: TracingSettings
  readonly #onTrouble: (trouble: string) => void
  readonly #agent = new Agent({ connections: 1 })
  #queue: OtlpSpan[] = []
  #timer: NodeJS.Timeout | undefined
  #sending: Promise<void> | undefined
  #pauseMs = pauseMs
  #exported = 0
  #dropped = 0
  #troubleAt = Number.NEGATIVE_INFINITY

  constructor(settings: TracingSettings, onTrouble: (trouble: string) => void) {
    const base = settings.endpoint.replace(/\/$/, '')
    this.#url = base.endsWith('/v1/traces') ? base : `${base}/v1/traces`
    this.#settings = settings
    this.#onTrouble = onTrouble
  }

  get exported(): number {
    return this.#exported
  }

  get dropped(): number {
    return this.#dropped
  }

  /** Takes as many spans as `count` says; they are made only if there is room for them. */
  add(count: number, create: () => readonly OtlpSpan[]): void {
    if (this.#queue.length + count > maxQueued) {
      this.#drop(count, 'the collector is too slow')
      return
    }
    this.#queue.push(...create())
    this.#flushLater()
  }

  /** Sends what is queued, within a second. */
  async close(): Promise<void> {
    let late: NodeJS.Timeout | undefined
    const deadline = new Promise<void>(resolve => {
      late = setTimeout(resolve, closeMs)
    })
    await Promise.race([this.#flush(), deadline]).finally(() => clearTimeout(late))
    clearTimeout(this.#timer)
    this.#dropped += this.#queue.length
    this.#queue = []
    await this.#agent.destroy()
  }

  #flush(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = undefined
      // spans that came in the meantime, or could not be sent
      if (this.#queue.length > 0) this.#flushLater()
    })
    return this.#sending
  }

  #flushLater(): void {
    this.#timer ??= setTimeout(() => attempt('spans', () => this.#flush()), this.#pauseMs).unref()
  }

  async #sendAll(): Promise<void> {
    while (this.#queue.length > 0) {
      const batch = this.#queue.slice(0, maxBatch)
      const trouble = await this.#send(batch)
      if (trouble === undefined) {
        this.#exported += batch.length
        this.#pauseMs = pauseMs
      } else if (trouble.mayRetry) {
        this.#report(trouble.reason)
        this.#pauseMs = Math.min(this.#pauseMs * 2, maxPauseMs)
        return
      } else this.#drop(batch.length, trouble.reason)
      this.#queue.splice(0, batch.length)
    }
  }

  /** Sends a batch; undefined if the collector has taken it. */
  async #send(batch: readonly OtlpSpan[]): Promise<{ reason: string; mayRetry: boolean } | undefined> {
    const { headers } = this.#settings
    try {
      const { statusCode, body } = await request(this.#url, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json' },
        body: this.#textOf(batch),
        dispatcher: this.#agent,
        signal: AbortSignal.timeout(timeoutMs),
      })
      await body.dump()
      if (statusCode < 300) return undefined
      return { reason: `the collector answers ${statusCode}`, mayRetry: retryable.includes(statusCode) }
    } catch (error) {
      return { reason: `the collector cannot be reached (${(error as Error).message})`, mayRetry: true }
    }
  }

  /** Spans that cannot be written are left out: the others would never be sent. */
  #textOf(batch: readonly OtlpSpan[]): string {
    const { serviceName } = this.#settings
    try {
      return exportRequest(serviceName, batch)
    } catch (error) {
      reportFault('spans', error)
      return exportRequest(
        serviceName,
        batch.filter(span => attempt('spans', () => exportRequest(serviceName, [span]))),
      )
    }
  }

  #drop(spans: number, reason: string): void {
    this.#dropped += spans
    this.#report(`spans are dropped: ${reason}`)
  }

  #report(trouble: string): void {
    const now = performance.now()
    if (now - this.#troubleAt < troubleMs) return
    this.#troubleAt = now
    attempt('spans', () => this.#onTrouble(`gateway.tracing: ${trouble}`))
  }
}
