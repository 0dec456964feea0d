import { STATUS_CODES } from 'node:http'
import type { Reason, Verdict } from '../verdict.ts'
import { policyName, refuses } from './draft-11.ts'
import { type HeaderLine, rateLimitHeaders } from './headers.ts'

/** The whole answer to a refused caller. */
export interface Refusal {
  readonly status: number
  readonly headers: readonly HeaderLine[]
  readonly body: string
}

/** The parts of a verdict that a refusal is made of. */
type RefusedVerdict = Pick<Verdict, 'decisions' | 'answer' | 'rule' | 'reason' | 'retryAfterMs'>

const problemTypes = 'https://iana.org/assignments/http-problem-types#'

const problemTypeOf: Readonly<Record<number, string>> = {
  429: `${problemTypes}quota-exceeded`,
  503: `${problemTypes}temporary-reduced-capacity`,
}

/** Refused because something has too much to do, whatever the status. */
const OVERLOAD_TYPE = 'urn:diana:problem:overload'
const MOST_RETRY_SECONDS = 5

/** Returns when to try again after overload: 1 to 5 seconds, at random. */
export function overloadRetrySeconds(): number {
  return 1 + Math.floor(Math.random() * MOST_RETRY_SECONDS)
}

const sentences: Readonly<Record<Reason, (rule: string) => string>> = {
  limit: rule => `Too many calls for rule "${rule}"`,
  'queue-full': rule => `Too many calls wait for rule "${rule}"`,
  timeout: rule => `No place became free in time for rule "${rule}"`,
  denied: () => 'This caller is denied',
  ambiguous: rule =>
    rule === ''
      ? 'The path of this call can be read in too many ways'
      : `This call can be read in several ways, which rule "${rule}" would count apart`,
  overload: rule => (rule === '' ? 'This server is overloaded' : `The service behind rule "${rule}" is overloaded`),
  blocked: rule => `Blocked for a time by rule "${rule}"`,
}

/** Returns the answer to a caller whose call was refused. */
export function refusal(verdict: RefusedVerdict, nowMs: number): Refusal {
  const { status } = verdict.answer
  const retryAfter = retryAfterSeconds(verdict)
  const { body, contentType } = bodyOf(verdict, retryAfter)
  const headers = rateLimitHeaders(verdict, nowMs)
  headers.push(['Retry-After', `${retryAfter}`], ['Cache-Control', 'no-store'], ['Content-Type', contentType])
  return { status, headers, body }
}

function bodyOf(verdict: RefusedVerdict, retryAfter: number): { body: string; contentType: string } {
  const { status, body, contentType } = verdict.answer
  if (typeof body === 'string') return { body, contentType: contentType ?? 'text/plain; charset=utf-8' }
  if (body !== undefined) return { body: JSON.stringify(body), contentType: contentType ?? 'application/json' }
  const rule = verdict.rule ?? ''
  const problem = {
    type: verdict.reason === 'overload' ? OVERLOAD_TYPE : (problemTypeOf[status] ?? 'about:blank'),
    title: STATUS_CODES[status] ?? 'Refused',
    status,
    detail: `${sentences[verdict.reason ?? 'limit'](rule)}; try again in ${retryAfter} s.`,
    rule,
    'violated-policies': violatedPolicies(verdict),
    retryAfter,
  }
  return { body: JSON.stringify(problem), contentType: 'application/problem+json' }
}

function violatedPolicies({ decisions, rule }: RefusedVerdict): string[] {
  const names: string[] = []
  let level = 0
  decisions.forEach((decision, index) => {
    level = decisions[index - 1]?.rule === decision.rule ? level + 1 : 1
    if (refuses(decision)) names.push(policyName(decision.rule, level))
  })
  // a full queue refuses a call that no limit does
  return names.length === 0 && rule !== undefined ? [rule] : names
}

/** Returns whole seconds, never 0. If no moment is known, the longest period of the rule that refused. */
function retryAfterSeconds({ retryAfterMs, decisions, rule, reason }: RefusedVerdict): number {
  let ms = retryAfterMs
  // callers who come back together would overload the service again
  if (reason === 'overload' && ms === Number.POSITIVE_INFINITY) return overloadRetrySeconds()
  if (ms === Number.POSITIVE_INFINITY) {
    ms = 0
    for (const decision of decisions) if (decision.rule === rule && decision.periodMs > ms) ms = decision.periodMs
  }
  return Math.max(1, Math.ceil(ms / 1000))
}
