import type { Limiter } from 'diana-limiter'

/** Which proxies may name the caller's address, and in which header. */
export interface Trust extends Pick<Limiter, 'addressOf' | 'forwardedBy'> {
  /** Whether an address is that of a trusted proxy. */
  isProxy(address: string): boolean
}
