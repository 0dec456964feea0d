import type { IncomingMessage } from 'node:http'
import { createPeerTest } from 'diana-limiter/gateway'
import { Refusal } from '../../http/refusal.ts'
import type { IdentitySettings } from '../../settings/identity-settings.ts'
import { longestName, mostGroups, type User } from './identity.ts'

const longestGroups = 8192

/**
 * Reads the user that a trusted proxy names. From any other peer the headers mean nothing, and the request is one without a
 * user. Throws if the headers could be read in two ways: a proxy that adds its header to the one of a client would let
 * clients choose who they are.
 */
export function createForwardedIdentity({
  trustedProxies,
  headers,
}: IdentitySettings): (request: IncomingMessage) => User | undefined {
  if (headers === undefined) return () => undefined
  const isTrusted = createPeerTest(trustedProxies)
  return request => {
    // a connection that has ended has no address, and is not trusted
    if (!isTrusted(request.socket.remoteAddress)) return undefined
    const name = readOne(request, headers.user, longestName)
    if (name === undefined) return undefined
    const groups = headers.groups === undefined ? undefined : readOne(request, headers.groups, longestGroups, true)
    return { name, groups: splitGroups(groups ?? '') }
  }
}

/** Returns the one value of a header; undefined if it is missing. */
export function readOne(
  { rawHeaders }: IncomingMessage,
  name: string,
  longest: number,
  mayBeEmpty = false,
): string | undefined {
  const values = rawHeaders.filter((_, at) => at % 2 === 1 && rawHeaders[at - 1]!.toLowerCase() === name)
  if (values.length === 0) return undefined
  if (values.length > 1) throw bad(name, 'came more than once: let the proxy replace what clients send')
  const value = values[0]!.replace(/^[ \t]+|[ \t]+$/g, '')
  if (value === '' && !mayBeEmpty) throw bad(name, 'is empty: let the proxy leave it out if there is no user')
  if (value.length > longest) throw bad(name, `has more than ${longest} characters`)
  if (!/^[\x20-\x7e]*$/.test(value)) throw bad(name, 'has characters that are not printable ASCII')
  return value
}

function splitGroups(text: string): string[] {
  const groups = text.split(',').map(group => group.trim())
  return groups.filter(group => group !== '' && group.length <= longestName).slice(0, mostGroups)
}

function bad(name: string, what: string): Refusal {
  return new Refusal(400, `The header ${name} ${what}.`)
}
