import type { Ending } from '../algorithms/adaptive/estimator.ts'
import type { Overrun } from '../algorithms/algorithm.ts'
import { type Refunded, refundLocal } from '../stores/memory/refund-local.ts'
import { resetsSoFar } from '../stores/memory/table.ts'
import { type Expiring, OpenReservations } from '../stores/open-reservations.ts'
import type { SharedCharge } from '../stores/shared-charge.ts'
import type { CallPlan } from './call-plan.ts'
import type { RuleState } from './rule-state.ts'

/** Proof of one charge, by which it can be refunded. */
export interface Receipt {
  readonly state: RuleState
  readonly key: string
  readonly cost: number
  readonly slot: number
  /** The moment at which the call was counted as passing, by the clock of the store. */
  readonly moment: number
  /** The moment by the clock of this process. */
  readonly passAt: number
  /** The number of keys that had been reset when it was charged: after a later reset of its key nothing is refunded. */
  readonly resetsBefore: number
  /** True if another cost than was charged can be settled: the rule counts what calls cost. */
  readonly settles: boolean
  /** Refunds what was counted in another process. */
  readonly refund?: ((cost: number) => void) | undefined
  /** Charges more than was charged, as far as there is any; undefined if the limit is charged. */
  readonly chargeMore?: ((cost: number) => void) | undefined
  /** Settles it there at what was really used; undefined if the store keeps no reservations. */
  readonly settle?: ((actual: number, overrun: Overrun) => Promise<void>) | undefined
  /** It was not settled in time: the store refunds it. */
  readonly expire?: (() => void) | undefined
  /** Set if the charge waits to be settled. */
  readonly reservation?: ChargeReservation | undefined
  /** Set while a store is asked for more than was charged: the receipt with what it has charged. */
  readonly late?: Promise<Receipt> | undefined
}

/** The charge of one rule that waits to be settled. */
export interface ChargeReservation extends Expiring {
  readonly id: number
  readonly overrun: Overrun
  /** The receipt of the charge; another one if the call has moved up in a queue. */
  receipt: Receipt
  /** Ended: it was not settled in time. */
  status: 'open' | 'settled' | 'ended'
}

/** The book of charges that wait to be settled. */
export interface ReservationBook {
  /** Returns the receipt with its reservation. */
  add(receipt: Receipt, terms: Pick<ChargeReservation, 'id' | 'holdUs' | 'until' | 'overrun'>): Receipt
}

/** The store that refunds charges which were counted together with other processes. */
interface SharedRefunds {
  giveBack(charge: SharedCharge, cost: number): void
  settles(charge: SharedCharge): boolean
  settle(charge: SharedCharge, actual: number, overrun: Overrun): Promise<void>
  expire(charge: SharedCharge): void
}

/**
 * Returns the charges of a call that was counted. `answeredAt` is when a shared store answered. With `reservations`, those that
 * wait to be settled are followed there.
 */
export function receiptsOf(
  { size, charges, found, resetsBefore }: CallPlan,
  now: number,
  answeredAt: number,
  shared: SharedRefunds | undefined,
  reservations?: ReservationBook,
): Receipt[] {
  const receipts: Receipt[] = []
  for (let i = 0; i < size; i++) {
    const charge = charges[i]!
    const { key, cost, slot, wait, fits } = charge
    const state = found[i]!
    if (cost === 0 || !(fits || state.table.countsAll)) continue
    const { settles } = state.rule
    // a call that passes in shadow although it does not fit passes at once
    const moment = fits ? now + wait : now
    let passAt = moment
    let inStore: Pick<Receipt, 'refund' | 'settle' | 'expire'> = {}
    if (charge.kind === 'shared') {
      if (charge.countedBy === 'none') continue
      if (charge.countedBy === 'fleet') passAt = answeredAt + wait
      // a slot that is held in this process may have moved to the store by the time it is released
      if (charge.countedBy !== 'memory' || charge.counter.needsRelease) inStore = inStoreOf(shared!, charge)
    }
    const receipt = { state, key, cost, slot, moment, passAt, resetsBefore, settles, ...inStore }
    const { holdUs, reservation: id } = charge
    if (holdUs === 0 || reservations === undefined) receipts.push(receipt)
    else {
      const overrun = state.rule.overrun ?? 'debt'
      receipts.push(reservations.add(receipt, { id, holdUs, until: now + holdUs, overrun }))
    }
  }
  return receipts
}

