import type { Ending } from '../algorithms/adaptive/estimator.ts'
import { parseDuration } from '../common/duration.ts'
import { DianaError } from '../errors.ts'
import { LONGEST_HOLD_MS } from '../rules/schema/cost.ts'
import type { CompositeStore } from '../stores/composite-store.ts'
import { localCharge, type MemoryStore } from '../stores/memory/memory-store.ts'
import { type Refunded, refundLocal } from '../stores/memory/refund-local.ts'
import { sharedCharge } from '../stores/shared-charge.ts'
import type { ActualCost, Decision, Outcome, Verdict } from '../verdict.ts'
import { clearCaller } from './blocklist.ts'
import type { CheckOptions } from './check-options.ts'
import type { DecidedCall, PendingVerdict, Settler } from './pending-verdict.ts'
import { actualCostBy } from './pending-verdict.ts'
import { type ChargeReservation, type ChargeReservations, isForgotten, type Receipt, refundCharge } from './receipt.ts'

export interface SettlementOptions {
  readonly store: MemoryStore
  readonly shared?: CompositeStore | undefined
  readonly now: () => number
  readonly reservations: ChargeReservations
  /** Refunds the levels of charges that `which` names. */
  readonly onRelease: (receipts: readonly Receipt[], which: Refunded, ending?: Ending) => void
  /** The charges of a call, read from it again. */
  readonly receiptsOf: (decided: DecidedCall) => readonly Receipt[]
  /** Returns what the rules of refunded decisions decide now. */
  readonly onRefund: (decided: DecidedCall) => readonly Decision[] | Promise<readonly Decision[]>
}

/**
 * Settles calls once they have ended. What was charged too much is refunded; what was charged too little is charged as far
 * as there is room, or with `overrun: debt` beyond the limit.
 */
export function createSettler(options: SettlementOptions): Settler {
  const { store, shared, reservations, now, onRelease, receiptsOf, onRefund } = options
  /** Settlements that stores have not confirmed yet. */
  const underWay = new Set<Promise<void>>()
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

  /**
   * Takes a cost in the shared store, and returns how much it has counted: if other processes take the room meanwhile, nothing. A store
   * that cannot be asked counts nothing.
   */
  const takeShared = async ({ state: { counter, table, rule }, key }: Receipt, cost: number): Promise<number> => {
    if (!counter || !shared) return 0
    const take = async (amount: number) => {
      const charge = { ...sharedCharge(counter, table, rule.whenStoreDown), key, cost: amount, mayWait: false }
      // a rule in shadow lets the call pass, and counts only what fits
      return { charge, fits: (await shared.take([charge], now())) && charge.fits }
    }
    const whole = await take(cost)
    const room = Math.min(cost, ...whole.charge.remaining)
    if (whole.fits) return cost
    return room > 0 && (await take(room)).fits ? room : 0
  }

  /** Settles a reservation, once; after its end, all that was used is charged. */
  const settleReserved = (receipt: Receipt, reservation: ChargeReservation, actual: number): Receipt => {
    reservations.releaseEnded(now())
    const status = reservations.close(reservation)
    if (status === 'settled') return receipt
    const reserved = status === 'open' ? receipt.cost : 0
    const { state, key, settle } = receipt
    state.tally.amountsSoFar.settle(reserved, actual)
    if (settle) track(settle(actual, reservation.overrun))
    else if (receipt.refund) settlePlain({ ...receipt, cost: reserved }, actual)
    else if (actual < reserved)
      refundLocal({ ...receipt, table: state.table, cost: reserved - actual }, now(), 'passed')
    else if (actual > reserved && !isForgotten(receipt)) {
      store.overdraw(state.table, key, now(), actual - reserved, reservation.overrun)
    }
    return { ...receipt, cost: actual }
  }

  const track = (settled: Promise<void>): void => {
    underWay.add(settled)
    void settled.finally(() => underWay.delete(settled))
  }

  const settleOne = (receipt: Receipt, cost: number): Receipt => {
    if (!receipt.settles) return receipt
    return receipt.reservation ? settleReserved(receipt, receipt.reservation, cost) : settlePlain(receipt, cost)
  }

  const settlePlain = (receipt: Receipt, cost: number): Receipt => {
    if (receipt.late) {
      const late = receipt.late.then(known => settlePlain(known, cost)).then(known => known.late ?? known)
      return { ...receipt, late }
    }
    if (cost === receipt.cost) return receipt
    if (cost < receipt.cost) {
      refundCharge({ ...receipt, cost: receipt.cost - cost }, now(), 'passed')
      return { ...receipt, cost }
    }
    const missing = cost - receipt.cost
    if (receipt.chargeMore) {
      receipt.chargeMore(missing)
      return { ...receipt, cost }
    }
    if (!receipt.refund) return { ...receipt, cost: receipt.cost + takeLocal(receipt, missing) }
    const taken = takeShared(receipt, missing).catch(() => 0)
    return { ...receipt, late: taken.then(more => ({ ...receipt, cost: receipt.cost + more })) }
  }

  return {
    arrival: async () => {
      await Promise.all(underWay)
    },
    release: (receipts, outcome) => onRelease(receipts, 'held', endingOf(outcome)),
    refund(receipts, decided, which) {
      onRelease(receipts.toReversed(), which)
      return onRefund(decided)
    },
    receiptsOf,
    settle: (receipts, actual) => {
      return receipts.map(receipt => {
        const cost = actualCostBy(receipt.state.rule.id, actual)
        // a rule that is not named keeps the amount that it has reserved
        if (cost === undefined && receipt.reservation === undefined) return receipt
        return settleOne(receipt, cost ?? receipt.cost)
      })
    },
    close(receipts, outcome, call) {
      return receipts.filter(receipt => {
        const { rule } = receipt.state
        const counts = rule.countWhen?.(outcome) ?? true
        if (!counts) refundCharge(receipt, now(), 'passed')
        if (!rule.resetWhen?.(outcome, call)) return counts
        clearCaller(receipt.state, receipt.key, shared)?.catch(() => {})
        return false
      })
    },
  }
}

