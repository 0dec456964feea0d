import type { Call } from './call.ts'
import { engineOf } from './engine/engine-of.ts'
import type { Limiter } from './limiter.ts'

/** Returns the address of a caller, behind the proxies that the rules trust: the `ip` of a call that is made without a filter. */
export function callerAddress(
  limiter: Limiter,
  peer: string | undefined,
  headers: Call['headers'],
): string | undefined {
  const { addressOf, document } = engineOf(limiter)
  return addressOf(peer, headers?.[document.forwardedBy])
}
