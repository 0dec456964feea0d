import { type HeaderLine, rateLimitHeaders, refusal, type Verdict } from 'diana-limiter'
import { status } from '../grpc/grpc-error.ts'
import { frameHeadBytes, writeFrameHead } from '../grpc/message-frames.ts'
import { ProtoWriter } from '../protobuf/proto-writer.ts'
import { writeStruct } from '../protobuf/struct.ts'

/** HeaderValueOption.append_action: an existing header is replaced. */
const overwrite = 2

const writer = new ProtoWriter()

/** Writes `envoy.service.auth.v3.CheckResponse`, as a frame of gRPC. */
export function writeCheckResponse(verdict: Verdict, nowMs: number): Buffer {
  writer.begin(frameHeadBytes)
  if (verdict.allowed) {
    writer.message(1, () => {})
    // OkHttpResponse.response_headers_to_add = 6
    writer.message(3, () => writeHeaders(6, rateLimitHeaders(verdict, nowMs)))
    return writer.end(writeFrameHead)
  }
  const { status: httpStatus, headers, body } = refusal(verdict, nowMs)
  const { rule = '', reason = 'limit', retryAfterMs } = verdict
  writer.message(1, () => {
    writer.number(1, reason === 'denied' ? status.permissionDenied : status.resourceExhausted)
    writer.text(2, rule === '' ? reason : `${reason}: ${rule}`)
  })
  writeDenied(httpStatus, headers, body)
  const retry = Number.isFinite(retryAfterMs) ? { retryAfterMs: Math.ceil(retryAfterMs) } : {}
  writer.message(4, () => writeStruct(writer, { rule, reason, ...retry }))
  return writer.end(writeFrameHead)
}

/** Writes the answer to a request that no rule was asked about. */
export function writeBadRequest(detail: string): Buffer {
  writer.begin(frameHeadBytes)
  writer.message(1, () => void writer.number(1, status.invalidArgument).text(2, detail))
  const body = JSON.stringify({ type: 'about:blank', title: 'Bad Request', status: 400, detail })
  writeDenied(400, [['Content-Type', 'application/problem+json']], body)
  return writer.end(writeFrameHead)
}

/** Writes DeniedHttpResponse: status = 1, headers = 2, body = 3. */
function writeDenied(httpStatus: number, headers: readonly HeaderLine[], body: string): void {
  writer.message(2, () => {
    writer.message(1, () => void writer.number(1, httpStatus))
    writeHeaders(2, headers)
    writer.text(3, body)
  })
}

function writeHeaders(field: number, headers: readonly HeaderLine[]): void {
  for (const [key, value] of headers) {
    writer.message(field, () => {
      writer.message(1, () => void writer.text(1, key).text(2, value)).number(3, overwrite)
    })
  }
}