/** Returns what a call says about the service: a caller who left before the answer says nothing, and an answer of 5xx is a failure. */
function endingOf(outcome: Outcome | undefined): Ending {
  if (outcome === undefined) return 'answered'
  const { status, failed } = outcome
  if (failed !== undefined) return failed ? 'failed' : 'answered'
  return status === undefined ? 'unknown' : status >= 500 ? 'failed' : 'answered'
}

/** The options by which an amount is reserved. */
export interface ReserveOptions extends CheckOptions {
  /** The time after which an unsettled amount is released, milliseconds or a duration such as `10m`; default: that of each rule, or 10m. */
  readonly hold?: number | string | undefined
}

/**
 * An amount that was charged in advance by all rules of a call, or by none. It is settled once, at what was really used, or
 * released; what is neither is released by the store.
 */
export interface Reservation extends AsyncDisposable {
  /** Identifies it in the store. */
  readonly id: string
  readonly allowed: boolean
  readonly verdict: Verdict
  /** Makes it count as what was really used; resolves when the stores know. Again, or after `release`, it does nothing. */
  settle(actual: ActualCost): Promise<void>
  /** Takes back what was reserved, by the rules whose costs can be settled; resolves when the stores know. */
  release(): Promise<void>
}

/** A reservation by a verdict. */
export class VerdictReservation implements Reservation {
  readonly #verdict: PendingVerdict
  #isEnded = false

  constructor(verdict: PendingVerdict) {
    this.#verdict = verdict
  }

  get id(): string {
    return (this.#verdict.reservation ?? 0).toString(36)
  }

  get verdict(): Verdict {
    return this.#verdict
  }

  get allowed(): boolean {
    return this.#verdict.allowed
  }

  async settle(actual: ActualCost): Promise<void> {
    if (this.#isEnded) return
    this.#verdict.settle(actual)
    this.#isEnded = true
    await this.#verdict.arrival()
  }

  async release(): Promise<void> {
    await this.settle(0)
  }

  /** For `await using`: what was not settled by the end of the block is released. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release()
  }
}

/** Returns the time of a hold in microseconds; 0 if that is left to the rules. */
export function holdUsOf({ hold }: ReserveOptions): number {
  if (hold === undefined) return 0
  const ms = typeof hold === 'string' ? parseDuration(hold) : hold
  if (typeof ms === 'number' && ms >= 1 && ms <= LONGEST_HOLD_MS) return Math.round(ms * 1000)
  throw new DianaError('BAD_CALL', `hold must be a duration from 1 ms to 1d, such as 10m, not ${String(hold)}`)
}
