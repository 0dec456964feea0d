import type { FleetCharge, FleetCounter } from './fleet-store.ts'

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

/**
 * Keys that are known to have nothing left until a moment: they are refused without asking again. Nothing is kept of
 * rules whose places are given back or whose calls wait, for there others may leave room at any time; and nothing for
 * longer than a second. Moments are microseconds by the clock of this process.
 */
export class DenyCache {
  readonly #denials = new Map<FleetCounter, Map<string, Denial>>()
  #size = 0

  /** Learns from charges that were refused when asked at `now`. */
  learn(charges: readonly FleetCharge[], now: number): void {
    for (const charge of charges) {
      const { counter, key, cost, enforced, fits, wait } = charge
      if (fits || !enforced || cost === 0 || counter.held || counter.meters.some(isPatient)) continue
      if (this.#size >= MOST) this.clear()
      const known = this.#denials.get(counter) ?? new Map<string, Denial>()
      this.#denials.set(counter, known)
      if (!known.has(key)) this.#size++
      const until = now + Math.min(wait, LONGEST_US)
      const [passes, resets] = [charge.delays, charge.resets].map(list => list.map(duration => now + duration))
      known.set(key, { cost, until, passes: passes!, remaining: [...charge.remaining], resets: resets! })
    }
  }

  /** Whether one of the charges is known to be refused; that one is then filled in, and the others say nothing. */
  refuses(charges: readonly FleetCharge[], now: number): boolean {
    if (this.#size === 0) return false
    for (const charge of charges) {
      const known = this.#denials.get(charge.counter)
      const denial = known?.get(charge.key)
      if (!known || !denial || charge.cost !== denial.cost) continue
      if (now < denial.until) {
        // who may be blocked besides is told so, which only the store can
        if (charges.some(({ cost }) => cost === 0)) return false
        fill(charge, denial, now)
        return true
      }
      known.delete(charge.key)
      this.#size--
    }
    return false
  }

  forget(counter: FleetCounter, key: string): void {
    if (this.#denials.get(counter)?.delete(key)) this.#size--
  }

  clear(): void {
    this.#denials.clear()
    this.#size = 0
  }
}

function isPatient({ patienceUs }: { readonly patienceUs: number }): boolean {
  return patienceUs > 0
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
