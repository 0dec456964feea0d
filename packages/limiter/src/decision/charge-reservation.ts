import { refundLocal } from '../stores/memory/refund-local.ts'
import { OVERFLOW_SLOT } from '../stores/memory/table.ts'
import { OpenReservations } from '../stores/open-reservations.ts'
import type { ChargeReservation, Receipt, ReservationBook } from './receipt.ts'

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

/** Whether what was charged in this process was forgotten since, by a reset of its key. */
export function isForgotten({ state: { table }, key, slot, resetsBefore }: Receipt): boolean {
  if (slot === OVERFLOW_SLOT ? key !== '' : table.find(key) !== slot) return false
  return table.isResetSince(slot, resetsBefore)
}
