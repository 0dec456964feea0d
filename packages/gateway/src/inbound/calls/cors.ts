import type { CallReply, CallRequest } from '../../http/call.ts'
import type { CorsSettings } from '../../settings/cors-settings.ts'

/** Headers of refusals, which a page could not read otherwise. */
const exposed = [
  'Retry-After',
  'RateLimit',
  'RateLimit-Policy',
  'RateLimit-Limit',
  'RateLimit-Remaining',
  'RateLimit-Reset',
  'X-RateLimit-Limit',
  'X-RateLimit-Remaining',
  'X-RateLimit-Reset',
  'X-Request-Id',
].join(', ')

/**
 * Lets pages of other origins read what the gateway answers, also when it refuses; what the service says of this itself takes the
 * place of it. True if the call was a preflight and has been answered: no rule counts those, and no service sees them.
 */
export function answerCors({ method, headers }: CallRequest, reply: CallReply, settings: CorsSettings): boolean {
  const { origin } = headers
  const isAny = settings.origins[0] === '*'
  if (!isAny) reply.header('vary', 'Origin')
  if (origin === undefined || !(isAny || settings.origins.includes(origin))) return false
  reply.header('access-control-allow-origin', isAny ? '*' : origin)
  if (settings.credentials) reply.header('access-control-allow-credentials', 'true')
  const wanted = headers['access-control-request-method']
  if (method !== 'OPTIONS' || wanted === undefined) {
    reply.header('access-control-expose-headers', exposed)
    return false
  }
  reply.headers({
    vary: 'Origin, Access-Control-Request-Method, Access-Control-Request-Headers',
    'access-control-allow-methods': wanted,
    'access-control-max-age': String(Math.floor(settings.maxAgeMs / 1000)),
  })
  const names = headers['access-control-request-headers']
  if (names !== undefined) reply.header('access-control-allow-headers', names)
  reply.code(204).send()
  return true
}
