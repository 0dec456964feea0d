import { readToken, type Token } from 'diana-limiter/gateway'
import { Refusal } from '../../http/refusal.ts'
import type { OidcSettings } from '../../settings/identity-settings.ts'
import { longestName, mostGroups, type User } from './identity.ts'

/** Longer tokens are refused before anything of them is read. */
export const longestToken = 8192
/** The clock of an issuer may be ahead by this time. */
const aheadSeconds = 60

/** Returns a token in compact form; undefined for any other text. */
export function parseToken(text: string): Token | undefined {
  return text.length > longestToken ? undefined : readToken(text)
}

/** Returns the user that a token names whose signature is verified, and when the token ends; throws a refusal if it is not valid. */
export function readUser({ claims }: Token, settings: OidcSettings, now: number): User & { readonly endsAt: number } {
  const { exp, nbf, iss, aud } = claims
  if (typeof exp !== 'number') throw invalid('has no end (exp)')
  const seconds = now / 1000
  if (seconds >= exp) throw invalid('has expired: sign in again')
  if (nbf !== undefined && !(typeof nbf === 'number' && nbf <= seconds + aheadSeconds))
    throw invalid('is not valid yet')
  if (settings.issuer !== undefined && iss !== settings.issuer) throw invalid('is of another issuer')
  if (![aud].flat().some(one => settings.audience.includes(one as string)))
    throw invalid('is meant for another service')
  return {
    name: nameIn(claims, settings.userClaim),
    groups: groupsIn(claims, settings.groupsClaim),
    endsAt: exp * 1000,
  }
}

type Claims = Token['claims']

function nameIn(claims: Claims, claim: string): string {
  const name = claimIn(claims, claim)
  if (!isName(name)) throw new Refusal(403, `The token has no claim ${claim} that names a user.`)
  // an address that its owner has not confirmed may be that of another user
  if (claim === 'email' && claims.email_verified === false) {
    throw new Refusal(403, 'The token has an email address that is not verified: confirm it at the issuer.')
  }
  return name
}

function groupsIn(claims: Claims, claim: string | undefined): string[] {
  if (claim === undefined) return []
  return [claimIn(claims, claim)].flat().filter(isName).slice(0, mostGroups)
}

/** Returns a claim by its whole name, which may have dots, or a value inside objects. */
function claimIn(claims: Claims, claim: string): unknown {
  if (Object.hasOwn(claims, claim)) return claims[claim]
  return claim.split('.').reduce<unknown>((value, part) => {
    const isInside = typeof value === 'object' && value !== null && Object.hasOwn(value, part)
    return isInside ? (value as Claims)[part] : undefined
  }, claims)
}

/** True if nothing in a name is invisible: names are shown to other operators. */
function isName(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.length <= longestName && !/\p{C}/u.test(value)
}

function invalid(what: string): Refusal {
  return new Refusal(401, `The token ${what}.`)
}