function inStoreOf(shared: SharedRefunds, charge: SharedCharge): Pick<Receipt, 'refund' | 'settle' | 'expire'> {
  const refund = (cost: number): void => shared.giveBack(charge, cost)
  if (charge.holdUs === 0) return { refund }
  const expire = (): void => shared.expire(charge)
  if (!shared.settles(charge)) return { refund, expire }
  return { refund, expire, settle: (actual, overrun) => shared.settle(charge, actual, overrun) }
}

/** Refunds the levels of a charge that `which` names, in whichever store they were counted. */
export function refundCharge(receipt: Receipt, now: number, which: Refunded, ending?: Ending): void {
  if (receipt.late) {
    void receipt.late.then(known => refundCharge(known, now, which, ending))
    return
  }
  if (receipt.reservation && which !== 'held' && !closeReservation(receipt)) return
  if (!receipt.refund) refundLocal({ ...receipt, table: receipt.state.table }, now, which, ending)
  // all levels of a rule are of one kind
  else if (
    which === 'all' ||
    receipt.state.rule.meters.some(meter => meter.held !== undefined) === (which === 'held')
  ) {
    receipt.refund(receipt.cost)
  }
}

/** Closes a reservation that was settled, or has ended, and is not refunded any more; returns whether it was open. */
function closeReservation({ reservation, state, cost }: Receipt): boolean {
  const isOpen = reservation!.status === 'open'
  reservation!.status = 'settled'
  if (isOpen) state.tally.amountsSoFar.released += cost
  return isOpen
}

/** Counts a charge again that was just refunded, as early as it fits: a call that was admitted is not refused later. */
export function recharge(receipt: Receipt, now: number): Receipt {
  const { cost, slot } = receipt
  const { table } = receipt.state
  const state = table.state(slot)
  const places = table.offsets.map(offset => table.base(slot) + offset)
  const wait = Math.max(...table.meters.map((meter, level) => meter.delay(state, places[level]!, now, cost)))
  // the limit has since become smaller than the cost of the call, which no meter can count
  if (wait === Number.POSITIVE_INFINITY) return receipt
  table.meters.forEach((meter, level) => {
    meter.take(state, places[level]!, now, cost, wait)
  })
  table.family?.record(receipt.key, table, now, cost, wait)
  // a smaller limit makes no caller wait longer than they were promised
  const passAt = Math.min(receipt.passAt, now + wait)
  const again = { ...receipt, moment: now + wait, passAt, resetsBefore: resetsSoFar() }
  if (receipt.reservation) {
    Object.assign(receipt.reservation, { receipt: again, status: 'open' })
    receipt.state.tally.amountsSoFar.released -= cost
  }
  return again
}

/** The reservations of one limiter; those of rules that are counted in this process are refunded here when they end. */
export class ChargeReservations implements ReservationBook {
  /** Read by every call that is decided, to see whether one has ended. */
  readonly open: OpenReservations<ChargeReservation> = new OpenReservations()

  /** Follows a charge that was just counted; returns its receipt. */
  add(receipt: Receipt, terms: Pick<ChargeReservation, 'id' | 'holdUs' | 'until' | 'overrun'>): Receipt {
    const reservation: ChargeReservation = { ...terms, receipt, status: 'open' }
    reservation.receipt = { ...receipt, reservation }
    receipt.state.tally.amountsSoFar.reserved += receipt.cost
    this.open.add(reservation)
    return reservation.receipt
  }

  /** Marks a reservation as settled, and returns what it was before. */
  close(reservation: ChargeReservation): ChargeReservation['status'] {
    const { status } = reservation
    reservation.status = 'settled'
    this.open.delete(reservation)
    return status
  }

  /** Releases what was not settled in time; before any call is decided. */
  releaseEnded(now: number): void {
    for (const reservation of this.open.takeEnded(now)) {
      const { receipt, until, status } = reservation
      if (status !== 'open') continue
      reservation.status = 'ended'
      receipt.state.tally.amountsSoFar.expired += receipt.cost
      if (receipt.expire) receipt.expire()
      else refundLocal({ ...receipt, table: receipt.state.table }, until, 'passed')
    }
  }
}

/** True if what was charged in this process was forgotten since, by a reset of its key. */
export function isForgotten({ state: { table }, key, resetsBefore }: Receipt): boolean {
  return table.isResetSince(key, resetsBefore)
}
