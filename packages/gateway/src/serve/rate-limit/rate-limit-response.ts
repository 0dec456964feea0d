import { type Decision, type HeaderLine, rateLimitHeaders, refusal, type Verdict } from 'diana-limiter'
import { frameHeadBytes, writeFrameHead } from '../grpc/message-frames.ts'
import { ProtoWriter } from '../protobuf/proto-writer.ts'
import { writeStruct } from '../protobuf/struct.ts'

const code = { ok: 1, overLimit: 2 } as const
const maxUint32 = 2 ** 32 - 1

/** The units of `RateLimitResponse.RateLimit.Unit` by their length; other periods have none. */
const unitOf: ReadonlyMap<number, number> = new Map([
  [1000, 1],
  [60_000, 2],
  [3_600_000, 3],
  [86_400_000, 4],
  [30 * 86_400_000, 5],
  [365 * 86_400_000, 6],
  [7 * 86_400_000, 7],
])

const writer = new ProtoWriter()

/** Writes `envoy.service.ratelimit.v3.RateLimitResponse`, as a frame of gRPC: one status for each descriptor, in their order. */
export function writeRateLimitResponse(verdicts: readonly Verdict[], nowMs: number): Buffer {
  const refused = longestRefusal(verdicts)
  writer.begin(frameHeadBytes)
  writer.number(1, refused === undefined ? code.ok : code.overLimit)
  for (const verdict of verdicts) writer.message(2, () => writeStatus(verdict))
  for (const [key, value] of headersOf(verdicts, refused, nowMs)) {
    writer.message(3, () => void writer.text(1, key).text(2, value))
  }
  const metadata = metadataOf(verdicts, refused)
  if (metadata !== undefined) writer.message(6, () => writeStruct(writer, metadata))
  return writer.end(writeFrameHead)
}

function writeStatus({ allowed, decisions, retryAfterMs }: Verdict): void {
  writer.number(1, allowed ? code.ok : code.overLimit)
  const tightest = tightestOf(decisions)
  if (tightest === undefined) return
  const { limit, periodMs, rule } = tightest
  writer.message(2, () => {
    writer
      .number(1, uint32(limit))
      .number(2, unitOf.get(periodMs) ?? 0)
      .text(3, nameOf(rule, tightest))
  })
  writer.number(3, uint32(tightest.remaining))
  const ms = allowed ? tightest.resetAfterMs : retryAfterMs
  if (Number.isFinite(ms)) writer.message(4, () => writeDuration(ms))
}

/** Names a rule by its limit, since a unit can only be one second, one minute and so on. */
function nameOf(rule: string, { limit, periodMs }: Decision): string {
  return unitOf.has(periodMs) || periodMs === 0 ? rule : `${rule} (${limit} in ${periodMs / 1000} s)`
}

function writeDuration(ms: number): void {
  const whole = Math.ceil(ms)
  writer.number(1, Math.floor(whole / 1000)).number(2, (whole % 1000) * 1_000_000)
}

function headersOf(verdicts: readonly Verdict[], refused: Verdict | undefined, nowMs: number): readonly HeaderLine[] {
  const [only] = verdicts
  if (refused !== undefined) {
    return refusal(refused, nowMs).headers.filter(([name]) => name !== 'Content-Type' && name !== 'Cache-Control')
  }
  if (verdicts.length === 1) return rateLimitHeaders(only!, nowMs)
  return rateLimitHeaders({ decisions: verdicts.flatMap(({ decisions }) => decisions), answer: only!.answer }, nowMs)
}

function metadataOf(verdicts: readonly Verdict[], refused: Verdict | undefined): Record<string, unknown> | undefined {
  if (refused !== undefined) {
    const { rule = '', reason = 'limit', retryAfterMs } = refused
    return { rule, reason, ...(Number.isFinite(retryAfterMs) && { retryAfterMs: Math.ceil(retryAfterMs) }) }
  }
  const shadowed: string[] = []
  for (const { decisions } of verdicts) {
    for (const { rule, allowed } of decisions) if (!allowed && !shadowed.includes(rule)) shadowed.push(rule)
  }
  return shadowed.length === 0 ? undefined : { shadow: shadowed }
}

function longestRefusal(verdicts: readonly Verdict[]): Verdict | undefined {
  let longest: Verdict | undefined
  for (const verdict of verdicts) {
    if (!verdict.allowed && (longest === undefined || verdict.retryAfterMs > longest.retryAfterMs)) longest = verdict
  }
  return longest
}

/** Returns the limit that refuses, or else the one with least left; shadow limits are not shown. */
function tightestOf(decisions: readonly Decision[]): Decision | undefined {
  let tightest: Decision | undefined
  for (const one of decisions) {
    if (one.shadow) continue
    if (tightest === undefined || (tightest.allowed ? !one.allowed || one.remaining < tightest.remaining : false)) {
      tightest = one
    }
  }
  return tightest
}

function uint32(value: number): number {
  return Math.min(maxUint32, Math.max(0, Math.floor(value)))
}
