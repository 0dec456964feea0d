import { formatDuration, rateLimitHeaders, refusal, type Verdict } from 'diana-limiter'
import type { Expectation } from '../cases/case-file.ts'

/** The outcome of the calls of a step. */
export interface Outcome {
  calls: number
  passed: number
  refused: number
  readonly refusedBy: Map<string, number>
  /** The number of calls that are not as expected. */
  wrong: number
}

/** Returns what is wrong with one call, in words; undefined if nothing is. `isLast` is true for the last call of a loop. */
export function faultOfCall(expect: Expectation, verdict: Verdict, isLast: boolean, nowMs: number): string | undefined {
  const { result, by, reason } = expect
  const expected: string[] = []
  const { allowed } = verdict
  if (result === 'pass' && !allowed) expected.push('pass')
  if (result === 'refused' && (allowed || !isRefusedAs(expect, verdict))) expected.push(refusedInWords(by, reason))
  if (isLast) {
    const { waitsMs, left, leftOf, retryAfterMs, status } = expect
    if (waitsMs !== undefined && Math.abs(verdict.waitMs - waitsMs) >= 0.5) expected.push(`waits ${inWords(waitsMs)}`)
    const { reportedBy } = expect
    if (
      reportedBy !== undefined &&
      !verdict.decisions.some(one => one.rule === reportedBy && one.shadow && !one.allowed)
    ) {
      expected.push(`reported by ${reportedBy}`)
    }
    if (left !== undefined && leftIn(verdict, leftOf) !== left) {
      expected.push(`${left} left${leftOf === undefined ? '' : ` of ${leftOf}`}`)
    }
    if (retryAfterMs !== undefined && !isSameTime(verdict.retryAfterMs, retryAfterMs)) {
      expected.push(`retry after ${inWords(retryAfterMs)}`)
    }
    if (status !== undefined && (allowed ? undefined : verdict.answer.status) !== status)
      expected.push(`status ${status}`)
    for (const [name, value] of Object.entries(expect.headers ?? {})) {
      const found = headersOf(verdict, nowMs)[name]
      if (found !== value) return `expected ${name}: ${value}, got ${found ?? 'no such header'}`
    }
  }
  return expected.length === 0 ? undefined : `expected ${expected.join(', ')}, got ${verdictInWords(verdict, expect)}`
}

/** Returns what is wrong with the counts of a step; undefined if nothing is. */
export function faultOfCounts(expect: Expectation, outcome: Outcome): string | undefined {
  const { passed, refused, refusedBy } = expect
  const wrong: string[] = []
  if (passed !== undefined && outcome.passed !== passed) wrong.push(`${passed} pass`)
  if (refused !== undefined && outcome.refused !== refused) wrong.push(`${refused} refused`)
  for (const [rule, count] of Object.entries(refusedBy)) {
    if ((outcome.refusedBy.get(rule) ?? 0) !== count) wrong.push(`${count} refused by ${rule}`)
  }
  if (wrong.length === 0) return undefined
  const by = [...outcome.refusedBy].map(([rule, count]) => `${count} by ${rule}`).join(', ')
  const got = `${outcome.passed} passed, ${outcome.refused} refused${by === '' ? '' : ` (${by})`}`
  return `expected ${wrong.join(', ')}, got ${got}`
}

function isRefusedAs({ by, reason }: Expectation, verdict: Verdict): boolean {
  return (by === undefined || verdict.rule === by) && (reason === undefined || verdict.reason === reason)
}

function refusedInWords(by: string | undefined, reason: string | undefined): string {
  return `${reason ?? 'refused'}${by === undefined ? '' : ` by ${by}`}`
}

function leftIn({ decisions }: Verdict, rule: string | undefined): number | undefined {
  let least: number | undefined
  for (const decision of decisions) {
    if (rule === undefined ? decision.shadow : decision.rule !== rule) continue
    if (least === undefined || decision.remaining < least) least = decision.remaining
  }
  return least
}

/** True if two times are equal to the microsecond, or in whole seconds, as in the header Retry-After. */
function isSameTime(foundMs: number, expectedMs: number): boolean {
  if (Math.abs(foundMs - expectedMs) < 0.0005) return true
  return (
    Math.ceil(foundMs) === expectedMs || (expectedMs % 1000 === 0 && Math.ceil(foundMs / 1000) * 1000 === expectedMs)
  )
}

/** Returns the headers of the answer as the gateway writes them, with names in lower case. */
function headersOf(verdict: Verdict, nowMs: number): Record<string, string> {
  const lines = verdict.allowed ? rateLimitHeaders(verdict, nowMs) : refusal(verdict, nowMs).headers
  return Object.fromEntries(lines.map(([name, value]) => [name.toLowerCase(), value]))
}

export function verdictInWords(verdict: Verdict, { leftOf }: Pick<Expectation, 'leftOf'> = {}): string {
  const { allowed, rule, reason, retryAfterMs, waitMs } = verdict
  const left = leftIn(verdict, leftOf)
  const rest = left === undefined ? '' : `, ${left} left${leftOf === undefined ? '' : ` of ${leftOf}`}`
  const waits = waitMs > 0 ? `, waits ${inWords(waitMs)}` : ''
  if (allowed) return `pass${waits}${rest}`
  const what = reason === undefined || reason === 'limit' ? 'refused' : reason
  const retry = retryAfterMs === Number.POSITIVE_INFINITY ? '' : `, retry after ${inWords(retryAfterMs)}`
  return `${what}${rule === undefined ? '' : ` by ${rule}`}${waits}${retry}${rest}`
}

function inWords(ms: number): string {
  const whole = Math.ceil(ms - 0.0005)
  if (whole === 0) return '0s'
  return whole < 60_000 && whole % 1000 !== 0 ? `${whole}ms` : formatDuration(whole)
}
