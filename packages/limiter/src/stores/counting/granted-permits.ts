import { attempt } from '../../common/background.ts'
import { RECALLED_LEASES } from '../leases/lease-terms.ts'
import { Reservations } from '../leases/reservations.ts'
import type { LevelState } from '../memory/delay-beside.ts'
import type { MemoryStore } from '../memory/memory-store.ts'
import { OVERFLOW_SLOT, type Table } from '../memory/table.ts'
import type { LeaseAnswer, LeaseRequest } from '../store.ts'

/** A process that is stopped may not give permits back: a call waits no longer for them. */
const LONGEST_RECALL_MS = 50
/** After permits were not given back in time, they are not asked for again for this long. */
const PAUSE_MS = 1000

/** Permits of one key that are asked back, and what happens when they are there. */
interface Recall {
  readonly ends: (() => void)[]
  readonly timer: NodeJS.Timeout
}

/** The permits of one key that holders have, and whether they are asked back. */
interface Granted<Holder> {
  readonly reservations: Reservations<Holder>
  recall: Recall | undefined
  /** No permits are asked back before this moment, by `performance.now()`. */
  pausedUntilMs: number
}

/** The permits of a rule that processes hold in advance, by keys. */
export class GrantedPermits<Holder> {
  readonly #store: MemoryStore
  readonly #table: Table
  readonly #askBack: (holder: Holder, key: string) => void
  readonly #keys = new Map<string, Granted<Holder>>()

  /** `askBack` sends a holder the request to give the permits of a key back. */
  constructor(store: MemoryStore, table: Table, askBack: (holder: Holder, key: string) => void) {
    this.#store = store
    this.#table = table
    this.#askBack = askBack
  }

  get size(): number {
    return this.#keys.size
  }

  /** How many permits of a key are held, after those are counted whose time is over. */
  heldOf(key: string, now: number): number {
    const granted = this.#keys.get(key)
    if (granted === undefined) return 0
    const { reservations } = granted
    if (reservations.hasEnded(now)) reservations.bookEnded(this.#levelsOf(key, now), now)
    return reservations.held.amount
  }

  /** Answers the request of a holder. While permits of the key are asked back, none are granted. */
  request(holder: Holder, request: LeaseRequest<unknown>, now: number): LeaseAnswer {
    const { key } = request
    const granted = this.#keys.get(key) ?? this.#add(key)
    const { reservations, recall } = granted
    const levels = this.#levelsOf(key, now)
    reservations.bookEnded(levels, now)
    // keys without a slot share their numbers, but not their permits
    const isShared = key !== '' && this.#table.find(key) === OVERFLOW_SLOT
    const asked = recall || isShared ? { ...request, needed: 0, wanted: 0 } : request
    const answer = reservations.request(holder, asked, levels, now)
    if (recall && reservations.held.amount === 0) this.#end(granted)
    // permits that others hold refuse no call: they are asked back for it
    return { ...answer, delays: levels.map(({ meter, state, at }) => meter.delay(state, at, now, 1)) }
  }

  /** True if permits of a key are held, and their holders may be asked for them. */
  isRecallable(key: string, now: number): boolean {
    return this.heldOf(key, now) > 0 && performance.now() >= this.#keys.get(key)!.pausedUntilMs
  }

  /** Asks the permits of a key back, and runs `then` when they are there or will not come soon. */
  recall(key: string, then: () => void): void {
    const granted = this.#keys.get(key)
    if (granted === undefined || granted.reservations.held.amount === 0) {
      then()
      return
    }
    if (granted.recall === undefined) {
      const timer = setTimeout(() => {
        granted.pausedUntilMs = performance.now() + PAUSE_MS
        this.#end(granted)
      }, LONGEST_RECALL_MS).unref()
      granted.recall = { ends: [], timer }
      for (const holder of granted.reservations.holders()) this.#askBack(holder, key)
    }
    granted.recall.ends.push(then)
  }

  /** Counts permits whose time is over, and forgets keys without any. */
  sweep(now: number): void {
    for (const [key, { reservations, recall }] of this.#keys) {
      if (reservations.hasEnded(now)) reservations.bookEnded(this.#levelsOf(key, now), now)
      if (reservations.isEmpty && !recall) this.#keys.delete(key)
    }
  }

  #add(key: string): Granted<Holder> {
    const onCounted = (moment: number, cost: number): void => {
      if (this.#table.past.length > 0) this.#table.record(this.#table.find(key), moment, cost, 0)
    }
    const granted = {
      reservations: new Reservations<Holder>(RECALLED_LEASES, onCounted),
      recall: undefined,
      pausedUntilMs: 0,
    }
    this.#keys.set(key, granted)
    return granted
  }

  #end(granted: Granted<Holder>): void {
    const { ends, timer } = granted.recall!
    granted.recall = undefined
    clearTimeout(timer)
    for (const end of ends) attempt('calls that waited for permits', end)
  }

  /** Where a key is counted now. */
  #levelsOf(key: string, now: number): LevelState[] {
    const slot = this.#store.slotFor(this.#table, key, now) ?? OVERFLOW_SLOT
    // versions that are not used any more leave before numbers are looked at: this moves them
    if (this.#table.past.length > 0) this.#table.record(slot, now, 0, 0)
    const [state, base] = [this.#table.state(slot), this.#table.base(slot)]
    return this.#table.meters.map((meter, level) => ({ meter, state, at: base + this.#table.offsets[level]! }))
  }
}
