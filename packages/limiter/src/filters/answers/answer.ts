import { STATUS_CODES } from 'node:http'
import type { HeaderStyle } from '../../rules/rule.ts'
import type { Decision, Reason, Verdict } from '../../verdict.ts'
import { PolicyList, policyName, whole, windowOf } from './policy-list.ts'

/** A header's name and value. */
export type HeaderLine = readonly [name: string, value: string]

/** The whole answer to a refused caller. */
export interface Refusal {
  readonly status: number
  readonly headers: readonly HeaderLine[]
  readonly body: string
}

/** Where headers are written: to a framework's reply, or into a list. */
interface HeaderSink<Reply> {
  setHeader(reply: Reply, name: string, value: string): void
}

/** What is told of limits in headers. */
type Limits = Pick<Verdict, 'decisions' | 'answer'>

/** What a refusal is made of. */
type RefusedVerdict = Pick<Verdict, 'decisions' | 'answer' | 'rule' | 'reason' | 'retryAfterMs'>

type HeaderWriter = <Reply>(limits: Limits, sink: HeaderSink<Reply>, reply: Reply, nowMs: () => number) => void

const intoLines: HeaderSink<HeaderLine[]> = {
  setHeader: (lines, name, value) => {
    lines.push([name, value])
  },
}

const problemTypes = 'https://iana.org/assignments/http-problem-types#'

const problemTypeOf: Readonly<Record<number, string>> = {
  429: `${problemTypes}quota-exceeded`,
  503: `${problemTypes}temporary-reduced-capacity`,
}

const sentences: Readonly<Record<Reason, (rule: string) => string>> = {
  limit: rule => `Too many calls for rule "${rule}"`,
  'queue-full': rule => `Too many calls wait for rule "${rule}"`,
  timeout: rule => `No place became free in time for rule "${rule}"`,
  denied: () => 'This caller is denied',
  ambiguous: rule => `This call can be read in several ways, which rule "${rule}" would count apart`,
  blocked: rule => `Blocked for a time by rule "${rule}"`,
}

const writers: Readonly<Record<HeaderStyle, HeaderWriter>> = {
  'draft-11': writeDraft11,
  'draft-7': writeDraft7,
  'draft-6': writeDraft6,
  legacy: writeLegacy,
  none: () => {},
}

/** What any caller, refused or not, is told of his limits. Shadow limits are not shown. */
export function rateLimitHeaders(verdict: Pick<Verdict, 'decisions' | 'answer'>, nowMs: number): HeaderLine[] {
  const lines: HeaderLine[] = []
  tellLimits(verdict, intoLines, lines, () => nowMs)
  return lines
}

/** Writes the same where the answer is made, without a list in between: most calls pass, and each is told. */
export function tellLimits<Reply>(verdict: Limits, sink: HeaderSink<Reply>, reply: Reply, nowMs: () => number): void {
  writers[verdict.answer.headers](verdict, sink, reply, nowMs)
}

/** The answer to a caller whose call was refused. */
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
    type: problemTypeOf[status] ?? 'about:blank',
    title: STATUS_CODES[status] ?? 'Refused',
    status,
    detail: `${sentences[verdict.reason ?? 'limit'](rule)}; try again in ${retryAfter} s.`,
    rule,
    'violated-policies': violatedPolicies(verdict),
    retryAfter,
  }
  return { body: JSON.stringify(problem), contentType: 'application/problem+json' }
}

/** draft-ietf-httpapi-ratelimit-headers-11: two lists, with one item per limit under the same name. */
function writeDraft11<Reply>({ decisions }: Limits, sink: HeaderSink<Reply>, reply: Reply): void {
  let policies = PolicyList.empty
  let standings = ''
  for (let i = 0; i < decisions.length; i++) {
    const decision = decisions[i]!
    if (decision.shadow) continue
    policies = policies.with(decision)
    standings += policies.standing(whole(decision.remaining), resetSeconds(decision))
  }
  if (standings === '') return
  sink.setHeader(reply, 'RateLimit-Policy', policies.text)
  sink.setHeader(reply, 'RateLimit', standings)
}

/** draft 7: the policies without names, and the numbers of the limit that binds most in one header. */
function writeDraft7<Reply>(verdict: Limits, sink: HeaderSink<Reply>, reply: Reply): void {
  const tightest = tightestLimit(verdict)
  if (tightest === undefined) return
  const seconds = resetSeconds(tightest)
  const reset = seconds === undefined ? '' : `, reset=${seconds}`
  sink.setHeader(reply, 'RateLimit-Policy', unnamedPolicies(verdict))
  const numbers = `limit=${whole(tightest.limit)}, remaining=${whole(tightest.remaining)}${reset}`
  sink.setHeader(reply, 'RateLimit', numbers)
}

/** draft 6: the policies without names, and the numbers of the limit that binds most. */
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
    if (decision.shadow) continue
    policies += `${policies === '' ? '' : ', '}${whole(decision.limit)}${windowOf(decision)}`
  }
  return policies
}

/** X-RateLimit-*: servers disagree on Reset; this is seconds since 1970, as GitHub and express-rate-limit send it. */
function writeLegacy<Reply>(verdict: Limits, sink: HeaderSink<Reply>, reply: Reply, nowMs: () => number): void {
  const tightest = tightestLimit(verdict)
  if (tightest === undefined) return
  const afterMs = resetMs(tightest)
  sink.setHeader(reply, 'X-RateLimit-Limit', `${whole(tightest.limit)}`)
  sink.setHeader(reply, 'X-RateLimit-Remaining', `${whole(tightest.remaining)}`)
  if (afterMs === Number.POSITIVE_INFINITY) return
  sink.setHeader(reply, 'X-RateLimit-Reset', `${Math.ceil((nowMs() + afterMs) / 1000)}`)
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

/** Of the limits that refuse, or else of all, the one with least left; of equals, the one that takes longest. */
function tightestLimit({ decisions }: Limits): Decision | undefined {
  let tightest: Decision | undefined
  for (const decision of decisions) {
    if (!decision.shadow && (tightest === undefined || isTighter(decision, tightest))) tightest = decision
  }
  return tightest
}

function isTighter(one: Decision, other: Decision): boolean {
  if (one.allowed !== other.allowed) return other.allowed
  if (one.remaining !== other.remaining) return one.remaining < other.remaining
  return resetMs(one) > resetMs(other)
}

function refuses(decision: Decision): boolean {
  return !decision.allowed && !decision.shadow
}

/** A limit that refuses names the moment at which it would let the call pass, so that Retry-After is never earlier. */
function resetMs(decision: Decision): number {
  return refuses(decision) ? decision.retryAfterMs : decision.resetAfterMs
}

function resetSeconds(decision: Decision): number | undefined {
  const ms = resetMs(decision)
  if (ms === Number.POSITIVE_INFINITY) return undefined
  const seconds = Math.ceil(ms / 1000)
  return seconds === 0 && refuses(decision) ? 1 : seconds
}

/** Whole seconds, never 0. Where no moment can be named, the longest period of the rule that refused. */
function retryAfterSeconds({ retryAfterMs, decisions, rule }: RefusedVerdict): number {
  let ms = retryAfterMs
  if (ms === Number.POSITIVE_INFINITY) {
    ms = 0
    for (const decision of decisions) if (decision.rule === rule && decision.periodMs > ms) ms = decision.periodMs
  }
  return Math.max(1, Math.ceil(ms / 1000))
}
