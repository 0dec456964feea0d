import type { Verdict } from 'diana-limiter'
import { version } from '../../version.ts'
import type { CallRecord } from '../call-record.ts'
import type { CallTrace, TrySpan } from './call-trace.ts'

/** A span in the JSON of OTLP. */
export interface OtlpSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string | undefined
  readonly name: string
  readonly kind: number
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly attributes: readonly OtlpAttribute[]
  readonly status: { readonly code?: number; readonly message?: string }
}

interface OtlpAttribute {
  readonly key: string
  readonly value: { readonly stringValue: string } | { readonly intValue: string }
}

/** The details that the record of a call does not have. */
export interface SpanDetails {
  readonly address: string | undefined
  readonly verdict: Verdict | undefined
  /** The milliseconds to add to a time of `performance.now()` to get milliseconds since 1970. */
  readonly timeOrigin: number
}

type Attributes = Readonly<Record<string, string | number | undefined>>

const serverKind = 2
const clientKind = 3
const errorStatus = 2
const knownMethods = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'CONNECT', 'OPTIONS', 'TRACE', 'PATCH']

/** Returns the spans of one call, named by the semantic conventions for HTTP. */
export function spansOf(record: CallRecord, trace: CallTrace, details: SpanDetails): OtlpSpan[] {
  return [serverSpan(record, trace, details), ...trace.tries.map((_, at) => clientSpan(record, trace, at, details))]
}

/** Returns the body of a request to a collector. */
export function exportRequest(serviceName: string, spans: readonly OtlpSpan[]): string {
  const resource = { attributes: attributesOf({ 'service.name': serviceName }) }
  const scope = { name: 'diana-gateway', version }
  return JSON.stringify({ resourceSpans: [{ resource, scopeSpans: [{ scope, spans }] }] })
}

function serverSpan(record: CallRecord, trace: CallTrace, { address, verdict, timeOrigin }: SpanDetails): OtlpSpan {
  const { method = '', request, route, status } = record
  const { headers, httpVersion } = request
  const host = serverOf(headers.host)
  const isFailure = status >= 500 || record.end === 'broken'
  return {
    ...{ traceId: trace.traceId, spanId: trace.spanId, parentSpanId: trace.parentId },
    ...{ name: spanName(method, route?.settings.path), kind: serverKind },
    ...{ startTimeUnixNano: nano(record.startedAt + timeOrigin), endTimeUnixNano: nano(record.endedAt + timeOrigin) },
    attributes: attributesOf({
      ...methodAttributes(method),
      'url.path': record.target.split('?', 1)[0]!.slice(0, 1024),
      'url.scheme': 'encrypted' in record.socket ? 'https' : 'http',
      'http.route': route?.settings.path,
      'http.response.status_code': status,
      'server.address': host?.hostname,
      'server.port': host?.port ? Number(host.port) : undefined,
      'client.address': address,
      'network.protocol.version': httpVersion,
      'user_agent.original': headers['user-agent']?.slice(0, 512),
      'error.type': isFailure ? String(status) : undefined,
      'diana.verdict': verdict && (verdict.allowed ? 'passed' : 'refused'),
      'diana.rule': verdict?.rule,
      'diana.request_id': record.requestId,
      'diana.end': record.end,
    }),
    status: isFailure ? { code: errorStatus } : {},
  }
}

function clientSpan(record: CallRecord, trace: CallTrace, at: number, { timeOrigin }: SpanDetails): OtlpSpan {
  const { spanId, upstream, beganAt, endedAt, status, error } = trace.tries[at] as TrySpan
  const { method = '' } = record
  const { url } = upstream
  const failure = error
    ? ((error as NodeJS.ErrnoException).code ?? error.name)
    : status >= 400
      ? String(status)
      : undefined
  return {
    ...{ traceId: trace.traceId, spanId, parentSpanId: trace.spanId, name: spanName(method), kind: clientKind },
    startTimeUnixNano: nano(beganAt + timeOrigin),
    endTimeUnixNano: nano((endedAt === 0 ? record.endedAt : endedAt) + timeOrigin),
    attributes: attributesOf({
      ...methodAttributes(method),
      'server.address': url.hostname,
      'server.port': Number(url.port) || (url.protocol === 'https:' ? 443 : 80),
      'url.full': url.origin,
      'http.response.status_code': status === 0 ? undefined : status,
      'http.request.resend_count': at === 0 ? undefined : at,
      'error.type': failure,
    }),
    status: failure === undefined ? {} : { code: errorStatus },
  }
}

function spanName(method: string, route?: string): string {
  const known = knownMethods.includes(method) ? method : 'HTTP'
  return route === undefined ? known : `${known} ${route}`
}

function methodAttributes(method: string): Attributes {
  if (knownMethods.includes(method)) return { 'http.request.method': method }
  return { 'http.request.method': '_OTHER', 'http.request.method_original': method }
}

function serverOf(host: string | undefined): URL | undefined {
  return host !== undefined && URL.canParse(`http://${host}`) ? new URL(`http://${host}`) : undefined
}

function attributesOf(values: Attributes): OtlpAttribute[] {
  const attributes: OtlpAttribute[] = []
  for (const [key, value] of Object.entries(values)) {
    if (typeof value === 'number') attributes.push({ key, value: { intValue: String(value) } })
    else if (value !== undefined) attributes.push({ key, value: { stringValue: value } })
  }
  return attributes
}

/** Writes a time in nanoseconds: a number holds microseconds since 1970 exactly, and nanoseconds it does not. */
function nano(ms: number): string {
  return `${Math.round(ms * 1000)}000`
}
