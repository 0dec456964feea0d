import type { JsonWebKey, KeyObject } from 'node:crypto'
import { nodeCrypto } from '../../common/node-modules.ts'
import { fileFault, readRegularFileSync } from '../../common/regular-file.ts'
import { DianaError } from '../../errors.ts'
import type { Token } from './token.ts'

/** A function that returns true if a token was signed by one key, with the one algorithm that the key is for. */
export type Verifier = (token: Token) => boolean

type Check = (signed: Buffer, signature: Buffer) => boolean

const MIN_SECRET = 32
const MAX_KEYS = 100

/** Returns the keys of a document; throws if one cannot be read or used. */
export function loadVerifiers(keys: readonly string[]): Verifier[] {
  const verifiers = keys.flatMap(word => verifiersOf(load(word)))
  if (verifiers.length <= MAX_KEYS) return verifiers
  throw fault(`has ${verifiers.length} keys: use at most ${MAX_KEYS}`)
}

function load(word: string): string {
  if (word.startsWith('env:')) {
    const name = word.slice(4)
    const value = process.env[name]
    if (value) return value
    throw fault(`names the environment variable ${name}, which is not set: set it`)
  }
  if (!word.startsWith('file:')) return word
  const path = word.slice(5)
  try {
    return readRegularFileSync(path).toString().trim()
  } catch (cause) {
    throw fault(`names the file ${path}, which cannot be read (${fileFault(cause)}): check the path`, cause)
  }
}

/** Makes the verifiers of a text; a public key is never used as a secret: then anyone who knows it could sign (RFC 8725, section 2.1). */
function verifiersOf(text: string): Verifier[] {
  if (text.trimStart().startsWith('{')) return verifiersOfJwk(text)
  if (text.includes('-----BEGIN')) {
    return [
      byPublicKey(make(() => nodeCrypto().createPublicKey(text), 'is no public key in PEM: write one, or its file')),
    ]
  }
  return [bySecret(Buffer.from(text))]
}

function verifiersOfJwk(text: string): Verifier[] {
  const value = make(() => JSON.parse(text) as unknown, 'begins with { and is no JSON: write a JWK or a JWKS')
  const { keys = [value] } = value as { keys?: unknown }
  if (!Array.isArray(keys) || keys.length === 0) throw fault('is a JWKS without keys: put one in it')
  return keys.map(key => verifierOfJwk(key as JsonWebKey & { readonly kid?: unknown }))
}

function verifierOfJwk(jwk: JsonWebKey & { readonly kid?: unknown }): Verifier {
  const kid = typeof jwk?.kid === 'string' ? jwk.kid : undefined
  const verifier =
    jwk?.kty === 'oct'
      ? bySecret(Buffer.from(String(jwk.k ?? ''), 'base64url'))
      : byPublicKey(
          make(() => nodeCrypto().createPublicKey({ key: jwk, format: 'jwk' }), 'holds a JWK that cannot be used'),
        )
  // a token that names its key is verified with that key only
  return token => (kid === undefined || token.kid === undefined || kid === token.kid) && verifier(token)
}

function bySecret(secret: Buffer): Verifier {
  if (secret.length < MIN_SECRET) {
    throw fault(`is a secret of ${secret.length} bytes: HS256 needs ${MIN_SECRET} or more (RFC 7518, section 3.2)`)
  }
  return only('HS256', (signed, signature) => {
    const { createHmac, timingSafeEqual } = nodeCrypto()
    const expected = createHmac('sha256', secret).update(signed).digest()
    return signature.length === expected.length && timingSafeEqual(signature, expected)
  })
}

/** Verifies with one public key; throws if it is of a kind that is not supported. */
export function byPublicKey(key: KeyObject): Verifier {
  const { asymmetricKeyType: type, asymmetricKeyDetails: details } = key
  const { verify } = nodeCrypto()
  if (type === 'rsa' && (details?.modulusLength ?? 0) >= 2048) {
    return only('RS256', (signed, signature) => verify('sha256', signed, key, signature))
  }
  if (type === 'ec' && details?.namedCurve === 'prime256v1') {
    return only('ES256', (signed, signature) => verify('sha256', signed, { key, dsaEncoding: 'ieee-p1363' }, signature))
  }
  if (type === 'ed25519') return only('EdDSA', (signed, signature) => verify(null, signed, key, signature))
  throw fault('is of a kind not known here: use RSA of 2048 bits or more, EC on P-256, Ed25519, or a secret')
}

/** Restricts a check to the algorithm of the key, not of the token: otherwise a public key could be used as a secret. */
function only(alg: string, check: Check): Verifier {
  return token => {
    if (token.alg !== alg) return false
    try {
      return check(Buffer.from(token.signed), token.signature)
    } catch {
      return false
    }
  }
}

function make<T>(create: () => T, what: string): T {
  try {
    return create()
  } catch (cause) {
    throw fault(what, cause)
  }
}

function fault(what: string, cause?: unknown): DianaError {
  return new DianaError('BAD_RULES', `jwt.key ${what}`, { cause })
}
