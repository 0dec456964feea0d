import { verdictOf } from 'diana-limiter/http'
import { findSecret } from '../../settings/secret.ts'
import type { TracingSettings } from '../../settings/tracing-settings.ts'
import type { CallRecord } from '../call-record.ts'
import { isInShare, parseTraceparent, randomHex } from '../ids.ts'
import { CallTrace } from './call-trace.ts'
import { spansOf } from './otlp.ts'
import { SpanExporter } from './span-exporter.ts'

export interface TracingOptions {
  /** The folder that files of secrets are seen from. */
  readonly folder: string
  /** The caller's address as rules count it. */
  readonly addressOf: (record: CallRecord) => string | undefined
  /** True if a call comes from a trusted proxy. */
  readonly isTrusted: (record: CallRecord) => boolean
  readonly onTrouble: (trouble: string) => void
}

/**
 * Continues the traces of callers and begins those of all others. Whether a trace is recorded is for a trusted proxy to say; to
 * everybody else it is a share of all traces, so that no caller can make the gateway record every call.
 */
export class Tracing {
  readonly #settings: TracingSettings
  readonly #options: TracingOptions
  readonly #exporter: SpanExporter

  constructor(settings: TracingSettings, options: TracingOptions) {
    this.#settings = settings
    this.#options = options
    const headers = Object.entries(settings.headers).map(([name, value]) => {
      return [name, findSecret(value, `gateway.tracing.headers.${name}`, options.folder)]
    })
    this.#exporter = new SpanExporter({ ...settings, headers: Object.fromEntries(headers) }, options.onTrouble)
  }

  get exported(): number {
    return this.#exporter.exported
  }

  get dropped(): number {
    return this.#exporter.dropped
  }

  /** Gives a call its place in a trace, and its headers those that the service is to see. */
  begin(record: CallRecord): void {
    const { headers } = record.request
    const parent = parseTraceparent(headers.traceparent)
    const traceId = parent?.traceId ?? randomHex(16)
    const isSampled =
      parent !== undefined && this.#options.isTrusted(record)
        ? parent.isSampled
        : isInShare(traceId, this.#settings.sample)
    record.trace = new CallTrace({ traceId, parentId: parent?.parentId, isSampled })
    headers.traceparent = record.trace.traceparent
    // it belongs to a trace that cannot be continued
    if (parent === undefined) delete headers.tracestate
  }

  end(record: CallRecord): void {
    const { trace } = record
    if (trace === undefined || !trace.isSampled) return
    this.#exporter.add(trace.tries.length + 1, () =>
      spansOf(record, trace, {
        address: this.#options.addressOf(record),
        verdict: verdictOf(record.request),
        timeOrigin: Date.now() - performance.now(),
      }),
    )
  }

  close(): Promise<void> {
    return this.#exporter.close()
  }
}
