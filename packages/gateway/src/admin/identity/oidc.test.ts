import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type FakeIssuer, startIssuer } from '@test/admin/issuer'
import { createLimiter, type Limiter } from 'diana-limiter'
import type { FastifyInstance } from 'fastify'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type AdminOptions, createAdmin } from '../server/create-admin.ts'

const token = 'correct-horse-battery-staple'
const roles = { operator: ['group:sre'], viewer: ['user:ann@example.com'] }
const seconds = () => Math.floor(Date.now() / 1000)
const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
let issuer: FakeIssuer
let limiter: Limiter
let app: FastifyInstance
let warnings: string[] = []
beforeAll(async () => {
  issuer = await startIssuer()
  limiter = await createLimiter({ rules: [{ id: 'all', limit: '100/m' }] })
})
afterAll(async () => {
  await app.close()
  await issuer.close()
  await limiter.close()
})

type Oidc = NonNullable<NonNullable<AdminOptions['identity']>['oidc']>

let opened: string | undefined

/** Goes on with the one that is open if it has the same settings. */
async function open(oidc: Partial<Oidc> = {}, isNew = false): Promise<void> {
  const settings = JSON.stringify(oidc)
  if (opened === settings && !isNew) return
  await app?.close()
  opened = settings
  warnings = []
  const all: Oidc = { issuer: issuer.url, audience: ['diana'], userClaim: 'email', groupsClaim: 'groups', ...oidc }
  const options = {
    limiter,
    host: '127.0.0.1',
    page: '/nowhere',
    token,
    onWarning: (one: string) => warnings.push(one),
  }
  app = await createAdmin({ ...options, identity: { trustedProxies: [], roles, oidc: all } })
}

let clients = 0
async function ask(headers: Record<string, string>, remoteAddress = `10.1.${clients >> 8}.${clients++ & 255}`) {
  const reply = await app.inject({ url: '/api/v1/session', remoteAddress, headers: { host: '127.0.0.1', ...headers } })
  return { status: reply.statusCode, body: reply.json() as Record<string, string> }
}
const withToken = (text: string) => ask({ authorization: `Bearer ${text}` })
const ann = { email: 'ann@example.com', groups: ['staff'] }

