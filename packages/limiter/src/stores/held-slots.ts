import { attempt, type Repeated, repeat } from '../common/background.ts'
import type { LedgerNames } from './ledger-keys.ts'
import type { FleetCharge, FleetRefund } from './store.ts'

/** The concurrency slots of a process that has renewed nothing for this time are released. */
export const LEASE_MS = 5000
/** Concurrency slots are renewed this long after a request was lost, and again as long as that fails. */
const CORRECT_MS = 250

/** The concurrency slots that this process holds for one key; a range while answers are pending. */
export interface Renewal<Counter extends LedgerNames> {
  readonly counter: Counter
  readonly key: string
  readonly least: number
  readonly most: number
}

type SlotCharge<Counter> = FleetCharge & { readonly counter: Counter }

interface SlotsOfKey<Counter> {
  counter: Counter
  readonly key: string
  /** Slots that the store has granted. */
  granted: number
  /** Slots requested, with the answer pending. */
  asked: number
  /** The number of renewals that the store has yet to confirm after a request, or its answer, was lost: until then it may have other numbers. */
  doubts: number
}

/** Requests of a connection that was lost may be carried out after the first renewal by the next one. */
const DOUBTS = 2

/** The largest number of resets remembered. */
const MOST_RESETS = 10_000

/** The concurrency slots that this process holds in a store, which are renewed in time. */
export class HeldSlots<Counter extends LedgerNames> {
  readonly #renew: (renewal: Renewal<Counter>) => Promise<unknown>
  readonly #renewing: Repeated
  #correcting: NodeJS.Timeout | undefined
  #isClosed = false
  /** When keys were reset, by the clock of the store: slots held before are not released again. */
  readonly #resets = new Map<string, number>()
  readonly #held = new Map<string, SlotsOfKey<Counter>>()

  constructor(renew: (renewal: Renewal<Counter>) => Promise<unknown>) {
    this.#renew = renew
    this.#renewing = repeat('slots held in the store', LEASE_MS / 3, () => this.renewAll())
  }

  /** Renews the slots of this process, and resolves when the store has answered; renewals that were lost are repeated. */
  async renewAll(): Promise<void> {
    // each on its own, so that a batch stays small, and a Cluster finds each in its slot
    const renewals = this.renewals().map(renewal => {
      return this.#renew(renewal).then(
        () => this.renewed(renewal),
        () => this.lost([renewal]),
      )
    })
    await Promise.all(renewals)
  }

  /** Renews nothing more: the slots of this process are released soon. */
  close(): void {
    this.#isClosed = true
    this.#renewing.stop()
    clearTimeout(this.#correcting)
  }

  requested(charges: readonly SlotCharge<Counter>[]): void {
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

  /**
   * A request was lost, or its answer: what the store has of these keys is not known before they are renewed, with nothing if nothing is
   * held. That is done soon, if the store can be asked.
   */
  lost(charges: readonly { readonly counter: Counter; readonly key: string }[]): void {
    if (this.#isClosed) return
    for (const { counter, key } of charges) {
      if (!counter.needsRelease) continue
      const id = idOf(counter, key)
      const held = this.#held.get(id)
      if (held) held.doubts = DOUBTS
      else this.#held.set(id, { counter, key, granted: 0, asked: 0, doubts: DOUBTS })
    }
    if (!this.#hasDoubts || this.#correcting) return
    this.#correcting = setTimeout(() => {
      this.#correcting = undefined
      if (this.#hasDoubts) attempt('slots held in the store', () => this.renewAll())
    }, CORRECT_MS).unref()
  }

  /** True if what the store has of a key is not known. */
  get #hasDoubts(): boolean {
    for (const { doubts } of this.#held.values()) if (doubts === DOUBTS) return true
    return false
  }

  /** Notes that the store has confirmed a renewal. */
  renewed({ counter, key }: Renewal<Counter>): void {
    const held = this.#held.get(idOf(counter, key))
    if (!held || held.doubts === 0) return
    held.doubts--
    this.#change(idOf(counter, key), 0, 0)
  }

  /** The request was answered, or never will be. */
  answered(charges: readonly SlotCharge<Counter>[], allowed: boolean): void {
    for (const charge of charges) {
      if (!charge.counter.needsRelease || charge.cost === 0) continue
      const { counter, key, cost, fits } = charge
      this.#change(idOf(counter, key), -cost, allowed && fits ? cost : 0)
    }
  }

  giveBack(refunds: readonly FleetRefund[]): void {
    for (const { counter, key, cost, moment, wait = 0 } of refunds) {
      if (!counter.needsRelease) continue
      const id = idOf(counter as Counter, key)
      if (moment - wait >= (this.#resets.get(id) ?? -1)) this.#change(id, 0, -cost)
    }
  }

  /** Stops renewing the slots of a key. */
  drop(counter: Counter, key: string): void {
    this.#held.delete(idOf(counter, key))
  }

  /** The store has forgotten the slots of a key at `now`. */
  dropped(counter: Counter, key: string, now: number): void {
    if (!counter.needsRelease) return
    const id = idOf(counter, key)
    this.#resets.delete(id)
    this.#resets.set(id, now)
    if (this.#resets.size > MOST_RESETS) this.#resets.delete(this.#resets.keys().next().value!)
  }

  /** The clock of the store has stepped back: the moments of resets mean nothing now. */
  forgetResets(): void {
    this.#resets.clear()
  }

  /** All slots held, as far as known now. */
  renewals(): Renewal<Counter>[] {
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

function idOf(counter: LedgerNames, key: string): string {
  return counter.ledgerKeyOf(key)
}
