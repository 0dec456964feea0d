import type { IncomingHttpHeaders } from 'node:http'
import type { StickySettings } from '../../settings/upstreams/upstream-settings.ts'
import { hashOf } from './rendezvous.ts'
import { newStickyId, readCookie, readStickyCookie, writeStickyCookie } from './sticky-cookie.ts'

/** The value that binds a call to an address. */
export interface Affinity {
  /** Calls with the same key go to the same address; without one, the balancer decides. */
  readonly key?: number | undefined
  /** Names the address that the caller had before. */
  readonly tag?: string | undefined
  /** The id in a cookie that the gateway sets. */
  readonly id?: string | undefined
}

/** The parts of a call that an affinity may be read from. */
export interface Caller {
  readonly headers: IncomingHttpHeaders
  address(): string | undefined
}

/** Returns what binds this call to an address. */
export function affinityOf(sticky: StickySettings, caller: Caller): Affinity {
  if (sticky.kind === 'hash') {
    const value = textToHash(sticky, caller)
    return value === undefined ? {} : { key: hashOf(value) }
  }
  const { id, tag } = readStickyCookie(caller.headers.cookie, sticky.name) ?? { id: newStickyId() }
  return { key: hashOf(id), id, tag }
}

/** Returns the cookie that sends a caller's next call where this one went; none if its cookie says so already. */
export function cookieFor(
  sticky: StickySettings,
  { id, tag: before }: Affinity,
  { tag, path, isSecure }: { readonly tag: string | undefined; readonly path: string; readonly isSecure: boolean },
): string | undefined {
  if (sticky.kind !== 'cookie' || id === undefined || tag === undefined) return undefined
  // one with an age is renewed by every answer
  if (tag === before && sticky.maxAgeMs === undefined) return undefined
  return writeStickyCookie({ name: sticky.name, maxAgeMs: sticky.maxAgeMs, id, tag, path, isSecure })
}

function textToHash({ from, name }: StickySettings & { kind: 'hash' }, caller: Caller): string | undefined {
  if (from === 'ip') return caller.address()
  if (from === 'cookie') return readCookie(caller.headers.cookie, name)
  const value = caller.headers[name]
  return value === undefined ? undefined : String(value)
}
