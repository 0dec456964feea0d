import type { IncomingMessage } from 'node:http'
import { countedPath } from 'diana-limiter/gateway'
import { hostName } from 'diana-limiter/schema'
import { oneSpelling } from '../settings/one-spelling.ts'
import { namedByConnection } from './message-headers.ts'

/** A target that no router takes for a path. */
const unroutable = '/%'

const maxSegments = 256

/** No name in the DNS is longer, even with a port. */
const longestHost = 262

const faults = new WeakMap<IncomingMessage, string>()

/**
 * Brings a request to the one form that is judged, routed, permitted and forwarded: its target in one spelling, its host, and
 * no header that the service would not get, or could take for another. Returns the target; Fastify answers 400 to one
 * that it cannot route, and faultOf says why.
 */
export function normalizeRequest(raw: IncomingMessage): string {
  const { url = '/' } = raw
  const target = oneSpelling(url)
  if (target === undefined || !isDecodable(target)) return unroutable
  if (hasManySegments(target)) return refuse(raw, 'The path of this call has too many segments.')
  const hosts = dropOddHeaders(raw)
  dropHeadersOfConnection(raw)
  // RFC 9112, section 3.2.2: the host of the target is the one that is called
  if (url.charCodeAt(0) !== 0x2f && url !== '*') raw.headers.host = /^\w+:\/\/([^/\\?#]*)/.exec(url)?.[1]
  // HTTP/1.0 need not name a host
  if (raw.headers.host === '' && raw.httpVersion === '1.0') delete raw.headers.host
  const { host } = raw.headers
  if (hosts > 1) return refuse(raw, 'This call names two hosts.')
  if (host !== undefined && !isHost(host)) return refuse(raw, 'The Host of this call is not a name or an address.')
  return target
}

/** True if a target that `normalizeRequest` returned can be routed. */
export function isSettled(target: string): boolean {
  return target !== unroutable
}

/** Returns what was wrong with a request that got no target to route. */
export function faultOf(raw: IncomingMessage): string {
  return faults.get(raw) ?? 'The target of this call cannot be read.'
}

/** Returns a target as it is judged, routed and forwarded; undefined if the gateway answers 400 to it. */
export function settledTarget(url: string): string | undefined {
  const target = oneSpelling(url)
  return target === undefined || !isDecodable(target) || hasManySegments(target) ? undefined : target
}

/** True if the escapes in a path are UTF-8, as most routers demand. */
function isDecodable(target: string): boolean {
  if (!target.includes('%')) return true
  try {
    return decodeURI(pathOf(target)) !== ''
  } catch {
    return false
  }
}

/** True if a path has too many segments: matching it costs time for each, and a caller decides how many there are. */
function hasManySegments(target: string): boolean {
  if (target.length <= maxSegments) return false
  let segments = 0
  for (let at = target.indexOf('/'); at >= 0; at = target.indexOf('/', at + 1)) {
    if (++segments > maxSegments) return true
  }
  return false
}

/** The host of the call before, which most calls have again. */
let latestHost: string | undefined

function isHost(text: string): boolean {
  if (text === latestHost) return true
  if (text.length > longestHost || hostName(text) === undefined) return false
  latestHost = text
  return true
}

function refuse(raw: IncomingMessage, fault: string): string {
  faults.set(raw, fault)
  return unroutable
}

/**
 * Drops headers whose names have anything but letters, digits and hyphens, as nginx and Apache do: CGI, WSGI and PHP take
 * `X_Account_Id` for `X-Account-Id`. Says how many hosts the request names.
 */
function dropOddHeaders({ headers, rawHeaders }: IncomingMessage): number {
  let hosts = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!
    if (name.length === 4 && name.toLowerCase() === 'host') hosts++
    else if (isOdd(name)) delete headers[name.toLowerCase()]
  }
  return hosts
}

function isOdd(name: string): boolean {
  for (let at = 0; at < name.length; at++) {
    const code = name.charCodeAt(at)
    const lower = code | 0x20
    if ((lower < 0x61 || lower > 0x7a) && code !== 0x2d && (code < 0x30 || code > 0x39)) return true
  }
  return false
}

/** Drops headers that the service does not get, so that nothing counts them; a header that a filter writes later stays. */
function dropHeadersOfConnection({ headers }: IncomingMessage): void {
  const named = namedByConnection(headers.connection)
  if (named) for (const name of named) delete headers[name]
}

/** Returns the path that a call is routed and permitted by: that of its target, without parameters of segments. */
export function calledPath(target: string): string {
  return countedPath(pathOf(target))
}

/** Returns a target without its query. */
export function pathOf(target: string): string {
  const question = target.indexOf('?')
  return question < 0 ? target : target.slice(0, question)
}
