import type { Verdict } from 'diana-limiter'

/** Decides the messages of one WebSocket. */
export interface MessageLimits {
  decide(signal: () => AbortSignal): Verdict | Promise<Verdict>
  /** True if a message that a rule refuses is dropped; otherwise the connection is closed. */
  drops(rule: string | undefined): boolean
}
