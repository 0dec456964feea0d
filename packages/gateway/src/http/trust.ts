import type { LiveDocument } from 'diana-limiter/gateway'

/** Which proxies may name the caller's address, and in which header. */
export interface Trust extends Pick<LiveDocument, 'addressOf' | 'forwardedBy'> {
  /** Whether an address is that of a trusted proxy. */
  isProxy(address: string): boolean
}