describe('a token of an issuer', () => {
  it('a token that the issuer has signed names a user and their groups', async () => {
    await open()
    expect((await withToken(issuer.tokenOf(ann))).body).toEqual({ role: 'viewer', user: ann.email, via: 'oidc' })
    const bob = { email: 'bob@example.com', groups: ['staff', 'sre'], aud: ['other', 'diana'], nbf: seconds() }
    expect((await withToken(issuer.tokenOf(bob))).body).toMatchObject({ role: 'operator', user: 'bob@example.com' })
    expect((await withToken(issuer.tokenOf({ ...bob, groups: 'sre' }))).body.role).toBe('operator')
    expect((await withToken(token)).body).toEqual({ role: 'operator', via: 'token' })
  })

  it.each<[string, () => string]>([
    ['has no signature', () => issuer.tokenOf(ann).replace(/[^.]*$/, '')],
    ['has alg none', () => `${part({ alg: 'none' })}.${part({ ...ann, iss: issuer.url, aud: 'diana' })}.`],
    ['says alg none beside a signature', () => issuer.tokenOf(ann, { alg: 'None' })],
    ['says another algorithm', () => issuer.tokenOf(ann, { alg: 'RS256' })],
    ['uses the public key as a secret', () => issuer.tokenOf(ann, { alg: 'HS256' }, JSON.stringify(issuer.keys))],
    ['names another key', () => issuer.tokenOf(ann, { kid: 'key-0' })],
    ['has a critical header', () => issuer.tokenOf(ann, { crit: ['x'] })],
    [
      'is signed by another key, which it brings along',
      () => {
        const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
        const head = { jwk: publicKey.export({ format: 'jwk' }), jku: `${issuer.url}/evil`, x5u: `${issuer.url}/evil` }
        return issuer.tokenOf(ann, head, privateKey)
      },
    ],
    ['was changed', () => issuer.tokenOf(ann).replace(/\.[^.]*\./, `.${part({ ...ann, groups: ['sre'] })}.`)],
    ['is huge', () => issuer.tokenOf({ ...ann, x: 'x'.repeat(9000) })],
    ['is no JSON', () => 'aaaa.bbbb.cccc'],
    ['has expired', () => issuer.tokenOf({ ...ann, exp: seconds() - 1 })],
    ['has no end', () => issuer.tokenOf({ ...ann, exp: undefined })],
    ['ends at no number', () => issuer.tokenOf({ ...ann, exp: '99999999999' })],
    ['is not valid yet', () => issuer.tokenOf({ ...ann, nbf: seconds() + 600 })],
    ['is valid from no number on', () => issuer.tokenOf({ ...ann, nbf: '0' })],
    ['is for another audience', () => issuer.tokenOf({ ...ann, aud: 'other' })],
    ['is for no audience', () => issuer.tokenOf({ ...ann, aud: undefined })],
    ['is for an audience that begins alike', () => issuer.tokenOf({ ...ann, aud: ['diana2', ['diana']] })],
    ['is of another issuer', () => issuer.tokenOf({ ...ann, iss: `${issuer.url}/` })],
  ])('a token that %s is refused with 401', async (_, make) => {
    await open()
    const { status, body } = await withToken(make())
    expect([status, body.role]).toEqual([401, undefined])
    expect(issuer.asked).not.toContain('/evil')
  })

  it.each<[string, object]>([
    ['names no user', { groups: ['sre'] }],
    ['has an empty name', { email: '', groups: ['sre'] }],
    ['has a name that is no text', { email: ['ann@example.com'] }],
    ['has a name with a line break', { email: 'ann@example.com\n', groups: ['sre'] }],
    ['has a name that is written backward', { email: '\u202enna', groups: ['sre'] }],
    ['has an address that is not verified', { ...ann, email_verified: false }],
    ['has no role', { email: 'eve@example.com', groups: ['sales', { sre: 1 }, ['sre']] }],
    ['has groups of a prototype', { email: 'eve@example.com', groups: { length: 1, 0: 'sre' } }],
  ])('a token that %s is refused with 403', async (_, claims) => {
    await open()
    expect((await withToken(issuer.tokenOf(claims))).status).toBe(403)
  })

  it('claims may stand inside others, and names of claims may have dots', async () => {
    await open({ groupsClaim: 'realm_access.roles', userClaim: 'https://example.com/name' })
    const name = { 'https://example.com/name': 'bob' }
    const { body } = await withToken(issuer.tokenOf({ ...name, realm_access: { roles: ['sre'] } }))
    expect(body).toMatchObject({ role: 'operator', user: 'bob' })
    await open({ groupsClaim: '__proto__.constructor.name' })
    expect((await withToken(issuer.tokenOf({ email: 'x', groups: ['sre'] }))).status).toBe(403)
  })

  it('a token may come in a header of its own, once', async () => {
    await open({ header: 'cf-access-jwt-assertion', jwks: `${issuer.url}/keys` })
    const header = 'Cf-Access-Jwt-Assertion'
    expect((await ask({ [header]: issuer.tokenOf(ann) })).body).toMatchObject({ user: ann.email, via: 'oidc' })
    expect((await withToken(issuer.tokenOf(ann))).status).toBe(401)
    expect((await ask({ [header]: '' })).status).toBe(400)
    expect((await ask({ [header]: 'x'.repeat(9000) })).status).toBe(400)
    expect((await ask({ [header]: issuer.tokenOf(ann), authorization: `Bearer ${token}` })).body.via).toBe('token')
    // the browser sends along what the proxy adds
    const headers = { host: '127.0.0.1', [header]: issuer.tokenOf({ ...ann, groups: ['sre'] }) }
    const change = { method: 'POST' as const, url: '/api/v1/reset', payload: { rule: 'all', key: 'x' } }
    const reply = await app.inject({ ...change, headers })
    expect([reply.statusCode, reply.json().detail]).toEqual([403, expect.stringContaining('x-diana-request')])
  })

  it('the live stream ends with the token', async () => {
    await open()
    const authorization = `Bearer ${issuer.tokenOf({ ...ann, exp: seconds() + 1 })}`
    const reply = await app.inject({ url: '/api/v1/live', headers: { host: '127.0.0.1', authorization } })
    expect([reply.statusCode, reply.body]).toEqual([200, expect.stringContaining('event: status')])
    const again = await app.inject({ url: '/api/v1/live', headers: { host: '127.0.0.1', authorization } })
    expect(again.statusCode).toBe(401)
  })

  it('wrong signatures count as wrong tokens, and expired tokens do not', async () => {
    await open()
    const old = issuer.tokenOf({ ...ann, exp: seconds() - 1 })
    const bad = issuer.tokenOf(ann).replace(/[^.]*$/, 'AAAA')
    const statuses = async (text: string) => {
      const found: number[] = []
      for (let i = 0; i < 12; i++) found.push((await ask({ authorization: `Bearer ${text}` }, '198.51.100.77')).status)
      return found
    }
    expect(new Set(await statuses(old))).toEqual(new Set([401]))
    expect((await statuses(bad)).slice(-1)).toEqual([429])
    expect((await withToken(issuer.tokenOf(ann))).status).toBe(200)
  })
})

