import type { CallRequest, Trust } from '../../http/call.ts'
import { isOfTheConnection } from '../../http/connection-headers.ts'
import { tagsOfService } from '../../services/compression/entity-tags.ts'
import type { Route } from '../../services/routes/route.ts'

/** What the service is told: the caller's headers as Diana saw them, and who called by which name. Names and values in turn. */
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
    if (route.changesRequest && isChanged(name, route)) continue
    if (typeof value === 'string') flat.push(name, route.compressible && namesTags(name) ? tagsOfService(value) : value)
    else for (const one of value) flat.push(name, one)
  }
  const { trailer } = headers
  if (trailer !== undefined && headers['transfer-encoding'] !== undefined) flat.push('trailer', trailer)
  // callers over a Unix socket have no address, and this word stands for it (RFC 7239, section 6.2)
  const address = peer ?? 'unknown'
  flat.push('x-forwarded-for', earlier === undefined ? address : `${earlier}, ${address}`)
  if (!isProxied || headers['x-forwarded-host'] === undefined) flat.push('x-forwarded-host', headers.host ?? '')
  if (!isProxied || headers['x-forwarded-proto'] === undefined) {
    flat.push('x-forwarded-proto', 'encrypted' in socket ? 'https' : 'http')
  }
  if (route.keepsHost && headers.host !== undefined) flat.push('host', headers.host)
  if (route.changesRequest) {
    const { set } = route.settings.requestHeaders
    for (const name in set) flat.push(name, set[name]!)
  }
  return flat
}

/** Headers that Diana writes herself, and those that Node has answered already. */
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

/** Whether a header names entity tags, which compression weakens. */
function namesTags(name: string): boolean {
  return name === 'if-none-match' || name === 'if-match'
}

function isChanged(name: string, { settings: { requestHeaders } }: Route): boolean {
  return Object.hasOwn(requestHeaders.set, name) || requestHeaders.remove.includes(name)
}
