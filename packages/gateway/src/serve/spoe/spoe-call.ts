import { type Call, rateLimitHeaders, refusal, type Verdict } from 'diana-limiter'
import { endUnreported } from '../calls/end-unreported.ts'
import type { Peers } from '../calls/peers.ts'
import { proxiedCall } from '../calls/proxied-call.ts'
import type { SpoeValue } from './spoe-bytes.ts'

/** Returns the call that HAProxy asks about; a text that says what is wrong with the request if it is none. */
export function spoeCall(
  values: ReadonlyMap<string, SpoeValue>,
  peers: Peers,
  peer: string | undefined,
): Call | string {
  const text = (name: string): string | undefined => {
    const value = values.get(name)
    return typeof value === 'string' ? value : undefined
  }
  const headers = readHeaders(text('headers') ?? '')
  const { method = 'GET', target, host } = { method: text('method'), target: text('target'), host: text('host') }
  if (target === undefined) return 'The proxy must send the arguments method, target and ip.'
  const ip = peers.callerOf(peer, text('ip'), headers[peers.document.forwardedBy])
  return proxiedCall({ method, target, host: host ?? headers.host, ip, headers })
}

/** Headers as they stand in a request; a name that comes several times has all its values, as in Node. */
function readHeaders(lines: string): Record<string, string> {
  const headers: Record<string, string> = Object.create(null)
  for (const line of lines.split('\r\n')) {
    const colon = line.indexOf(':')
    if (colon <= 0) continue
    const name = line.slice(0, colon).toLowerCase()
    const value = line.slice(colon + 1).trim()
    const known = headers[name]
    headers[name] = known === undefined ? value : `${known}${name === 'cookie' ? '; ' : ', '}${value}`
  }
  return headers
}

/** Returns what HAProxy needs to answer: `status` is 200, or that of the refusal. */
export function variablesOf(verdict: Verdict, nowMs: number): Record<string, string | number> {
  endUnreported(verdict)
  if (verdict.allowed) return { status: 200, ...named(rateLimitHeaders(verdict, nowMs)) }
  const { status, headers, body } = refusal(verdict, nowMs)
  return { status, ...named(headers), body, rule: verdict.rule ?? '' }
}

/** Returns the variables for a request that no rule was asked about. */
export function badRequest(detail: string): Record<string, string | number> {
  const body = JSON.stringify({ type: 'about:blank', title: 'Bad Request', status: 400, detail })
  return { status: 400, content_type: 'application/problem+json', body }
}

/** The variables for a request that Diana failed to judge: HAProxy sets the same one after an error of its own. */
export const failed: Readonly<Record<string, string | number>> = { error: 256 }

/** Names of variables have no hyphens. */
function named(headers: readonly (readonly [name: string, value: string])[]): Record<string, string> {
  return Object.fromEntries(headers.map(([name, value]) => [name.toLowerCase().replaceAll('-', '_'), value]))
}
