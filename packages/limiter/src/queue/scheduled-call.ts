import type { PendingVerdict } from '../decision/pending-verdict.ts'
import type { Receipt } from '../decision/receipt.ts'
import type { QueuedWaiter } from '../decision/rule-state.ts'
import type { Sleeper } from './wake-heap.ts'

/** Calls that wait and are all alike. */
export interface Lane extends Sleeper {
  /** True if aborted calls can leave by a refund of the last turns. */
  canShift(gone: readonly ScheduledCall[]): boolean
  /** Removes aborted calls with all that they were charged; the calls behind them move up. */
  shift(gone: readonly ScheduledCall[], now: number): void
  /** Takes one call out with the first turn. */
  takeOut(waiter: ScheduledCall): void
}

/** A call that has been admitted for a later moment. */
export interface ScheduledCall extends Sleeper, QueuedWaiter {
  readonly pending: PendingVerdict
  /** The time when it began to wait. */
  readonly since: number
  /** The order of calls, also within a microsecond: as they came, except those that a call of a higher rank has overtaken. */
  turn: number
  /** Its priority, from 0 to 1. */
  readonly rank: number
  receipts: readonly Receipt[]
  /** The lane that it waits in; if it waits in none, it has a moment of its own, `wakeAt`. */
  lane: Lane | undefined
  /** True if it was aborted or refused, and is about to be refunded. */
  isGone: boolean
  /** The last moment at which it may pass. */
  readonly lastMoment: number
  settle(pending: PendingVerdict): void
  /** Ends its wait by an error. */
  fail(error: unknown): void
}

/** True if a charge is counted in this process: such a charge can be made again. */
export function isLocal({ refund }: Receipt): boolean {
  return refund === undefined
}

/** True if a charge is counted in this process for a later moment: such a charge can move up. */
export function isPending(receipt: Receipt, now: number): boolean {
  return isLocal(receipt) && receipt.passAt > now
}

/** Lets a call pass whose last receipt is due. */
export function passWaiter(waiter: ScheduledCall): void {
  const { pending, receipts, since } = waiter
  waiter.settle(pending.afterWait(receipts, (latest(receipts) - since) / 1000))
}

export function latest(receipts: readonly Receipt[]): number {
  return Math.max(...receipts.map(receipt => receipt.passAt))
}
