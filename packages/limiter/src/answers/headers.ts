import type { HeaderStyle } from '../rules/rule.ts'
import {
  type HeaderSink,
  isUnnamed,
  type Limits,
  resetMs,
  resetSeconds,
  whole,
  windowOf,
  writeDraft11,
} from './draft-11.ts'
import { tightestLimit, writeTokenHeaders } from './token-headers.ts'

/** A header's name and value. */
export type HeaderLine = readonly [name: string, value: string]

type HeaderWriter = <Reply>(limits: Limits, sink: HeaderSink<Reply>, reply: Reply, nowMs: () => number) => void

const intoLines: HeaderSink<HeaderLine[]> = {
  setHeader: (lines, name, value) => {
    lines.push([name, value])
  },
}

/** Writes the rate limit headers of any answer, in the style that `answer.headers` names. */
export const headerWriters: Readonly<Record<HeaderStyle, HeaderWriter>> = {
  'draft-11': writeDraft11,
  'draft-7': writeDraft7,
  'draft-6': writeDraft6,
  legacy: writeLegacy,
  none: () => {},
}

/** Returns the rate limit headers of any answer. Shadow limits are not shown. */
export function rateLimitHeaders(verdict: Limits, nowMs: number): HeaderLine[] {
  const lines: HeaderLine[] = []
  headerWriters[verdict.answer.headers](verdict, intoLines, lines, () => nowMs)
  if (verdict.answer.tokenHeaders === true) writeTokenHeaders(verdict, intoLines, lines)
  return lines
}

/** Writes draft 7: the policies without names, and the numbers of the limit that binds most in one header. */
function writeDraft7<Reply>(verdict: Limits, sink: HeaderSink<Reply>, reply: Reply): void {
  const tightest = tightestLimit(verdict)
  if (tightest === undefined) return
  const seconds = resetSeconds(tightest)
  const reset = seconds === undefined ? '' : `, reset=${seconds}`
  sink.setHeader(reply, 'RateLimit-Policy', unnamedPolicies(verdict))
  const numbers = `limit=${whole(tightest.limit)}, remaining=${whole(tightest.remaining)}${reset}`
  sink.setHeader(reply, 'RateLimit', numbers)
}

/** Writes draft 6: the policies without names, and the numbers of the limit that binds most. */
function writeDraft6<Reply>(verdict: Limits, sink: HeaderSink<Reply>, reply: Reply): void {
  const tightest = tightestLimit(verdict)
  if (tightest === undefined) return
  const seconds = resetSeconds(tightest)
  sink.setHeader(reply, 'RateLimit-Policy', unnamedPolicies(verdict))
  sink.setHeader(reply, 'RateLimit-Limit', `${whole(tightest.limit)}`)
  sink.setHeader(reply, 'RateLimit-Remaining', `${whole(tightest.remaining)}`)
  if (seconds !== undefined) sink.setHeader(reply, 'RateLimit-Reset', `${seconds}`)
}

function unnamedPolicies({ decisions }: Limits): string {
  let policies = ''
  for (const decision of decisions) {
    if (isUnnamed(decision)) continue
    policies += `${policies === '' ? '' : ', '}${whole(decision.limit)}${windowOf(decision)}`
  }
  return policies
}

/** Writes X-RateLimit-*: servers disagree on Reset; this is seconds since 1970, as GitHub and express-rate-limit send it. */
function writeLegacy<Reply>(verdict: Limits, sink: HeaderSink<Reply>, reply: Reply, nowMs: () => number): void {
  const tightest = tightestLimit(verdict)
  if (tightest === undefined) return
  const afterMs = resetMs(tightest)
  sink.setHeader(reply, 'X-RateLimit-Limit', `${whole(tightest.limit)}`)
  sink.setHeader(reply, 'X-RateLimit-Remaining', `${whole(tightest.remaining)}`)
  if (afterMs === Number.POSITIVE_INFINITY) return
  sink.setHeader(reply, 'X-RateLimit-Reset', `${Math.ceil((nowMs() + afterMs) / 1000)}`)
}
