import type { PendingVerdict } from '../decision/pending-verdict.ts'
import type { Receipt } from '../decision/receipt.ts'
import type { RuleState } from '../decision/rule-state.ts'

/** A call that has been admitted for a moment to come. */
export interface ScheduledCall {
  readonly pending: PendingVerdict
  /** When it began to wait. */
  readonly since: number
  /** The order in which calls came, also within a microsecond. */
  readonly turn: number
  /** The rules that make it wait. */
  readonly queues: readonly RuleState[]
  receipts: readonly Receipt[]
  /** Its own, unless it waits in a lane whose calls are all alike. */
  timer: NodeJS.Timeout | undefined
  /** It has given up, and what it was charged is about to be given back. */
  isGone: boolean
  settle(pending: PendingVerdict): void
}

/** A charge that was state in this process for a moment to come: such a one can move up. */
export function isPending({ refund, passAt }: Receipt, now: number): boolean {
  return refund === undefined && passAt > now
}

/** Lets a call pass that was state for the moment of its last receipt. */
export function passWaiter(waiter: ScheduledCall): void {
  const { pending, receipts, since } = waiter
  waiter.settle(pending.afterWait(receipts, (latest(receipts) - since) / 1000))
}

export function latest(receipts: readonly Receipt[]): number {
  return Math.max(...receipts.map(receipt => receipt.passAt))
}
