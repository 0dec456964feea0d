import { createHmac, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { readKeySet } from './key-set.ts'
import { readToken } from './token.ts'

const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
const ec = generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
const p384 = generateKeyPairSync('ec', { namedCurve: 'secp384r1' })
const jwk = (key: KeyObject, more: object = {}) => ({ ...key.export({ format: 'jwk' }), ...more })
const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')

function tokenOf(key: KeyObject, head: object): NonNullable<ReturnType<typeof readToken>> {
  const signed = `${part(head)}.${part({ sub: 'ann' })}`
  const signature = sign('sha256', Buffer.from(signed), { key, dsaEncoding: 'ieee-p1363' })
  return readToken(`${signed}.${signature.toString('base64url')}`)!
}

describe('the key set of an issuer', () => {
  it('a key set verifies tokens of its keys, by the key that the token names', () => {
    const set = readKeySet(
      JSON.stringify({ keys: [jwk(rsa.publicKey, { kid: 'a', use: 'sig' }), jwk(ec.publicKey, { kid: 'b' })] }),
    )
    expect(set.isSigned(tokenOf(rsa.privateKey, { alg: 'RS256', kid: 'a' }))).toBe(true)
    expect(set.isSigned(tokenOf(rsa.privateKey, { alg: 'RS256' }))).toBe(true)
    expect(set.isSigned(tokenOf(ec.privateKey, { alg: 'ES256', kid: 'b' }))).toBe(true)
    expect(set.isSigned(tokenOf(rsa.privateKey, { alg: 'RS256', kid: 'b' }))).toBe(false)
    expect(set.isSigned(tokenOf(rsa.privateKey, { alg: 'none' }))).toBe(false)
    expect([set.has('a'), set.has('b'), set.has('c')]).toEqual([true, true, false])
  })

  it('a key set has no secrets, and leaves out keys that it cannot use', () => {
    const secret = Buffer.alloc(32, 1)
    const keys = [
      { kty: 'oct', k: secret.toString('base64url'), kid: 'secret' },
      jwk(rsa.publicKey, { use: 'enc', kid: 'enc' }),
      jwk(p384.publicKey, { kid: 'p384' }),
      { kty: 'RSA', kid: 'broken', n: 'AQAB' },
      null,
      7,
      jwk(ec.publicKey, { kid: 'good' }),
    ]
    const set = readKeySet(JSON.stringify({ keys }))
    expect(['secret', 'enc', 'p384', 'broken', 'good'].filter(kid => set.has(kid))).toEqual(['good'])
    const signed = `${part({ alg: 'HS256' })}.${part({})}`
    for (const key of [secret, Buffer.from(JSON.stringify(jwk(ec.publicKey)))]) {
      const mac = createHmac('sha256', key).update(signed).digest('base64url')
      expect(set.isSigned(readToken(`${signed}.${mac}`)!)).toBe(false)
    }
  })

  it.each(['', 'null', '[]', '{}', '{"keys":{}}', '{"keys":[]}', '{"keys":[{"kty":"oct","k":"AAAA"}]}', '<html>'])(
    'a key set of %j is an error that says what is wrong',
    text => {
      expect(() => readKeySet(text)).toThrow(/JWKS|no key/)
    },
  )
})