describe('the keys of an issuer', () => {
  it('tokens with unknown keys do not keep the issuer busy', async () => {
    await open()
    expect((await withToken(issuer.tokenOf(ann))).status).toBe(200)
    const before = issuer.asked.length
    for (let i = 0; i < 5; i++) await withToken(issuer.tokenOf(ann, { kid: `unknown-${i}` }))
    expect(issuer.asked.length).toBe(before)
  })

  it('an issuer that is down keeps out no operator with the admin token, and is reported once', async () => {
    const gone = await startIssuer()
    await gone.close()
    await open({ jwks: `${gone.url}/keys` })
    const { status, body } = await withToken(issuer.tokenOf(ann))
    expect([status, body.detail]).toEqual([503, expect.stringMatching(/cannot be read \(ECONNREFUSED\).*admin token/)])
    expect((await withToken(token)).status).toBe(200)
    expect((await withToken(issuer.tokenOf(ann))).status).toBe(503)
    expect(warnings).toEqual([expect.stringContaining('the keys of the issuer cannot be read: ECONNREFUSED')])
  })

  it('an issuer that does not answer delays no other request', async () => {
    const { keys } = issuer
    issuer.keys = undefined
    await open({}, true)
    const waiting = withToken(issuer.tokenOf(ann))
    expect((await withToken(token)).status).toBe(200)
    expect((await ask({})).status).toBe(401)
    issuer.keys = keys
    // ends the request for the keys
    const closing = app.close()
    expect((await waiting).status).toBe(503)
    await closing
    opened = undefined
  })

  it.each<[string, unknown, RegExp]>([
    ['no keys', { keys: [] }, /no key/],
    ['more than a key set needs', { keys: [], x: 'x'.repeat(300_000) }, /more than 262144 bytes/],
  ])('an issuer with %s is reported', async (_, answer, why) => {
    const { keys } = issuer
    issuer.keys = answer
    await open({}, true)
    expect((await withToken(issuer.tokenOf(ann))).status).toBe(503)
    expect(warnings.join()).toMatch(why)
    issuer.keys = keys
  })

  it('redirects are not followed, and an issuer of another name is not believed', async () => {
    await open({ jwks: `${issuer.url}/elsewhere` })
    expect((await withToken(issuer.tokenOf(ann))).status).toBe(503)
    expect(warnings.join()).toContain('answered HTTP 302')
    await open({ issuer: issuer.url.replace('127.0.0.1', 'localhost') })
    expect((await withToken(issuer.tokenOf(ann))).status).toBe(503)
    expect(warnings.join()).toMatch(/names itself otherwise|ECONNREFUSED/)
  })

  it('keys are read from a file', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'diana-keys-'))
    const jwks = join(folder, 'keys.json')
    writeFileSync(jwks, JSON.stringify(issuer.keys))
    await open({ jwks })
    expect((await withToken(issuer.tokenOf(ann))).status).toBe(200)
    rmSync(folder, { recursive: true })
  })
})
