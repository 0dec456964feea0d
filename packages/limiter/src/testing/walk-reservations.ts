import type { Overrun } from '../algorithms/algorithm.ts'
import type { MemoryStore } from '../stores/memory/memory-store.ts'
import { refundLocal } from '../stores/memory/refund-local.ts'
import type { Table } from '../stores/memory/table.ts'
import { OpenReservations } from '../stores/open-reservations.ts'
import type { FleetCounter, FleetSettlement } from '../stores/store.ts'
import { type Dice, pick } from './walk.ts'
import type { WalkedStore } from './walked-store.ts'

/** A charge that both stores have reserved. */
export interface WalkReservation {
  readonly id: number
  readonly table: Table
  readonly counter: FleetCounter
  readonly key: string
  readonly cost: number
  readonly moment: number
  readonly wait: number
  readonly slot: number
  readonly resetsBefore: number
  readonly holdUs: number
  readonly until: number
  status: 'open' | 'settled' | 'ended' | 'forgotten'
}

const HOLDS_US = [1, 1000, 100_000, 5_000_000, 60_000_000, 3_600_000_000]
/** The time for which a store knows a settlement after its end. */
const SETTLED_US = 60_000_000

/** The reservations of a walk: settled at less, as much or more, released, settled twice, or left to end. */
export class WalkReservations {
  readonly #memory: MemoryStore
  readonly #store: WalkedStore
  readonly #open = new OpenReservations<WalkReservation>()
  #known: WalkReservation[] = []
  #sent: { readonly settlement: FleetSettlement; readonly before: number }[] = []
  #lastId = 1

  constructor(memory: MemoryStore, store: WalkedStore) {
    this.#memory = memory
    this.#store = store
  }

  /** Returns the terms of a call that reserves; most calls do not. */
  termsFrom([kind = 0, , many = 0]: Dice): { readonly id: number; readonly holdUs: number } {
    return (kind >> 7) % 3 > 0 ? { id: 0, holdUs: 0 } : { id: this.#lastId++, holdUs: pick(HOLDS_US, many >> 3) }
  }

  add(reservation: Omit<WalkReservation, 'status'>): void {
    const one: WalkReservation = { ...reservation, status: 'open' }
    this.#known.push(one)
    this.#open.add(one)
  }

  /** Refunds in memory what has ended; Redis does so when it meets the caller. */
  releaseEnded(now: number): void {
    for (const one of this.#open.takeEnded(now)) {
      one.status = 'ended'
      refundLocal(one, one.until, 'all')
    }
  }

  /** Settles one of them in both stores, as the dice say. */
  async settle([, who = 0, many = 0, size = 0]: Dice, now: number): Promise<void> {
    const [one] = this.#known.splice(who % Math.max(1, this.#known.length), 1)
    // for how long Redis remembers a reset depends on what else it has of the caller
    if (one === undefined || (one.status === 'forgotten' && now >= one.until)) return
    const { cost } = one
    const actual = pick([0, 0, cost, Math.floor(cost / 2), cost + 1, cost + (size % 50), cost * 30, 2 ** 50], many)
    await this.#settleAt(one, actual, many % 3 === 0 ? 'clip' : 'debt', now)
  }

  /** Sends Redis a known request again. */
  async repeat([, who = 0]: Dice, now: number): Promise<void> {
    this.#sent = this.#sent.filter(({ before }) => now < before)
    const sent = this.#sent[who % Math.max(1, this.#sent.length)]
    if (sent) await this.#store.settle([sent.settlement])
  }

  /** Settles all of a rule, since it is about to change. */
  async settleAll(table: Table, now: number): Promise<void> {
    const all = this.#known.filter(one => one.table === table)
    this.#known = this.#known.filter(one => one.table !== table)
    this.#sent = []
    for (const one of all) if (one.status === 'open') await this.#settleAt(one, one.cost, 'debt', now)
    // Redis writes down what has ended
    for (const { counter, key } of all) {
      const nothing = { cost: 0, actual: 0, until: 0, moment: now, reservation: 0, overrun: 'debt' } as const
      await this.#store.settle([{ counter, key, ...nothing }])
    }
  }

  /** Notes that the counts of a key were reset. */
  forget(table: Table, key: string): void {
    for (const one of this.#known) {
      if (one.table !== table || one.key !== key) continue
      this.#open.delete(one)
      one.status = 'forgotten'
    }
  }

  async #settleAt(one: WalkReservation, actual: number, overrun: Overrun, now: number): Promise<void> {
    const { id, table, counter, key, cost, moment, wait, until, status, resetsBefore } = one
    this.#open.delete(one)
    one.status = 'settled'
    const reserved = status === 'open' ? cost : 0
    if (status === 'forgotten') {
      // nothing of it is counted any more
    } else if (actual < reserved) refundLocal({ ...one, cost: reserved - actual }, now, 'all')
    else if (actual > reserved) this.#memory.overdraw(table, key, now, actual - reserved, overrun)
    const settlement = { counter, key, cost, moment, wait, reservation: id, until, actual, overrun, resetsBefore }
    this.#sent.push({ settlement, before: status === 'open' ? until : now + SETTLED_US })
    await this.#store.settle([settlement])
  }
}
