import { resetsSoFar, type Table } from './memory/table.ts'
import { type FleetCharge, type FleetCounter, fleetCharge } from './store.ts'

/** What a rule does while the store is down: count its share here, or all of it, let all calls pass, or none. */
export type WhenStoreDown = 'share' | 'local' | 'allow' | 'refuse'

/** Permits that this process held in advance, and that calls have used. */
export interface UsedPermits {
  /** Takes permits back; if the store has counted them, returns the moment as of which it has, and the store has to refund them. */
  refund(cost: number): number | undefined
}

/** A charge to counts that the whole fleet shares, with the local fallback for when the store is down. */
export interface SharedCharge extends FleetCharge {
  readonly kind: 'shared'
  readonly table: Table
  readonly whenStoreDown: WhenStoreDown
  /** Where it was counted in the end. */
  countedBy: 'fleet' | 'lease' | 'memory' | 'none'
  /** The permits of a lease that it has used. */
  permits: UsedPermits | undefined
  /** Where it is followed, or counted, in this process. */
  slot: number
  /** When it was counted as passing, by the clock of the store that counted it. */
  moment: number
  /** When this process followed the store's answer, by its own clock; 0 if it did not. */
  followedAt: number
  /** How many keys had been reset in this process when it was made. */
  readonly resetsBefore: number
}

export function sharedCharge(counter: FleetCounter, table: Table, whenStoreDown: WhenStoreDown): SharedCharge {
  const { key, cost, enforced, mayWait, delays, wait, fits, remaining, resets, holdUs, reservation } =
    fleetCharge(counter)
  // spelled out, since it is made for every call, and V8 keeps what is assigned later one step further away
  return {
    kind: 'shared',
    counter,
    key,
    cost,
    enforced,
    mayWait,
    delays,
    wait,
    fits,
    remaining,
    resets,
    holdUs,
    reservation,
    table,
    whenStoreDown,
    countedBy: 'none',
    permits: undefined,
    slot: 0,
    moment: 0,
    followedAt: 0,
    resetsBefore: resetsSoFar(),
  }
}

/** Whether the rule counts in this process while the store is down. */
export function isCountedHere({ whenStoreDown }: SharedCharge): boolean {
  return whenStoreDown === 'share' || whenStoreDown === 'local'
}
