import type { Meter } from '../../algorithms/algorithm.ts'
import { capacityOf } from '../../algorithms/algorithm.ts'
import type { LeaseTerms } from '../store.ts'

/**
 * A process may use what it was granted for so long, by its own clock and from before it asked. The store takes the permits back later,
 * so that clocks which run at different speeds do no harm.
 */
export const LEASE_US = 1_000_000
/** When a reservation ends in the store: at least so long after the lease, and with others at a multiple of this. */
export const RECLAIM_US = 250_000
/** By this part, durations that a holder has measured may be wrong. */
export const CLOCK_MARGIN = 0.1
/** All leases of a key together hold about this part of its limit, or of what is left of it if that is more. */
export const SHARE = 0.1
export const SHARE_OF_ROOM = 0.25
/** Fewer permits are not worth a lease. */
export const LEAST_SHARE = 4
/**
 * If too little is left to grant permits in advance, a process asks for those that its calls wait for, and again after this time, which
 * is longer if several processes do; calls wait for the answer.
 */
export const TURN_US = 2000
export const LONGEST_TURN_US = 20_000
/** Permits that a process holds and does not use are back after this time: see `IDLE_US` of a lease. */
export const RETURNED_US = 500_000

/** Undefined if the permits of a rule cannot be leased, or are too few. */
export function leaseTermsOf({
  meters,
  lease,
}: {
  meters: readonly Meter[]
  lease?: 'auto' | 'off' | undefined
}): LeaseTerms | undefined {
  if (lease === 'off' || meters.some(({ rate, maxWaitUs }) => rate?.reportUs === undefined || maxWaitUs > 0))
    return undefined
  const capacity = Math.min(...meters.map(meter => capacityOf(meter)))
  if (shareOf(capacity, 1) < LEAST_SHARE) return undefined
  return { capacity, reportUs: Math.min(...meters.map(({ rate }) => rate!.reportUs!)) }
}

/** How many permits each of several processes may hold. */
export function shareOf(capacity: number, holders: number): number {
  return Math.floor((capacity * SHARE) / holders)
}
