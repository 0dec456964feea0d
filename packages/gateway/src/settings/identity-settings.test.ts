import { describe, expect, it } from 'vitest'
import { adminSchema } from './admin-settings.ts'

const roles = { operator: 'group:sre' }
const headers = { user: 'X-Forwarded-Email', groups: 'X-Forwarded-Groups' }
const read = (identity: object) => adminSchema.safeParse({ identity })
const faults = (identity: object) =>
  read(identity).error?.issues.map(({ path, message }) => `${path.join('.')}: ${message}`) ?? []

describe('gateway.admin.identity', () => {
  it('header names are read in lower case, and lists may be one word', () => {
    expect(read({ trustedProxies: '10.0.0.0/8', headers, roles }).data?.identity).toEqual({
      trustedProxies: ['10.0.0.0/8'],
      headers: { user: 'x-forwarded-email', groups: 'x-forwarded-groups' },
      roles: { operator: ['group:sre'], viewer: [] },
    })
    const oidc = { issuer: 'https://accounts.example.com', audience: 'diana' }
    expect(read({ oidc, roles }).data?.identity?.oidc).toEqual({ ...oidc, audience: ['diana'], userClaim: 'email' })
  })

  it.each<[string, object, RegExp]>([
    ['nothing that names users', { roles }, /needs headers of a proxy, or oidc/],
    ['headers without a proxy', { headers, roles }, /identity.headers: are believed from trusted proxies only/],
    ['an unknown network', { trustedProxies: ['10.0.0.0/99'], headers, roles }, /trustedProxies/],
    ['no roles', { trustedProxies: '::1', headers, roles: {} }, /roles: have no members/],
    ['a role without a kind', { trustedProxies: '::1', headers, roles: { viewer: ['sre'] } }, /group:NAME, user:NAME/],
    [
      'a header that means something else',
      { trustedProxies: '::1', headers: { user: 'Cookie' }, roles },
      /another meaning/,
    ],
    [
      'no name of a header',
      { trustedProxies: '::1', headers: { user: 'x user' }, roles },
      /is not the name of a header/,
    ],
    [
      'one header for both',
      { trustedProxies: '::1', headers: { user: 'a', groups: 'A' }, roles },
      /is the header of the user/,
    ],
    [
      'an issuer over plain HTTP',
      { oidc: { issuer: 'http://idp.example', audience: 'd' }, roles },
      /begins with https/,
    ],
    ['keys over plain HTTP', { oidc: { jwks: 'http://10.0.0.1/keys', audience: 'd' }, roles }, /begins with https/],
    ['keys with a password', { oidc: { jwks: 'https://a:b@idp.example/', audience: 'd' }, roles }, /no password/],
    ['keys from another kind of URL', { oidc: { jwks: 'data://x', audience: 'd' }, roles }, /begins with https/],
    ['neither issuer nor keys', { oidc: { audience: 'd' }, roles }, /issuer: is needed, or jwks/],
    ['no audience', { oidc: { issuer: 'https://idp.example' }, roles }, /audience/],
    ...[
      'javascript:alert(1)',
      '//evil.example',
      '/\\evil.example',
      'sign_out',
      'data:text/html,x',
      '/a b',
      'https://',
    ].map((logoutUrl): [string, object, RegExp] => [
      `the address ${logoutUrl} to sign out`,
      { trustedProxies: '::1', headers, roles, logoutUrl },
      /logoutUrl: must be a path/,
    ]),
  ])('%s is a mistake that says what to do', (_, identity, message) => {
    expect(faults(identity).join('\n')).toMatch(message)
  })

  it.each(['/oauth2/sign_out?rd=%2F', 'https://team.cloudflareaccess.com/cdn-cgi/access/logout'])(
    '%s is a place to sign out',
    logoutUrl => {
      expect(faults({ trustedProxies: '::1', headers, roles, logoutUrl })).toEqual([])
    },
  )
})
