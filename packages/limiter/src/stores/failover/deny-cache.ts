import { RETURNED_US } from '../memory/delay-beside.ts'
import type { Table } from '../memory/table.ts'
import type { FleetCharge, FleetCounter } from '../store.ts'

/** What was said of a key when it was refused, as moments instead of durations. */
interface Denial {
  readonly cost: number
  readonly until: number
  readonly passes: readonly number[]
  readonly remaining: readonly number[]
  readonly resets: readonly number[]
}

const MOST = 10_000
/** A reset, or what somebody elsewhere gives back, is noticed after so long. */
const LONGEST_US = 1_000_000
/** A key is refused because processes hold permits of it: they may give some back at any time. */
const HELD_US = 20_000

/**
 * Keys that are known to have nothing left until a moment: they are refused without asking again, with the numbers that the
 * store would say. So a call is refused here only if all its charges are known: what others may have taken or time may
 * have given back meanwhile, only the store can tell. Nothing is kept of rules whose places are given back or whose calls
 * wait, for there others may leave room at any time; and nothing for longer than a second. Moments are microseconds by the
 * clock of this process.
 */
export class DenyCache {
  readonly #denials = new Map<FleetCounter, Map<string, Denial>>()
  #size = 0
  /** When keys were last forgotten, and the latest such moment of all keys that are not listed. */
  readonly #forgottenAt = new Map<string, number>()
  #othersForgottenAt = -1

  /**
   * Learns from charges that were refused when asked at `now`; nothing of keys that were forgotten since. A caller with several limits
   * may pass by another one.
   */
  learn(charges: readonly (FleetCharge & { readonly table?: Pick<Table, 'family'> })[], now: number): void {
    for (const charge of charges) {
      const { counter, key, cost, enforced, fits } = charge
      if (fits || !enforced || cost === 0 || counter.needsRelease || counter.meters.some(mayWait)) continue
      if (charge.remaining.some(left => left > 0) || charge.table?.family) continue
      if ((this.#forgottenAt.get(key) ?? this.#othersForgottenAt) >= now) continue
      if (this.#size >= MOST) this.#clear()
      const known = this.#denials.get(counter) ?? new Map<string, Denial>()
      this.#denials.set(counter, known)
      if (!known.has(key)) this.#size++
      const [passes, resets] = [charge.delays, charge.resets].map(list => list.map(duration => now + duration))
      known.set(key, {
        cost,
        until: now + steadyUs(charge),
        passes: passes!,
        remaining: [...charge.remaining],
        resets: resets!,
      })
    }
  }

  /** True if a charge is known not to fit. */
  denies(charge: FleetCharge, now: number): boolean {
    return this.#size > 0 && this.#denialOf(charge, now) !== undefined
  }

  /** Whether a call is known to be refused; its charges are then filled in. */
  refuses(charges: readonly FleetCharge[], now: number): boolean {
    if (this.#size === 0) return false
    for (const charge of charges) if (!this.#denialOf(charge, now)) return false
    for (const charge of charges) fill(charge, this.#denialOf(charge, now)!, now)
    return charges.length > 0
  }

  #denialOf({ counter, key, cost }: FleetCharge, now: number): Denial | undefined {
    const denial = this.#denials.get(counter)?.get(key)
    if (denial?.cost !== cost) return undefined
    return now < denial.until ? denial : undefined
  }

  /** Forgets a key whose counts change now, and what was asked before. */
  forget(counter: FleetCounter, key: string, now: number): void {
    if (this.#forgottenAt.size >= MOST) {
      this.#forgottenAt.clear()
      this.#othersForgottenAt = now
    }
    this.#forgottenAt.set(key, now)
    this.allow(counter, key)
  }

  /** A call of a key may pass, as the store has answered. */
  allow(counter: FleetCounter, key: string): void {
    if (this.#denials.get(counter)?.delete(key)) this.#size--
  }

  /** Forgets all keys, and what was asked before. */
  clear(now: number): void {
    this.#clear()
    this.#forgottenAt.clear()
    this.#othersForgottenAt = now
  }

  #clear(): void {
    this.#denials.clear()
    this.#size = 0
  }
}

/**
 * For how long no number of a refusal changes but by the time that passes: until one permit comes back to any level. When
 * that is, only a call says that costs one.
 */
function steadyUs({ cost, delays, counter }: FleetCharge): number {
  if (cost !== 1) return 1
  const soonest = Math.min(...delays)
  return Math.min(counter.lease && soonest <= RETURNED_US ? HELD_US : LONGEST_US, soonest)
}

function mayWait({ maxWaitUs }: { readonly maxWaitUs: number }): boolean {
  return maxWaitUs > 0
}

function fill(charge: FleetCharge, { passes, remaining, resets }: Denial, now: number): void {
  charge.wait = 0
  charge.fits = false
  passes.forEach((moment, level) => {
    const delay = Math.max(0, moment - now)
    charge.delays[level] = delay
    charge.wait = Math.max(charge.wait, delay)
    charge.remaining[level] = remaining[level]!
    charge.resets[level] = Math.max(0, resets[level]! - now)
  })
}
