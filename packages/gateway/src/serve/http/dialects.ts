import type { IncomingMessage } from 'node:http'
import type { Refusal } from 'diana-limiter'

/** The way in which one kind of proxy asks over HTTP: where the original request is, and which statuses it understands. */
export interface Dialect {
  /** The path at which it asks. */
  readonly path: string
  /** True if everything behind the path is part of the original target. */
  readonly isPrefix?: boolean | undefined
  /** Returns the original method, target and host; undefined if the request does not say. Reads only what this proxy always sets itself. */
  read(request: IncomingMessage): Original | undefined
  /** The headers by which the proxy says so, which are none of the original request. */
  readonly headers: readonly string[]
  /** Returns a refusal as this proxy passes it on. */
  refusal?(refusal: Refusal): Refusal
}

export interface Original {
  readonly method: string
  readonly target: string
  readonly host: string | undefined
}

/** Caddy's `forward_auth`, Traefik's ForwardAuth, and others that pass any refusal on as it is. */
const forwarded: Dialect = {
  path: '/check',
  headers: ['x-forwarded-method', 'x-forwarded-uri', 'x-forwarded-host', 'x-forwarded-proto', 'x-forwarded-port'],
  read: ({ headers }) => {
    const method = headers['x-forwarded-method']
    const target = headers['x-forwarded-uri']
    const host = headers['x-forwarded-host'] ?? headers.host
    if (typeof method !== 'string' || typeof target !== 'string' || Array.isArray(host)) return undefined
    return { method, target, host }
  },
}

/**
 * nginx's `auth_request`: a refusal that is neither 401 nor 403 would be a 500 to the caller, and bodies are dropped. So every refusal
 * is a 403, with its status and its body in headers, which nginx puts together again.
 */
const nginx: Dialect = {
  path: '/check/nginx',
  headers: ['x-original-method', 'x-original-uri'],
  read: ({ headers }) => {
    const method = headers['x-original-method']
    const target = headers['x-original-uri']
    if (typeof method !== 'string' || typeof target !== 'string') return undefined
    return { method, target, host: headers.host }
  },
  refusal: ({ status, headers, body }) => ({
    status: 403,
    headers: [...headers, ['Diana-Status', `${status}`], ['Diana-Body', asciiLine(body)]],
    body,
  }),
}

/**
 * The HTTP form of Envoy's ext_authz: the original request itself, with a prefix before its path. Envoy takes a status of 500 or more
 * for a failure of the decision server, which `failure_mode_allow` lets pass: a refusal has none.
 */
const envoy: Dialect = {
  path: '/envoy',
  isPrefix: true,
  headers: [],
  read: ({ method = 'GET', url = '/', headers }) => {
    const rest = url.slice('/envoy'.length)
    return { method, target: rest.startsWith('/') ? rest : `/${rest}`, host: headers.host }
  },
  refusal: ({ status, ...rest }) => ({ ...rest, status: status >= 500 ? 429 : status }),
}

export const dialects: readonly Dialect[] = [nginx, forwarded, envoy]

/** Returns the dialect of a request, by its path. */
export function dialectOf(url: string): Dialect | undefined {
  return dialects.find(({ path, isPrefix }) => {
    if (!url.startsWith(path)) return false
    const next = url.charCodeAt(path.length)
    return url.length === path.length || next === 0x3f || (isPrefix === true && next === 0x2f)
  })
}

const maxLine = 4096

/** Returns a body as the value of a header: JSON stays JSON, since it can escape everything that headers cannot hold. */
function asciiLine(body: string): string {
  const line = body.replaceAll(
    /[^\x20-\x7e]/g,
    character => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
  return line.length > maxLine ? '' : line
}
