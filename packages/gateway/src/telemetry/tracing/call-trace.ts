import type { Upstream } from '../../services/upstream.ts'
import { formatTraceparent, randomHex } from '../ids.ts'

/** One try to get an answer from a service. */
export interface TrySpan {
  readonly spanId: string
  readonly upstream: Upstream
  readonly beganAt: number
  endedAt: number
  status: number
  error: Error | undefined
}

export interface CallTraceOptions {
  readonly traceId: string
  /** The span of the caller, if it named one. */
  readonly parentId: string | undefined
  readonly isSampled: boolean
}

/** One call as a part of a trace: the span of the call itself, and below it one for each try. */
export class CallTrace {
  readonly traceId: string
  readonly parentId: string | undefined
  readonly isSampled: boolean
  readonly spanId: string = randomHex(8)
  readonly tries: TrySpan[] = []

  constructor({ traceId, parentId, isSampled }: CallTraceOptions) {
    this.traceId = traceId
    this.parentId = parentId
    this.isSampled = isSampled
  }

  /** Returns the header for the service: the span of the current try is the parent of its own. */
  get traceparent(): string {
    const parentId = this.tries.at(-1)?.spanId ?? this.spanId
    return formatTraceparent({ traceId: this.traceId, parentId, isSampled: this.isSampled })
  }

  /** Replaces the header of an earlier try in a list of headers, names and values in turn. */
  tellService(headers: string[]): void {
    if (!this.isSampled) return
    for (let at = 0; at < headers.length; at += 2) {
      if (headers[at] === 'traceparent') headers[at + 1] = this.traceparent
    }
  }

  tryBegan(upstream: Upstream, now: number): void {
    if (!this.isSampled) return
    this.tries.push({ spanId: randomHex(8), upstream, beganAt: now, endedAt: 0, status: 0, error: undefined })
  }

  tryAnswered(status: number): void {
    const current = this.tries.at(-1)
    if (current) current.status = status
  }

  tryEnded(now: number, error: Error | undefined): void {
    const current = this.tries.at(-1)
    if (current === undefined) return
    current.endedAt = now
    current.error = error
  }
}
