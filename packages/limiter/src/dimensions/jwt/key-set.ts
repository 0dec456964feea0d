import type { JsonWebKey } from 'node:crypto'
import { nodeCrypto } from '../../common/node-modules.ts'
import type { Token } from './token.ts'
import { byPublicKey, type Verifier } from './verifier.ts'

/** The public keys of an issuer, as its JWKS lists them. */
export interface KeySet {
  /** True if one of the keys has signed a token. */
  isSigned(token: Token): boolean
  /** True if a key has this name. */
  has(kid: string): boolean
}

const MAX_KEYS = 100

/**
 * Reads a JWKS that an issuer publishes. Keys that cannot verify tokens here (secrets, keys for encryption, other algorithms) are
 * left out; throws if no key remains.
 */
export function readKeySet(text: string): KeySet {
  const keys = parseKeys(text)
  const usable = keys.slice(0, MAX_KEYS).flatMap(key => {
    const verify = verifierOf(key)
    return verify ? [{ kid: typeof key.kid === 'string' ? key.kid : undefined, verify }] : []
  })
  if (usable.length === 0) {
    throw new Error('holds no key that can be used: RSA of 2048 bits or more, EC on P-256, or Ed25519')
  }
  return {
    // a token that names its key is verified with that key only
    isSigned: token =>
      usable.some(
        ({ kid, verify }) => (kid === undefined || token.kid === undefined || kid === token.kid) && verify(token),
      ),
    has: kid => usable.some(key => key.kid === kid),
  }
}

interface Jwk extends JsonWebKey {
  readonly kid?: unknown
  readonly use?: unknown
}

function parseKeys(text: string): readonly Jwk[] {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new Error('is not JSON; check that it is a JWKS')
  }
  const { keys } = (value ?? {}) as { readonly keys?: unknown }
  if (!Array.isArray(keys)) throw new Error('is not a JWKS: it has no list of keys')
  return keys.filter(key => typeof key === 'object' && key !== null)
}

/** Makes the verifier of a key; a secret is never taken from a set that others can read. */
function verifierOf(jwk: Jwk): Verifier | undefined {
  if (jwk.kty === 'oct' || (jwk.use !== undefined && jwk.use !== 'sig')) return undefined
  try {
    return byPublicKey(nodeCrypto().createPublicKey({ key: jwk, format: 'jwk' }))
  } catch {
    return undefined
  }
}
