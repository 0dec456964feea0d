import { STATUS_CODES } from 'node:http'
import type { CallRequest, Trust } from '../../http/call.ts'
import { isOfTheConnection, namedByConnection } from '../../http/message-headers.ts'
import { tagsOfService } from '../../services/compression/entity-tags.ts'
import { RecentTexts } from '../../services/http1/whole-answer.ts'
import type { Route } from '../../services/routes/route.ts'
import type { Upstream } from '../../services/upstream.ts'

/** Returns the headers for the service: the caller's as Diana saw them, and who called by which name. Names and values in turn. */
export function headersToService(request: CallRequest, route: Route, trust: Trust): string[] {
  const { headers } = request
  const { socket } = request.raw
  const flat: string[] = []
  const peer = trust.addressOf(socket.remoteAddress, undefined)
  const earlier = headers['x-forwarded-for']
  const believed = headers[trust.forwardedBy]
  // a proxy that is believed about the address is believed about the rest
  const isProxied =
    believed !== undefined &&
    (trust.addressOf(socket.remoteAddress, believed) !== peer || trust.isProxy(String(socket.remoteAddress)))
  for (const name in headers) {
    const value = headers[name]
    if (value === undefined || isOfTheConnection(name) || isTold(name, isProxied)) continue
    if (route.changesRequest && isChanged(name, route.settings.requestHeaders)) continue
    if (typeof value === 'string') flat.push(name, route.compressible && namesTags(name) ? tagsOfService(value) : value)
    else for (const one of value) flat.push(name, one)
  }
  const { trailer } = headers
  if (trailer !== undefined && headers['transfer-encoding'] !== undefined) flat.push('trailer', trailer)
  // callers over a Unix socket have no address, and this word stands for it (RFC 7239, section 6.2)
  const address = peer ?? 'unknown'
  flat.push('x-forwarded-for', earlier === undefined ? address : `${earlier}, ${address}`)
  if (!isProxied || headers['x-forwarded-host'] === undefined) flat.push('x-forwarded-host', headers.host ?? '')
  const protocol = 'encrypted' in socket ? 'https' : 'http'
  if (!isProxied || headers['x-forwarded-proto'] === undefined) flat.push('x-forwarded-proto', protocol)
  // a proxy that names only the protocol means its default port
  if (!isProxied || (headers['x-forwarded-port'] === undefined && headers['x-forwarded-proto'] === undefined)) {
    flat.push('x-forwarded-port', portOf(headers.host, protocol))
  }
  if (route.keepsHost && headers.host !== undefined) flat.push('host', headers.host)
  if (route.changesRequest) {
    const { set } = route.settings.requestHeaders
    for (const name in set) flat.push(name, set[name]!)
  }
  return flat
}

/** Returns the port that the caller's `Host` names, or the default port of the protocol. */
function portOf(host: string | undefined, protocol: 'http' | 'https'): string {
  const named = host === undefined ? undefined : /:(\d{1,5})$/.exec(host)?.[1]
  return named ?? (protocol === 'https' ? '443' : '80')
}

/** Headers that Diana writes itself, and those that Node has answered already. */
function isTold(name: string, isProxied: boolean): boolean {
  switch (name) {
    case 'host':
    case 'expect':
    case 'x-forwarded-for':
      return true
    // by these, some frameworks serve another path than the one that was judged
    case 'x-original-url':
    case 'x-rewrite-url':
      return true
    case 'forwarded':
    case 'x-real-ip':
      return !isProxied
    default:
      return !isProxied && name.startsWith('x-forwarded-')
  }
}

/** True if a header names entity tags, which compression weakens. */
function namesTags(name: string): boolean {
  return name === 'if-none-match' || name === 'if-match'
}

/** True if the settings of a route set or remove a header. */
function isChanged(name: string, { set, remove }: Route['settings']['requestHeaders' | 'responseHeaders']): boolean {
  return Object.hasOwn(set, name) || remove.includes(name)
}

type OwnHeaders = Readonly<Record<string, number | string | readonly string[] | undefined>>

/** The head of a service's answer: names in lower case and values, in turn. */
export interface AnswerHead {
  readonly status: number
  readonly received: readonly string[]
}

const names = new RecentTexts('in lower case')
const values = new RecentTexts('as they are')

/** Returns the headers of an answer as undici gives them, as text. */
export function textsOf(received: readonly Buffer[]): string[] {
  const texts: string[] = []
  for (let at = 0; at + 1 < received.length; at += 2) {
    texts.push(names.textOf(received[at]!), values.textOf(received[at + 1]!))
  }
  return texts
}

/** Returns the headers for the caller: the service's, beside those of Diana and the filters. Names and values in turn. */
export function headersToCaller({ status, received }: AnswerHead, own: OwnHeaders, exchange: Exchange): string[] {
  const { route } = exchange
  const flat: string[] = []
  let said: Set<string> | undefined
  const ending = endingHere(received)
  for (let at = 0; at + 1 < received.length; at += 2) {
    const name = received[at]!
    if (isOfTheConnection(name) || ending?.has(name)) continue
    if (route.changesResponse && isChanged(name, route.settings.responseHeaders)) continue
    // an answer that has no body must not announce one (RFC 9110, section 8.6); __proto__ is no key of an object
    if ((name === 'content-length' && status === 204) || name === '__proto__') continue
    const text = received[at + 1]!
    const value = namesAddress(name) ? asCallerSees(name, text, exchange) : text
    const mine = own[name]
    if (mine === undefined) flat.push(name, value)
    else {
      flat.push(name, !isJoined(name) || said?.has(name) ? value : `${mine}, ${value}`)
      said ??= new Set()
      said.add(name)
    }
  }
  for (const name in own) {
    const value = own[name]
    if (value === undefined || said?.has(name)) continue
    if (typeof value === 'object') for (const one of value) flat.push(name, one)
    else flat.push(name, String(value))
  }
  if (route.changesResponse) {
    const { set } = route.settings.responseHeaders
    for (const name in set) flat.push(name, set[name]!)
  }
  return flat
}

