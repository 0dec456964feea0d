import { type Receipt, recharge, refundCharge } from '../decision/receipt.ts'
import type { Table } from '../stores/memory/table.ts'
import { isPending, type ScheduledCall } from './scheduled-call.ts'

/**
 * Refunds aborted calls, and counts again all calls that wait behind one of them for the same count, in the order they came.
 * Returns the calls that stay and have moved.
 */
export function moveUp(waiters: readonly ScheduledCall[], now: number): ScheduledCall[] {
  const affected = behindTheGone(waiters, now)
  // charges that are due already stay, and only charges for a later moment are refunded and made again
  const isOpen = (waiter: ScheduledCall, receipt: Receipt): boolean => waiter.isGone || isPending(receipt, now)
  for (const waiter of affected.toReversed()) {
    for (const receipt of waiter.receipts.toReversed()) {
      if (isOpen(waiter, receipt)) refundCharge(receipt, now, 'all')
    }
  }
  const staying = affected.filter(({ isGone }) => !isGone)
  for (const waiter of staying) {
    waiter.receipts = waiter.receipts.map(receipt => (isOpen(waiter, receipt) ? recharge(receipt, now) : receipt))
  }
  return staying
}

/** Returns the aborted calls and all calls that wait behind one of them for the same count, in the order they came. */
function behindTheGone(waiters: readonly ScheduledCall[], now: number): ScheduledCall[] {
  const touched = new Map<Table, Set<number>>()
  const inOrder = waiters.toSorted((a, b) => a.turn - b.turn)
  return inOrder.filter(({ isGone, receipts }) => {
    const open = isGone ? receipts : receipts.filter(receipt => isPending(receipt, now))
    const shares = open.some(({ state, slot }) => touched.get(state.table)?.has(slot))
    if (!shares && !isGone) return false
    for (const { state, slot } of open) {
      touched.set(state.table, (touched.get(state.table) ?? new Set()).add(slot))
    }
    return true
  })
}
