import type { Route } from '../../services/routes/route.ts'
import type { Upstream } from '../../services/upstream.ts'

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
 * The value of such a header as the caller can use it. A service knows itself by its own address and path, where a caller would
 * go around the gateway or reach nothing.
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
  // as the service wrote it, since a URL would spell it anew
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

/** A path of the service as a path of the gateway; undefined if no call of this route leads there. */
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

/** A cookie of the service's host is one of the caller's, and its path is where the caller finds it. */
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
