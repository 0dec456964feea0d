import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { createAddressReader } from 'diana-limiter/gateway'
import { Refusal } from '../../http/refusal.ts'
import type { IdentitySettings, RoleSettings } from '../../settings/identity-settings.ts'
import { createForwardedIdentity, readOne } from './forwarded-identity.ts'
import type { Guesses } from './guesses.ts'
import type { Identity, Role, User } from './identity.ts'
import type { IssuerKeys } from './issuer-keys.ts'
import { longestToken, parseToken, readUser } from './oidc.ts'

export interface SignInOptions {
  readonly token?: string | undefined
  /** A second token, with which nothing can be changed and no document be read. */
  readonly viewToken?: string | undefined
  /** Users besides the holders of tokens. */
  readonly identity?: IdentitySettings | undefined
}

interface SignInParts extends SignInOptions {
  /** The keys of the issuer that `identity.oidc` names. */
  readonly keys?: IssuerKeys | undefined
  readonly guesses: Guesses
  /** Gets everyone who is turned away for their role, or after too many wrong tokens. */
  onRefused(refused: { readonly who: string; readonly from: string; readonly reason: 'no role' | 'wrong tokens' }): void
}

export interface SignIn {
  /** Finds who makes a request; rejects with a refusal if it is not known. */
  identify(request: IncomingMessage): Promise<Identity>
  /** Returns the address of the client: behind a trusted proxy, the one that the proxy names. */
  addressOf(request: IncomingMessage): string
}

/** A user may have lost their session at the proxy: what they follow ends after this time, and begins again if they have not. */
const forwardedMs = 10 * 60_000
const bearer = /^Bearer +(\S+)$/i
const tokenShape = /^[\w-]+\.[\w-]+\.[\w-]*$/

/**
 * Recognizes who makes a request. An admin token is given on purpose and wins; a signed token of an issuer comes next, and then
 * the user that a trusted proxy names. Proxies put tokens of their own into Authorization, so what has the shape of a signed token
 * is never compared with the admin token if users are known.
 */
export function createSignIn({ token, viewToken, identity, keys, guesses, onRefused }: SignInParts): SignIn {
  const expected: readonly (readonly [Role, Buffer])[] = [
    ...(token === undefined ? [] : [['operator', digest(token)] as const]),
    ...(viewToken === undefined ? [] : [['viewer', digest(viewToken)] as const]),
  ]
  const readAddress = createAddressReader(identity?.trustedProxies ?? [])
  const forwardedUser = identity ? createForwardedIdentity(identity) : () => undefined
  const roleOf = identity ? createRoles(identity.roles) : undefined

  const addressOf = ({ socket, headers }: IncomingMessage): string =>
    readAddress(socket.remoteAddress, headers['x-forwarded-for']) ?? socket.remoteAddress ?? ''

  const attempt = (from: string, isRight: () => boolean, wrong: string): void => {
    const { right, retryAfterMs } = guesses.try(from, isRight)
    if (right) return
    if (retryAfterMs === 0) throw new Refusal(401, wrong)
    onRefused({ who: 'wrong token', from, reason: 'wrong tokens' })
    const seconds = Math.ceil(retryAfterMs / 1000)
    throw new Refusal(429, `Too many wrong tokens: try again in ${seconds} s.`, {}, { 'Retry-After': String(seconds) })
  }

  const byToken = (given: string, from: string): Identity => {
    let role: Role | undefined
    attempt(
      from,
      () => {
        // digests have one length, so that comparing them says nothing of the token's
        const tried = digest(given)
        // all of them, so that the time says nothing
        for (const [name, one] of expected) if (timingSafeEqual(tried, one)) role ??= name
        return role !== undefined
      },
      'This is not the token.',
    )
    return { role: role!, who: `${role} token`, via: 'token' }
  }

  const asUser = (user: User, from: string, rest: Pick<Identity, 'via' | 'endsAt'>): Identity => {
    try {
      return { role: roleOf!(user), who: user.name, user: user.name, ...rest }
    } catch (error) {
      onRefused({ who: user.name, from, reason: 'no role' })
      throw error
    }
  }

  const bySignedToken = async (text: string, from: string): Promise<Identity> => {
    const { oidc } = identity!
    const signed = parseToken(text)
    const set = signed && (await keys!.find(signed.kid))
    attempt(from, () => set?.isSigned(signed!) === true, 'The token is not signed by a key of the issuer.')
    const user = readUser(signed!, oidc!, Date.now())
    return asUser(user, from, { via: 'oidc', endsAt: user.endsAt })
  }

  const identify = async (request: IncomingMessage): Promise<Identity> => {
    if (token === undefined && identity === undefined) {
      return { role: 'operator', who: 'no token', via: 'open' }
    }
    const from = addressOf(request)
    const given = bearer.exec(request.headers.authorization ?? '')?.[1]
    if (given !== undefined && !(identity && tokenShape.test(given))) return byToken(given, from)
    const header = identity?.oidc?.header
    const assertion = header === undefined ? given : readOne(request, header, longestToken)
    if (identity?.oidc && assertion !== undefined) return await bySignedToken(assertion, from)
    const user = forwardedUser(request)
    if (user) return asUser(user, from, { via: 'proxy', endsAt: Date.now() + forwardedMs })
    if (given !== undefined) return byToken(given, from)
    throw new Refusal(
      401,
      identity ? 'Sign in, or send the token: Authorization: Bearer …' : 'Send the token: Authorization: Bearer …',
    )
  }
  return { identify, addressOf }
}

/** True if a text could be a signed token. */
export function looksSigned(text: string): boolean {
  return tokenShape.test(text)
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

const mostShown = 20

/** Returns the role of a user; throws a refusal that says what was seen and what is allowed if there is none. */
function createRoles({ operator, viewer }: RoleSettings): (user: User) => Role {
  const operators = new Set(operator)
  const viewers = new Set(viewer)
  return user => {
    const words = ['*', `user:${user.name}`, ...user.groups.map(group => `group:${group}`)]
    if (words.some(word => operators.has(word))) return 'operator'
    if (words.some(word => viewers.has(word))) return 'viewer'
    const groups = user.groups.length === 0 ? 'in no group' : `in the groups ${shown(user.groups)}`
    throw new Refusal(
      403,
      `You are signed in as ${user.name}, ${groups}, which has no role here: gateway.admin.identity.roles lists ${shown([...operator, ...viewer])}.`,
    )
  }
}

function shown(words: readonly string[]): string {
  const more = words.length - mostShown
  return `${words.slice(0, mostShown).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}
