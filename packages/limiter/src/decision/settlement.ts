import type { Ending } from '../algorithms/adaptive/estimator.ts'
import type { CompositeStore } from '../distributed/composite-store.ts'
import { localCharge, type MemoryStore } from '../stores/memory/memory-store.ts'
import { sharedCharge } from '../stores/shared-charge.ts'
import type { Decision, Outcome } from '../verdict.ts'
import type { DecidedCall, Settler } from './pending-verdict.ts'
import { type Receipt, type Refunded, refundCharge } from './receipt.ts'

export interface SettlementOptions {
  readonly store: MemoryStore
  readonly shared?: CompositeStore | undefined
  readonly now: () => number
  /** Refunds the levels of charges that `which` names. */
  readonly onRelease: (receipts: readonly Receipt[], which: Refunded, ending?: Ending) => void
  /** The charges of a call, read from it again. */
  readonly receiptsOf: (decided: DecidedCall) => readonly Receipt[]
  /** What the rules of refunded decisions decide now. */
  readonly onRefund: (decided: DecidedCall) => readonly Decision[] | Promise<readonly Decision[]>
}

/**
 * Settles calls once they have ended. What was charged too much is refunded; what was charged too little is charged as far
 * as there is room, since no count goes beyond its limit.
 */
export function createSettler({ store, shared, now, onRelease, receiptsOf, onRefund }: SettlementOptions): Settler {
  /** Counts as much of `cost` in this process as there is room for, and returns how much that is. */
  const takeLocal = ({ state: { table }, key }: Receipt, cost: number): number => {
    const take = (amount: number) => {
      const charge = { ...localCharge(table), key, cost: amount, mayWait: false }
      return { charge, fits: store.take([charge], 1, now()) }
    }
    const whole = take(cost)
    const room = whole.fits ? cost : Math.min(cost, ...whole.charge.remaining)
    return whole.fits || (room > 0 && take(room).fits) ? room : 0
  }

  /** The same in the shared store: if other processes take the room meanwhile, nothing is charged. */
  const takeShared = async ({ state: { counter, table, rule }, key }: Receipt, cost: number): Promise<void> => {
    if (!counter || !shared) return
    const take = async (amount: number) => {
      const charge = { ...sharedCharge(counter, table, rule.whenStoreDown), key, cost: amount, mayWait: false }
      // a rule in shadow lets the call pass, and counts only what fits
      return { charge, fits: (await shared.take([charge], now())) && charge.fits }
    }
    const whole = await take(cost)
    const room = Math.min(cost, ...whole.charge.remaining)
    if (!whole.fits && room > 0) await take(room)
  }

  /** Forgets what a rule has counted for a caller. */
  const clear = ({ state: { counter, table }, key }: Receipt): void => {
    table.reset(key)
    if (counter) shared?.reset(counter, key).catch(() => {})
  }

  const settleOne = (receipt: Receipt, cost: number): Receipt => {
    if (!receipt.settles || cost === receipt.cost) return receipt
    if (cost < receipt.cost) {
      refundCharge({ ...receipt, cost: receipt.cost - cost }, now(), 'passed')
      return { ...receipt, cost }
    }
    const missing = cost - receipt.cost
    if (!receipt.refund) return { ...receipt, cost: receipt.cost + takeLocal(receipt, missing) }
    takeShared(receipt, missing).catch(() => {})
    return { ...receipt, cost }
  }

  return {
    release: (receipts, outcome) => onRelease(receipts, 'held', endingOf(outcome)),
    refund(receipts, decided, which) {
      onRelease(receipts.toReversed(), which)
      return onRefund(decided)
    },
    receiptsOf,
    settle: (receipts, actualCost) => receipts.map(receipt => settleOne(receipt, actualCost)),
    close(receipts, outcome) {
      return receipts.filter(receipt => {
        const { rule } = receipt.state
        const counts = rule.countWhen?.(outcome) ?? true
        if (!counts) refundCharge(receipt, now(), 'passed')
        if (!rule.resetWhen?.(outcome)) return counts
        clear(receipt)
        return false
      })
    },
  }
}

/** What a call says about the service: a caller who left before the answer says nothing, and an answer of 5xx is a failure. */
function endingOf(outcome: Outcome | undefined): Ending {
  if (outcome === undefined) return 'answered'
  const { status, failed } = outcome
  if (failed !== undefined) return failed ? 'failed' : 'answered'
  return status === undefined ? 'unknown' : status >= 500 ? 'failed' : 'answered'
}
