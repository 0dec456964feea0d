import { isIP } from 'node:net'
import { DianaError } from 'diana-limiter'
import { looksSigned, type SignInOptions } from '../identity/sign-in.ts'

const shortestToken = 16

/** Throws for a token that is too short, and for an address that others can reach without one. */
export function assertSafe(host: string, { token, viewToken, identity }: SignInOptions): void {
  if (viewToken !== undefined && (token === undefined || viewToken === token || viewToken.length < shortestToken)) {
    throw new DianaError(
      'BAD_RULES',
      `the read-only admin token must have ${shortestToken} characters or more and differ from the operators' token, which must be set, too`,
    )
  }
  if (token !== undefined && token.length < shortestToken) {
    throw new DianaError('BAD_RULES', `the admin token is too short: give it ${shortestToken} characters or more`)
  }
  if (identity && [token, viewToken].some(one => one !== undefined && looksSigned(one))) {
    throw new DianaError(
      'BAD_RULES',
      'the admin token has three parts with dots, as signed tokens of users have: choose one without dots, since gateway.admin.identity is set',
    )
  }
  if (token === undefined && identity === undefined && !isLoopback(host)) {
    throw new DianaError(
      'BAD_RULES',
      `the admin API would listen on ${host}, where others can reach it, without a token: set DIANA_ADMIN_TOKEN or gateway.admin.token, or let it listen on 127.0.0.1`,
    )
  }
}

/** True if an address is reached from this machine only. */
function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'))
}
