import { isIP } from 'node:net'
import type { FastifyRequest } from 'fastify'
import { Refusal } from '../../http/refusal.ts'
import type { Identity } from '../identity/identity.ts'
import type { SignIn, SignInOptions } from '../identity/sign-in.ts'

export interface GuardOptions extends SignInOptions {
  /** Names by which the admin API may be called, besides addresses and localhost. */
  readonly hosts?: readonly string[] | undefined
}

interface GuardParts {
  readonly hosts?: readonly string[] | undefined
  readonly signIn: SignIn
  /** The routes that need no token, by the URL they are registered under; everything else needs it. */
  readonly openRoutes: ReadonlySet<string>
  /** Methods and routes that may be asked under any name, since they report only whether the process is well. */
  readonly healthRoutes: ReadonlySet<string>
}

/** A request with this header can come from a page of another origin only after a preflight, which is refused. */
const ownHeader = 'x-diana-request'

/**
 * Admits a request by an open route or by its identity, or rejects. What is asked for is the route that the router found, never the spelling of the URL. A
 * web page elsewhere must not reach the API through the operator's browser: not by its own name that resolves to this
 * machine (DNS rebinding: the Host is checked), nor by a request across origins (Origin and Sec-Fetch-Site are). There are
 * no cookies here, but a proxy may have some: a change by a user that it names needs proof that a page of this origin asks.
 */
export function createGuard({
  hosts = [],
  signIn,
  openRoutes,
  healthRoutes,
}: GuardParts): (request: FastifyRequest) => Promise<'open' | Identity> {
  const names = new Set(['localhost', ...hosts.map(name => name.toLowerCase())])
  return async request => {
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
    const identity = await signIn.identify(request.raw)
    if (isUnproved(request, identity)) {
      throw new Refusal(
        403,
        `A change by a user that a proxy has signed in must come from the dashboard: send the header ${ownHeader}: 1 from other programs.`,
      )
    }
    return identity
  }
}

/** True if a page of another origin could have sent a change with the identity of the user who looks at it. */
function isUnproved({ method, headers }: FastifyRequest, { via }: Identity): boolean {
  if (method === 'GET' || method === 'HEAD' || via === 'open' || via === 'token') return false
  // an Origin that is there is that of this host
  return headers['sec-fetch-site'] !== 'same-origin' && headers.origin === undefined && headers[ownHeader] === undefined
}

/** True if a route was found that is named as open; what is not found, and every method that writes, is not. */
function isOpen({ is404, method, routeOptions: { url } }: FastifyRequest, openRoutes: ReadonlySet<string>): boolean {
  return !is404 && (method === 'GET' || method === 'HEAD') && url !== undefined && openRoutes.has(url)
}

function otherOrigin(): Refusal {
  return new Refusal(403, 'The admin API answers no pages of another origin.')
}

/** Returns the host that a request is for: a target that names one wins over the header (RFC 9112, section 3.2.2). */
function hostOf({ headers, raw: { url = '' } }: FastifyRequest): string {
  if (url.startsWith('/')) return headers.host ?? ''
  return /^https?:\/\/([^/?#]*)/i.exec(url)?.[1] ?? ''
}

function isOwnHost(host: string, names: ReadonlySet<string>): boolean {
  const name = /^(\[[^\]]*\]|[^:]*)(?::\d{1,5})?$/.exec(host)?.[1]?.toLowerCase()
  if (name === undefined || name === '') return false
  return isIP(name.replace(/^\[(.*)\]$/, '$1')) !== 0 || names.has(name)
}
