import type { PendingVerdict } from '../decision/pending-verdict.ts'
import type { Receipt } from '../decision/receipt.ts'
import type { RuleState } from '../decision/rule-state.ts'

/** A call that has been admitted for a later moment. */
export interface ScheduledCall {
  readonly pending: PendingVerdict
  /** When it began to wait. */
  readonly since: number
  /** The order of calls, also within a microsecond: as they came, except those that a call of a higher rank has overtaken. */
  turn: number
  /** Its priority, from 0 to 1. */
  readonly rank: number
  /** The rules that make it wait. */
  readonly queues: readonly RuleState[]
  receipts: readonly Receipt[]
  /** Its own timer; none if it waits in a lane. */
  timer: NodeJS.Timeout | undefined
  /** It was aborted, and is about to be refunded. */
  isGone: boolean
  settle(pending: PendingVerdict): void
}

/** Whether a charge is counted in this process for a later moment: such a charge can move up. */
export function isPending({ refund, passAt }: Receipt, now: number): boolean {
  return refund === undefined && passAt > now
}

/** Lets a call pass whose last receipt is due. */
export function passWaiter(waiter: ScheduledCall): void {
  const { pending, receipts, since } = waiter
  waiter.settle(pending.afterWait(receipts, (latest(receipts) - since) / 1000))
}

export function latest(receipts: readonly Receipt[]): number {
  return Math.max(...receipts.map(receipt => receipt.passAt))
}
