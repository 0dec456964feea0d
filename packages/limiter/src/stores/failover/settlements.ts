import type { Overrun } from '../../algorithms/algorithm.ts'
import { reportFault } from '../../common/faults.ts'
import type { SharedCharge } from '../shared-charge.ts'
import type { FleetSettlement } from '../store.ts'

/** So many settlements wait for a store that cannot be asked; of more, the store releases what was reserved. */
const MOST_WAITING = 10_000
const RETRY_MS = 250
const AT_ONCE = 100
/** Later than any moment. */
const LATER = 2 ** 52

export interface SettlementsOptions {
  readonly settle: (settlements: readonly FleetSettlement[]) => Promise<void>
  /** Whether the store cannot be asked. */
  readonly isAway: () => boolean
  readonly now: () => number
}

interface Waiting {
  readonly settlement: FleetSettlement
  /** From when on the store has released the reservation, by the clock of this process. */
  readonly until: number
  readonly done: () => void
}

/**
 * Reports to a store what was really used. If it cannot be asked, that is sent again and again until the reservation ends: the store
 * settles each id once, so that one it has settled already does no harm.
 */
export class Settlements {
  readonly #options: SettlementsOptions
  #waiting: Waiting[] = []
  #retrying: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(options: SettlementsOptions) {
    this.#options = options
  }

  /** Resolves when the store knows, or the reservation, which lasts `holdUs` at most, has ended. */
  async send(settlement: FleetSettlement, holdUs: number): Promise<void> {
    const until = this.#options.now() + holdUs
    if (!this.#options.isAway() && (await this.#try([settlement]))) return
    if (this.#isClosed || this.#waiting.length >= MOST_WAITING) return
    await new Promise<void>(done => {
      this.#waiting.push({ settlement, until, done })
      this.#retryLater()
    })
  }

  /** Tries once more, and gives up what the store does not take then. */
  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#retrying)
    if (!this.#options.isAway()) await this.#retry()
    for (const { done } of this.#waiting.splice(0)) done()
  }

  #retryLater(): void {
    if (this.#retrying || this.#isClosed) return
    this.#retrying = setTimeout(async () => {
      await this.#retry().catch(error => reportFault('settlements', error))
      this.#retrying = undefined
      if (this.#waiting.length > 0) this.#retryLater()
    }, RETRY_MS).unref()
  }

  async #retry(): Promise<void> {
    const now = this.#options.now()
    for (const { until, done } of this.#waiting) if (until <= now) done()
    this.#waiting = this.#waiting.filter(({ until }) => until > now)
    while (this.#waiting.length > 0 && !this.#options.isAway()) {
      const some = this.#waiting.slice(0, AT_ONCE)
      if (!(await this.#try(some.map(({ settlement }) => settlement)))) return
      const sent = new Set(some)
      this.#waiting = this.#waiting.filter(one => !sent.has(one))
      for (const { done } of some) done()
    }
  }

  async #try(settlements: readonly FleetSettlement[]): Promise<boolean> {
    try {
      await this.#options.settle(settlements)
      return true
    } catch {
      return false
    }
  }
}

/** What was really used of a charge; what a lease has paid is no reservation of the store, and only the rest is charged there. */
export function settlementOf(charge: SharedCharge, actual: number, overrun: Overrun): FleetSettlement {
  const { counter, key, cost, moment, wait, holdUs, reservation, countedBy, resetsBefore } = charge
  const base = { counter, key, moment, wait, reservation, overrun, resetsBefore }
  // when exactly it was used only the lease knows: no earlier than any reset
  if (countedBy === 'lease') return { ...base, moment: LATER, cost: 0, until: 0, actual: Math.max(0, actual - cost) }
  return { ...base, cost, until: moment - wait + holdUs, actual }
}
