import type { Call } from '../call.ts'
import type { Dimension, JwtSettings } from './dimension.ts'
import { readToken, type Token } from './jwt/token.ts'
import { loadVerifiers } from './jwt/verifier.ts'

const MAX_TOKEN = 4096
const MAX_KNOWN = 1000
const SCHEME = /^bearer +/i

/**
 * A claim of the bearer token: `jwt:sub`. Only of a token that is signed by a key of the document, or that a proxy in front
 * has verified, and only while it is valid.
 */
export const jwt: Dimension = {
  name: 'jwt',
  argument: 'required',
  needs: 'jwt',
  // without a key, no token can be verified
  read: () => undefined,
  set: ({ jwt: settings, nowMs }) => (settings === undefined ? jwt : believing(settings, nowMs)),
}

function believing(settings: JwtSettings, nowMs: () => number): Dimension {
  const verifiers = loadVerifiers(settings.keys)
  const isSigned = (token: Token): boolean => settings.verified || verifiers.some(verify => verify(token))
  // several rules ask for the claims of one call, and a caller comes again: a signature takes long to verify
  const known = new Map<string, Token | undefined>()
  const tokenOf = (text: string): Token | undefined => {
    if (known.has(text)) return known.get(text)
    const token = readToken(text)
    const believed = token && isMeantForUs(token, settings) && isSigned(token) ? token : undefined
    if (known.size >= MAX_KNOWN) known.delete(known.keys().next().value!)
    known.set(text, believed)
    return believed
  }
  return {
    ...jwt,
    read(call, claim) {
      const text = bearerOf(call)
      const token = text === undefined ? undefined : tokenOf(text)
      if (token === undefined || !isValidAt(token, nowMs() / 1000)) return undefined
      const value = Object.hasOwn(token.claims, claim) ? token.claims[claim] : undefined
      return typeof value === 'string' || typeof value === 'number' ? String(value) : undefined
    },
  }
}

function bearerOf({ headers }: Call): string | undefined {
  const value = headers?.authorization
  // two tokens are ambiguous: services differ in which one they read
  if (typeof value !== 'string' || value.length > MAX_TOKEN || !SCHEME.test(value)) return undefined
  return value.replace(SCHEME, '')
}

function isMeantForUs({ alg, claims }: Token, { issuer, audience }: JwtSettings): boolean {
  // a proxy in front cannot have verified it
  if (alg.toLowerCase() === 'none') return false
  if (issuer !== undefined && claims.iss !== issuer) return false
  return audience === undefined || [claims.aud].flat().some(one => audience.includes(one as string))
}

/** True if a token is valid at a time (RFC 7519, sections 4.1.4 and 4.1.5); a moment that is no number is no moment. */
function isValidAt({ claims: { exp, nbf } }: Token, seconds: number): boolean {
  const hasNotEnded = exp === undefined || (typeof exp === 'number' && seconds < exp)
  return hasNotEnded && (nbf === undefined || (typeof nbf === 'number' && seconds >= nbf))
}
