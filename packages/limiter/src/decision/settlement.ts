import type { CompositeStore } from '../distributed/composite-store.ts'
import { localCharge, type MemoryStore } from '../stores/memory/memory-store.ts'
import { sharedCharge } from '../stores/shared-charge.ts'
import type { Decision } from '../verdict.ts'
import { giveBack, type PendingVerdictOptions, type Receipt, type Settler } from './pending-verdict.ts'

export interface SettlementOptions {
  readonly store: MemoryStore
  readonly shared?: CompositeStore | undefined
  readonly now: () => number
  /** Gives back what is held, or everything. */
  readonly onRelease: (receipts: readonly Receipt[], which: 'held' | 'passed' | 'all') => void
  /** The charges of a call as its rules read it. */
  readonly receiptsOf: (parts: PendingVerdictOptions) => readonly Receipt[]
  /** What the rules of refunded decisions say now. */
  readonly onRefund: (parts: PendingVerdictOptions) => readonly Decision[] | Promise<readonly Decision[]>
}

/**
 * Settles calls once they have ended. What was charged too much is given back; what was charged too little is charged
 * as far as there is room, since no count goes beyond its limit: a caller is never worse off than one who has used all.
 */
export function createSettler({ store, shared, now, onRelease, receiptsOf, onRefund }: SettlementOptions): Settler {
  /** How much of `cost` there is room for in this process, after counting it. */
  const takeHere = ({ counted: { table }, key }: Receipt, cost: number): number => {
    const take = (amount: number) => {
      const charge = { ...localCharge(table), key, cost: amount, mayWait: false }
      return { charge, fits: store.take([charge], 1, now()) }
    }
    const whole = take(cost)
    const room = whole.fits ? cost : Math.min(cost, ...whole.charge.remaining)
    return whole.fits || (room > 0 && take(room).fits) ? room : 0
  }

  /** The same for the whole fleet: if others take the room meanwhile, nothing is charged. */
  const takeShared = async ({ counted: { counter, table, rule }, key }: Receipt, cost: number): Promise<void> => {
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

  const settleOne = (receipt: Receipt, cost: number): Receipt => {
    if (!receipt.settles || cost === receipt.cost) return receipt
    if (cost < receipt.cost) {
      giveBack({ ...receipt, cost: receipt.cost - cost }, now(), 'passed')
      return { ...receipt, cost }
    }
    const missing = cost - receipt.cost
    if (!receipt.refund) return { ...receipt, cost: receipt.cost + takeHere(receipt, missing) }
    takeShared(receipt, missing).catch(() => {})
    return { ...receipt, cost }
  }

  return {
    release: receipts => onRelease(receipts, 'held'),
    refund(receipts, parts, which) {
      onRelease(receipts.toReversed(), which)
      return onRefund(parts)
    },
    receiptsOf,
    settle: (receipts, actualCost) => receipts.map(receipt => settleOne(receipt, actualCost)),
    close(receipts, outcome) {
      return receipts.filter(receipt => {
        const counts = receipt.counted.rule.countWhen?.(outcome) ?? true
        if (!counts) giveBack(receipt, now(), 'passed')
        return counts
      })
    },
  }
}
