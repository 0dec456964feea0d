import { headerFault, listOf, networkFault, textOf, z } from 'diana-limiter/schema'

/** The users who are known besides the holders of tokens, and what they may do. */
export interface IdentitySettings {
  /** Peers that are believed to name users and the addresses of clients. */
  readonly trustedProxies: readonly string[]
  /** The headers in which these proxies name the user, in lower case. */
  readonly headers?: { readonly user: string; readonly groups?: string | undefined } | undefined
  readonly oidc?: OidcSettings | undefined
  readonly roles: RoleSettings
  /** The page where a user signs out. */
  readonly logoutUrl?: string | undefined
}

/** The roles by user: `group:NAME`, `user:NAME`, or `*` for everyone who is signed in. */
export interface RoleSettings {
  readonly operator: readonly string[]
  readonly viewer: readonly string[]
}

/** The issuer whose tokens are believed, and the claims that are read. */
export interface OidcSettings {
  readonly issuer?: string | undefined
  /** A URL or a file; left out, the issuer says where its keys are. */
  readonly jwks?: string | undefined
  readonly audience: readonly string[]
  /** The header that has the token, in lower case; Authorization unless given. */
  readonly header?: string | undefined
  readonly userClaim: string
  readonly groupsClaim?: string | undefined
}

/** These mean something else already. */
const takenHeaders = new Set([
  ...['authorization', 'cookie', 'host', 'origin', 'referer', 'connection', 'content-type', 'content-length', 'accept'],
  ...['transfer-encoding', 'x-forwarded-for', 'forwarded', 'sec-fetch-site', 'accept-encoding', 'user-agent'],
])

const header = textOf(name => {
  if (takenHeaders.has(name.toLowerCase())) return 'has another meaning: name the header that the proxy adds'
  return headerFault(name)
}, 128).transform(name => name.toLowerCase())

const member = textOf(text => {
  if (text === '*' || /^(?:group|user):[^\p{C}]+$/u.test(text)) return undefined
  return "must be group:NAME, user:NAME, or '*' for everyone who is signed in"
}, 300)

const loopback = /^(?:localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\])$/

/** Returns why keys from a URL could be replaced on the way; undefined if they cannot. */
export function keyUrlFault(text: string): string | undefined {
  const remedy = 'must be a URL that begins with https:// (http:// on this machine only)'
  if (!URL.canParse(text)) return remedy
  const { protocol, hostname, username, password } = new URL(text)
  if (username !== '' || password !== '') return 'must have no user name and no password in it'
  return protocol === 'https:' || (protocol === 'http:' && loopback.test(hostname)) ? undefined : remedy
}

const members = listOf(member, { min: 0, max: 1000 })

const oidc = z
  .strictObject({
    issuer: z.string().min(1).max(1024).optional().describe('Tokens must be issued by it (`iss`).'),
    jwks: textOf(text => (/^[a-z]+:\/\//i.test(text) ? keyUrlFault(text) : undefined), 4096)
      .optional()
      .describe('Its keys: a URL, or a file as seen from this file; default: where the issuer says they are.'),
    audience: listOf(z.string().min(1).max(1024), { min: 1, max: 100 }).describe(
      'Tokens must be meant for it (`aud`).',
    ),
    header: header.optional().describe('The header that has the token; default: Authorization: Bearer.'),
    userClaim: z.string().min(1).max(256).default('email').describe('The claim that names the user; default: email.'),
    groupsClaim: z
      .string()
      .min(1)
      .max(256)
      .optional()
      .describe('The claim that lists groups; dots lead into objects: realm_access.roles.'),
  })
  .superRefine(({ issuer, jwks }, context) => {
    if (jwks !== undefined) return
    const message = issuer === undefined ? 'is needed, or jwks' : keyUrlFault(issuer)
    if (message !== undefined) context.addIssue({ code: 'custom', path: ['issuer'], message })
  })

export const identitySchema: z.Schema<IdentitySettings> = z
  .strictObject({
    trustedProxies: listOf(textOf(networkFault, 64), { min: 0, max: 1000 })
      .default([])
      .describe('Addresses or networks of proxies that may name users; everyone who can call from there is believed.'),
    headers: z
      .strictObject({
        user: header.describe('The header that names the user, such as x-forwarded-email.'),
        groups: header.optional().describe('The header that lists groups, separated by commas.'),
      })
      .optional()
      .describe('What trusted proxies add to requests.'),
    oidc: oidc.optional().describe('Signed tokens (JWT) that name users.'),
    roles: z
      .strictObject({
        operator: members.default([]).describe('Who may change everything.'),
        viewer: members.default([]).describe('Who may read everything but documents.'),
      })
      .describe("Roles by group:NAME, user:NAME, or '*' for everyone who is signed in."),
    logoutUrl: textOf(logoutFault, 2048).optional().describe('Where the dashboard sends users who sign out.'),
  })
  .superRefine(({ trustedProxies, headers, oidc, roles }, context) => {
    const add = (path: string[], message: string) => context.addIssue({ code: 'custom', path, message })
    if (headers === undefined && oidc === undefined) add([], 'needs headers of a proxy, or oidc: nothing names users')
    if (headers && trustedProxies.length === 0) {
      add(['headers'], 'are believed from trusted proxies only, and none is trusted: set trustedProxies')
    }
    if (headers?.groups !== undefined && headers.groups === headers.user) {
      add(['headers', 'groups'], 'is the header of the user: name another one')
    }
    if (oidc?.header !== undefined && [headers?.user, headers?.groups].includes(oidc.header)) {
      add(['oidc', 'header'], 'is a header of the proxy, too: name another one')
    }
    if (roles.operator.length + roles.viewer.length === 0) add(['roles'], 'have no members: list a group or a user')
  })

/**
 * Returns what is wrong with the address after a logout: it must be a page of this host, or an address of another one, and nothing that a
 * browser would run.
 */
function logoutFault(text: string): string | undefined {
  const isPath = /^\/(?![/\\])[\x21-\x7e]*$/.test(text)
  const isUrl = /^https?:\/\/[\x21-\x7e]+$/i.test(text) && URL.canParse(text)
  return isPath || isUrl ? undefined : 'must be a path such as /oauth2/sign_out, or a URL with http:// or https://'
}
