import type { Meter } from '../../algorithms/algorithm.ts'
import { capacityOf } from '../../algorithms/algorithm.ts'
import type { LeasePolicy, LeaseTerms } from '../store.ts'

/**
 * The time for which a process may use what it was granted, by its own clock and from before it asked. The store takes the permits back
 * later, so that clocks which run at different speeds do no harm. A policy multiplies it.
 */
export const LEASE_US = 1_000_000
/** When a reservation ends in the store: at least so long after the lease, and with others at a multiple of this. */
export const RECLAIM_US = 250_000
/** By this part, durations that a holder has measured may be wrong. */
export const CLOCK_MARGIN = 0.1
/** All leases of a key together hold about this part of what is left of its limit, or the share of the policy if that is more. */
export const SHARE_OF_ROOM = 0.25
/** Fewer permits are not worth a lease. */
export const LEAST_SHARE = 4
/**
 * If too little is left to grant permits in advance, a process asks for those that its calls wait for, and again after this time, which
 * is longer if several processes do; calls wait for the answer.
 */
export const TURN_US = 2000
export const LONGEST_TURN_US = 20_000
/** For a store that is asked over a network, and cannot ask for permits back. */
export const NETWORK_LEASES: LeasePolicy = { share: 0.1, stretch: 1, perSecond: 20, aheadUs: 250_000, asksAtOnce: true }
/**
 * For a store of this machine that recalls permits before it refuses a call because of them: leases may be larger and last longer, and
 * pay for callers who are met rarely.
 */
export const RECALLED_LEASES: LeasePolicy = {
  share: 0.5,
  stretch: 10,
  perSecond: 2,
  aheadUs: 100_000,
  asksAtOnce: false,
}

/** Undefined if the permits of a rule cannot be leased, or are too few. */
export function leaseTermsOf(
  { meters, lease }: { meters: readonly Meter[]; lease?: 'auto' | 'off' | undefined },
  policy: LeasePolicy = NETWORK_LEASES,
): LeaseTerms | undefined {
  if (lease === 'off' || meters.some(({ rate, maxWaitUs }) => rate?.reportUs === undefined || maxWaitUs > 0))
    return undefined
  const capacity = Math.min(...meters.map(meter => capacityOf(meter)))
  if (shareOf(capacity, 1, policy) < LEAST_SHARE) return undefined
  return { capacity, reportUs: Math.min(...meters.map(({ rate }) => rate!.reportUs!)), policy }
}

/** Returns how many permits each of several processes may hold. */
export function shareOf(capacity: number, holders: number, { share }: LeasePolicy): number {
  return Math.floor((capacity * share) / holders)
}
