import { createHmac, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { JwtSettings } from './dimension.ts'
import { jwt } from './jwt.ts'

const nowMs = Date.UTC(2026, 0, 1)
const seconds = nowMs / 1000
const secret = 'a secret of thirty-two bytes, or more'
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
const ec = generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
const ed = generateKeyPairSync('ed25519')
const pem = (key: KeyObject) => key.export({ type: 'spki', format: 'pem' }).toString()

const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
const claims = { sub: 'u1', tenant: 7, admin: true, exp: seconds + 60 }

function token(alg: string, key: KeyObject | string, body: object = claims, head: object = {}): string {
  const signed = `${part({ alg, typ: 'JWT', ...head })}.${part(body)}`
  const data = Buffer.from(signed)
  const signature =
    typeof key === 'string'
      ? createHmac('sha256', key).update(data).digest()
      : alg === 'EdDSA'
        ? sign(null, data, key)
        : sign('sha256', data, alg === 'ES256' ? { key, dsaEncoding: 'ieee-p1363' } : key)
  return `${signed}.${signature.toString('base64url')}`
}

function reader(settings: Partial<JwtSettings>, now = () => nowMs) {
  const dimension = jwt.set!({ ipv6Prefix: 64, nowMs: now, jwt: { keys: [], verified: false, ...settings } })
  return (text: string | string[] | undefined, claim = 'sub') => {
    const authorization = typeof text === 'string' ? `Bearer ${text}` : text
    return dimension.read({ method: 'GET', path: '/', headers: { authorization } }, claim)
  }
}

describe('a claim of a token', () => {
  it.each([
    ['HS256', secret, secret],
    ['RS256', pem(rsa.publicKey), rsa.privateKey],
    ['ES256', pem(ec.publicKey), ec.privateKey],
    ['EdDSA', pem(ed.publicKey), ed.privateKey],
  ])('a claim signed with %s by a configured key is accepted', (alg, key, signer) => {
    const read = reader({ keys: [key] })
    expect(read(token(alg, signer))).toBe('u1')
    expect(read(token(alg, signer), 'tenant')).toBe('7')
    expect(read(token(alg, signer), 'admin')).toBeUndefined()
    expect(read(token(alg, signer), 'toString')).toBeUndefined()
    expect(read(token(alg, signer), '__proto__')).toBeUndefined()
    // signed with another key, or changed since
    const others: Record<string, () => KeyObject | string> = {
      HS256: () => `${secret}!`,
      RS256: () => generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey,
      ES256: () => generateKeyPairSync('ec', { namedCurve: 'prime256v1' }).privateKey,
      EdDSA: () => generateKeyPairSync('ed25519').privateKey,
    }
    expect(read(token(alg, others[alg]!()))).toBeUndefined()
    const [head, , signature] = token(alg, signer).split('.')
    expect(read(`${head}.${part({ ...claims, sub: 'admin' })}.${signature}`)).toBeUndefined()
    expect(read(`${head}.${part(claims)}.`)).toBeUndefined()
  })

  it('a claim without a signature, or signed with another algorithm than its key, is ignored', () => {
    const publicKey = pem(rsa.publicKey)
    const read = reader({ keys: [publicKey] })
    for (const alg of ['none', 'None', 'NONE', 'nOnE', '']) {
      expect(read(`${part({ alg })}.${part(claims)}.`)).toBeUndefined()
      expect(read(token('RS256', rsa.privateKey, claims, { alg }))).toBeUndefined()
    }
    // the public key used as a secret: it is not secret
    for (const known of [publicKey, publicKey.trim(), `${publicKey}\n`]) {
      expect(read(token('HS256', known))).toBeUndefined()
    }
    for (const alg of ['RS384', 'PS256', 'ES256', 'HS256']) {
      expect(read(token('RS256', rsa.privateKey, claims, { alg }))).toBeUndefined()
    }
    expect(reader({ keys: [secret] })(token('RS256', rsa.privateKey))).toBeUndefined()
    expect(read(token('RS256', rsa.privateKey, claims, { crit: ['exp'] }))).toBeUndefined()
    expect(read(token('RS256', rsa.privateKey))).toBe('u1')
  })

  it('a claim is accepted from nbf until exp', () => {
    let now = nowMs
    const read = reader({ keys: [secret] }, () => now)
    const text = token('HS256', secret, { sub: 'u1', nbf: seconds + 10, exp: seconds + 20 })
    const at = (offset: number) => {
      now = nowMs + offset * 1000
      return read(text)
    }
    expect([0, 9.999, 10, 19.999, 20, 21].map(at)).toEqual([undefined, undefined, 'u1', 'u1', undefined, undefined])
    now = nowMs
    expect(read(token('HS256', secret, { sub: 'u1' }))).toBe('u1')
    for (const bad of ['9999999999', null, {}, true]) {
      expect(read(token('HS256', secret, { sub: 'u1', exp: bad }))).toBeUndefined()
      expect(read(token('HS256', secret, { sub: 'u1', nbf: bad }))).toBeUndefined()
    }
  })

  it('a claim is accepted only from the configured issuer and audience', () => {
    const read = reader({ keys: [secret], issuer: 'us', audience: ['shop', 'bank'] })
    const of = (body: object) => read(token('HS256', secret, { sub: 'u1', ...body }))
    expect(of({ iss: 'us', aud: 'bank' })).toBe('u1')
    expect(of({ iss: 'us', aud: ['x', 'shop'] })).toBe('u1')
    for (const body of [{ iss: 'us' }, { aud: 'shop' }, { iss: 'them', aud: 'shop' }, { iss: 'us', aud: [] }]) {
      expect(of(body)).toBeUndefined()
    }
  })

  it('a token that a proxy has verified is read without verification', () => {
    const read = reader({ verified: true })
    expect(read(token('HS256', 'whatever'))).toBe('u1')
    expect(read(token('HS256', 'whatever', { ...claims, exp: seconds }))).toBeUndefined()
    expect(read(`${part({ alg: 'none' })}.${part(claims)}.`)).toBeUndefined()
  })

  it('a claim is ignored without keys', () => {
    const call = { method: 'GET', path: '/', headers: { authorization: `Bearer ${token('HS256', secret)}` } }
    expect(jwt.read(call, 'sub')).toBeUndefined()
    expect(jwt.set!({ ipv6Prefix: 64, nowMs: () => nowMs }).read(call, 'sub')).toBeUndefined()
  })

  it('a claim is read with the scheme in any case, and only if there is one token', () => {
    const good = token('HS256', secret)
    const dimension = jwt.set!({ ipv6Prefix: 64, nowMs: () => nowMs, jwt: { keys: [secret], verified: false } })
    const read = (authorization: string | string[]) => {
      return dimension.read({ method: 'GET', path: '/', headers: { authorization } }, 'sub')
    }
    expect([`bearer ${good}`, `BEARER   ${good}`].map(read)).toEqual(['u1', 'u1'])
    for (const bad of [
      good,
      `Basic ${good}`,
      `Bearer ${good}, Bearer ${good}`,
      `Bearer${good}`,
      '',
      'Bearer ',
      [good],
    ]) {
      expect(read(bad)).toBeUndefined()
    }
  })

  it('a malformed token has no claim, and never throws', () => {
    const read = reader({ keys: [secret, pem(rsa.publicKey), pem(ec.publicKey), pem(ed.publicKey)] })
    const piece = fc.oneof(
      fc.base64String(),
      fc.json().map(text => Buffer.from(text).toString('base64url')),
      fc.string(),
    )
    const head = fc.constantFrom('HS256', 'RS256', 'ES256', 'EdDSA').map(alg => part({ alg }))
    fc.assert(
      fc.property(fc.oneof(head, piece), piece, piece, (a, b, c) => {
        expect(read(`${a}.${b}.${c}`)).toBeUndefined()
      }),
    )
    for (const body of [null, [], 'text', 5]) expect(read(`${part({ alg: 'HS256' })}.${part(body)}.x`)).toBeUndefined()
    expect(read('.'.repeat(100_000))).toBeUndefined()
  })

  it('claims are cached for a bounded number of tokens', () => {
    const read = reader({ keys: [secret] })
    for (let i = 0; i < 3000; i++) expect(read(token('HS256', secret, { sub: `u${i}` }))).toBe(`u${i}`)
    expect(read(token('HS256', secret, { sub: 'u0' }))).toBe('u0')
  })
})

describe('a key', () => {
  it('a key may be in a file, in the environment, or in a JWKS', () => {
    const path = join(tmpdir(), `diana-jwt-${process.pid}.pem`)
    writeFileSync(path, pem(ec.publicKey))
    process.env.DIANA_TEST_SECRET = secret
    const jwks = JSON.stringify({
      keys: [
        { ...rsa.publicKey.export({ format: 'jwk' }), kid: 'r' },
        { ...ed.publicKey.export({ format: 'jwk' }), kid: 'e' },
        { kty: 'oct', k: Buffer.from(`${secret} too`).toString('base64url') },
      ],
    })
    try {
      const read = reader({ keys: [`file:${path}`, 'env:DIANA_TEST_SECRET', jwks] })
      expect(read(token('ES256', ec.privateKey))).toBe('u1')
      expect(read(token('HS256', secret))).toBe('u1')
      expect(read(token('HS256', `${secret} too`))).toBe('u1')
      expect(read(token('RS256', rsa.privateKey, claims, { kid: 'r' }))).toBe('u1')
      expect(read(token('RS256', rsa.privateKey))).toBe('u1')
      expect(read(token('RS256', rsa.privateKey, claims, { kid: 'e' }))).toBeUndefined()
      expect(read(token('EdDSA', ed.privateKey, claims, { kid: 'e' }))).toBe('u1')
    } finally {
      rmSync(path)
      Reflect.deleteProperty(process.env, 'DIANA_TEST_SECRET')
    }
  })

  it.each([
    ['too short', 'is a secret of 9 bytes: HS256 needs 32'],
    ['env:DIANA_NOT_SET', 'DIANA_NOT_SET, which is not set'],
    ['file:/no/such/key.pem', '/no/such/key.pem, which cannot be read'],
    ['-----BEGIN PUBLIC KEY-----\nnonsense that is longer than a secret has to be\n', 'is no public key in PEM'],
    ['{"keys":[]}', 'is a JWKS without keys'],
    ['{"kty":"RSA"}', 'holds a JWK that cannot be used'],
    ['{"kty":"oct","k":"c2hvcnQ"}', 'is a secret of 5 bytes'],
    ['{nonsense', 'is no JSON'],
    [pem(generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey), 'is of a kind not known here'],
    [pem(generateKeyPairSync('ec', { namedCurve: 'secp384r1' }).publicKey), 'is of a kind not known here'],
  ])('an unusable key is reported: %s', (key, message) => {
    expect(() => reader({ keys: [key] })).toThrow(message)
  })
})
