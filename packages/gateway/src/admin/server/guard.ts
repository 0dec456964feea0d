import { createHash, timingSafeEqual } from 'node:crypto'
import { isIP } from 'node:net'
import type { FastifyRequest } from 'fastify'
import type { Role } from '../operations/operation.ts'
import { Refusal } from '../refusal.ts'
import type { Guesses } from './guesses.ts'

export interface GuardOptions {
  readonly token?: string | undefined
  /** A second token, with which nothing can be changed and no document be read. */
  readonly viewToken?: string | undefined
  /** Names by which the admin API may be called, besides addresses and localhost. */
  readonly hosts?: readonly string[] | undefined
}

interface GuardParts extends GuardOptions {
  /** The routes that need no token, by the URL they are registered under; everything else needs it. */
  readonly openRoutes: ReadonlySet<string>
  /** Methods and routes that may be asked under any name, since they report only whether the process is well. */
  readonly healthRoutes: ReadonlySet<string>
  readonly guesses: Guesses
}

/**
 * Lets in who may come in, by an open route or by the token, or throws. What is asked for is the route that the router found, never the spelling of the URL. A
 * web page elsewhere must not reach the API through the operator's browser: not by its own name that resolves to this
 * machine (DNS rebinding: the Host is checked), nor by a request across origins (Origin and Sec-Fetch-Site are). There are
 * no cookies, so nothing is sent along by itself.
 */
export function createGuard({
  token,
  viewToken,
  hosts = [],
  openRoutes,
  healthRoutes,
  guesses,
}: GuardParts): (request: FastifyRequest) => 'open' | Role {
  const names = new Set(['localhost', ...hosts.map(name => name.toLowerCase())])
  const expected: readonly (readonly [Role, Buffer])[] = [
    ...(token === undefined ? [] : [['operator', digest(token)] as const]),
    ...(viewToken === undefined ? [] : [['viewer', digest(viewToken)] as const]),
  ]
  return request => {
    // load balancers ask by any name, or by none
    if (healthRoutes.has(`${request.method} ${request.routeOptions.url}`)) return 'open'
    const { headers } = request
    const host = hostOf(request)
    if (!isOwnHost(host, names)) {
      throw new Refusal(
        403,
        'This name is not known here: call the admin API by its address, or list the name under gateway.admin.hosts.',
      )
    }
    const { origin } = headers
    if (origin !== undefined && origin !== `http://${host}` && origin !== `https://${host}`) throw otherOrigin()
    if (isOpen(request, openRoutes)) return 'open'
    const site = headers['sec-fetch-site']
    if (site !== undefined && site !== 'same-origin' && site !== 'none') throw otherOrigin()
    return token === undefined ? 'operator' : roleByToken(request, expected, guesses)
  }
}

/** Whether a route was found that is named as open; what is not found, and every method that writes, is not. */
function isOpen({ is404, method, routeOptions: { url } }: FastifyRequest, openRoutes: ReadonlySet<string>): boolean {
  return !is404 && (method === 'GET' || method === 'HEAD') && url !== undefined && openRoutes.has(url)
}

function roleByToken(
  { headers, socket }: FastifyRequest,
  expected: readonly (readonly [Role, Buffer])[],
  guesses: Guesses,
): Role {
  const given = /^Bearer +(\S+)$/i.exec(headers.authorization ?? '')?.[1]
  if (given === undefined) throw new Refusal(401, 'Send the token: Authorization: Bearer …')
  // digests have one length, so that comparing them tells nothing of the token's
  let role: Role | undefined
  const isRight = () => {
    const tried = digest(given)
    // all of them, so that the time says nothing
    for (const [name, one] of expected) if (timingSafeEqual(tried, one)) role ??= name
    return role !== undefined
  }
  const { right, retryAfterMs } = guesses.try(socket.remoteAddress ?? '', isRight)
  if (right && role !== undefined) return role
  if (retryAfterMs === 0) throw new Refusal(401, 'This is not the token.')
  const seconds = Math.ceil(retryAfterMs / 1000)
  throw new Refusal(429, `Too many wrong tokens: try again in ${seconds} s.`, {}, { 'Retry-After': String(seconds) })
}

function otherOrigin(): Refusal {
  return new Refusal(403, 'The admin API answers no pages of another origin.')
}

/** The host that a request is for: a target that names one wins over the header (RFC 9112, section 3.2.2). */
function hostOf({ headers, raw: { url = '' } }: FastifyRequest): string {
  if (url.startsWith('/')) return headers.host ?? ''
  return /^https?:\/\/([^/?#]*)/i.exec(url)?.[1] ?? ''
}

function isOwnHost(host: string, names: ReadonlySet<string>): boolean {
  const name = /^(\[[^\]]*\]|[^:]*)(?::\d{1,5})?$/.exec(host)?.[1]?.toLowerCase()
  if (name === undefined || name === '') return false
  return isIP(name.replace(/^\[(.*)\]$/, '$1')) !== 0 || names.has(name)
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

/** Whether an address is reached from this machine only. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'))
}