/**
 * Returns the headers that the service means for this connection only, on however many lines; throws for codings that no code has
 * taken off.
 */
function endingHere(received: readonly string[]): Set<string> | undefined {
  let ending: Set<string> | undefined
  let isChunked = false
  for (let at = 0; at + 1 < received.length; at += 2) {
    const name = received[at]!
    if (name !== 'connection' && name !== 'transfer-encoding') continue
    const value = received[at + 1]!.toLowerCase()
    if (name === 'connection') {
      const named = namedByConnection(value)
      if (named) for (const one of named) ending = (ending ?? new Set()).add(one)
    } else if (isChunked || value.trim() !== 'chunked') {
      throw Object.assign(new Error(`the coding ${value}`), { code: 'ERR_HTTP_TRANSFER_CODING' })
    } else isChunked = true
  }
  return ending
}

/** Lists to which every proxy on the way adds items. */
function isJoined(name: string): boolean {
  return name === 'ratelimit' || name === 'ratelimit-policy' || name === 'vary'
}

/** Between which addresses an answer is translated. */
export interface Exchange {
  readonly route: Route
  readonly upstream: Upstream
  /** The Host that the caller asked for. */
  readonly host: string | undefined
}

/** Headers in which a service names addresses of its own. */
export function namesAddress(header: string): boolean {
  switch (header) {
    case 'location':
    case 'content-location':
    case 'refresh':
    case 'set-cookie':
      return true
    default:
      return false
  }
}

/**
 * Returns the value of such a header as the caller can use it. A service knows itself by its own address and path, where a caller
 * would go around the gateway or reach nothing.
 */
export function asCallerSees(header: string, value: string, exchange: Exchange): string {
  if (header === 'set-cookie') return cookieForCaller(value, exchange)
  if (header !== 'refresh') return referenceForCaller(value, exchange)
  const [, before, quote, target] = /^([\d.]+\s*[;,]\s*url\s*=\s*)(['"]?)(.*?)\2\s*$/i.exec(value) ?? []
  return target === undefined ? value : `${before}${quote}${referenceForCaller(target, exchange)}${quote}`
}

function referenceForCaller(reference: string, exchange: Exchange): string {
  if (reference.startsWith('/') && !reference.startsWith('//')) {
    return pathForCaller(reference, exchange) ?? reference
  }
  const own = /^https?:\/\//i.test(reference) && URL.canParse(reference) ? new URL(reference) : undefined
  if (own === undefined || !isOwnAddress(own, exchange)) return reference
  // as the service wrote it, since a URL would spell it in another way
  const rest = /^[^/]+\/\/[^/?#\\]*(.*)$/.exec(reference)![1]!
  return pathForCaller(rest.startsWith('/') ? rest : `/${rest}`, exchange) ?? reference
}

/** Its address, the one it was called by, or the name it was called by with its own port, as nginx writes it. */
function isOwnAddress(url: URL, { upstream, host }: Exchange): boolean {
  // another protocol is another address: a service that moves callers to https means it
  if (url.protocol !== upstream.url.protocol || url.username !== '' || url.password !== '') return false
  if (url.host === upstream.url.host) return true
  const called = host === undefined || !URL.canParse(`http://${host}`) ? undefined : new URL(`http://${host}`)
  if (called === undefined || called.hostname !== url.hostname) return false
  return url.port === upstream.url.port || url.host === called.host
}

/** Returns a path of the service as a path of the gateway; undefined if no call of this route leads there. */
function pathForCaller(target: string, { route, upstream }: Exchange): string | undefined {
  const { path, rewrite } = route.settings
  const theirs = upstream.basePath + withoutSlash(rewrite ?? '')
  const ours = rewrite === undefined ? '' : withoutSlash(path)
  if (!target.startsWith(theirs) || !/^(?:[/?#;]|$)/.test(target.slice(theirs.length))) return undefined
  const rest = ours + target.slice(theirs.length)
  const translated = rest.startsWith('/') ? rest : `/${rest}`
  // two slashes begin the name of another host
  return /^\/[/\\]/.test(translated) ? undefined : translated
}

function withoutSlash(path: string): string {
  return path === '/' ? '' : path
}

/** Rewrites a cookie of the service's host as one of the caller's, with the path where the caller finds the service. */
function cookieForCaller(cookie: string, exchange: Exchange): string {
  const [pair, ...attributes] = cookie.split(';')
  const kept = attributes.flatMap(attribute => {
    const [, name = '', value = ''] = /^\s*([^=\s]*)\s*=?\s*(.*?)\s*$/.exec(attribute) ?? []
    switch (name.toLowerCase()) {
      case 'domain':
        return value.replace(/^\./, '').toLowerCase() === exchange.upstream.url.hostname ? [] : [attribute]
      case 'path': {
        const path = value.startsWith('/') ? pathForCaller(value, exchange) : undefined
        return path === undefined ? [attribute] : [` ${name}=${path}`]
      }
      default:
        return [attribute]
    }
  })
  return [pair, ...kept].join(';')
}

/** Returns the reason phrase of a service, or the usual one where Node would refuse to write what the service said. */
export function reasonFor(status: number, text: string): string {
  if (text === STATUS_CODES[status]) return text
  return /^[\t\x20-\x7e]*$/.test(text) ? text : (STATUS_CODES[status] ?? '')
}
