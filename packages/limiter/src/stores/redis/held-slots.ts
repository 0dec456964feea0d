import type { RedisCharge, RedisCounter } from './counter.ts'
import type { Refund, Renewal } from './script-request.ts'

interface SlotsOfKey {
  counter: RedisCounter
  readonly key: string
  /** Slots that Redis has granted. */
  granted: number
  /** Slots requested, with the answer pending. */
  asked: number
  /** A request was lost, or its answer: Redis may have other numbers until it has confirmed so many renewals. */
  doubts: number
}

/** Requests of a connection that was lost may be carried out after the first renewal by the next one. */
const DOUBTS = 2

/** The largest number of resets remembered. */
const MOST_RESETS = 10_000

/** The concurrency slots that this process holds in Redis, to renew their leases in time. */
export class HeldSlots {
  /** When keys were reset, by the clock of Redis: slots held before are not released again. */
  readonly #resets = new Map<string, number>()
  readonly #held = new Map<string, SlotsOfKey>()

  requested(charges: readonly RedisCharge[]): void {
    for (const charge of charges) {
      // fast path: most charges hold no slot
      if (!charge.counter.needsRelease || charge.cost === 0) continue
      const { counter, key, cost } = charge
      const id = idOf(counter, key)
      const held = this.#held.get(id)
      if (!held) this.#held.set(id, { counter, key, granted: 0, asked: cost, doubts: 0 })
      else {
        held.counter = counter
        held.asked += cost
      }
    }
  }

  /** A request was lost, or its answer: what Redis has of these keys is not known before they are renewed, with nothing if nothing is held. */
  lost(charges: readonly { readonly counter: RedisCounter; readonly key: string }[]): void {
    for (const { counter, key } of charges) {
      if (!counter.needsRelease) continue
      const id = idOf(counter, key)
      const held = this.#held.get(id)
      if (held) held.doubts = DOUBTS
      else this.#held.set(id, { counter, key, granted: 0, asked: 0, doubts: DOUBTS })
    }
  }

  /** True if what Redis has of a key is not known. */
  get hasDoubts(): boolean {
    for (const { doubts } of this.#held.values()) if (doubts === DOUBTS) return true
    return false
  }

  /** Redis has confirmed a renewal. */
  renewed({ counter, key }: Renewal): void {
    const held = this.#held.get(idOf(counter, key))
    if (!held || held.doubts === 0) return
    held.doubts--
    this.#change(idOf(counter, key), 0, 0)
  }

  /** The request was answered, or never will be. */
  answered(charges: readonly RedisCharge[], allowed: boolean): void {
    for (const charge of charges) {
      if (!charge.counter.needsRelease || charge.cost === 0) continue
      const { counter, key, cost, fits } = charge
      this.#change(idOf(counter, key), -cost, allowed && fits ? cost : 0)
    }
  }

  giveBack(refunds: readonly Refund[]): void {
    for (const { counter, key, cost, moment, wait = 0 } of refunds) {
      if (!counter.needsRelease) continue
      const id = idOf(counter, key)
      if (moment - wait >= (this.#resets.get(id) ?? -1)) this.#change(id, 0, -cost)
    }
  }

  /** Stops renewing the slots of a key. */
  drop(counter: RedisCounter, key: string): void {
    this.#held.delete(idOf(counter, key))
  }

  /** Redis has forgotten the slots of a key at `now`. */
  dropped(counter: RedisCounter, key: string, now: number): void {
    if (!counter.needsRelease) return
    const id = idOf(counter, key)
    this.#resets.delete(id)
    this.#resets.set(id, now)
    if (this.#resets.size > MOST_RESETS) this.#resets.delete(this.#resets.keys().next().value!)
  }

  /** The clock of Redis has stepped back: the moments of resets mean nothing now. */
  forgetResets(): void {
    this.#resets.clear()
  }

  /** All slots held, as far as known now. */
  renewals(): Renewal[] {
    return [...this.#held.values()].map(({ counter, key, granted, asked }) => {
      return { counter, key, least: granted, most: granted + asked }
    })
  }

  #change(id: string, asked: number, granted: number): void {
    const held = this.#held.get(id)
    if (!held) return
    held.asked += asked
    held.granted = Math.max(0, held.granted + granted)
    if (held.asked === 0 && held.granted === 0 && held.doubts === 0) this.#held.delete(id)
  }
}

function idOf(counter: RedisCounter, key: string): string {
  return counter.ledgerKeyOf(key)
}
