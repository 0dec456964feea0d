import { within } from '../../common/within.ts'
import { type CatchUp, costLasting, isWindow, type LaterCount, type LevelCatchUp, laterMoments } from '../catch-up.ts'
import { KeyState } from '../memory/key-state.ts'
import { OVERFLOW_SLOT, type Table } from '../memory/table.ts'
import type { SharedCharge } from '../shared-charge.ts'
import { type FleetCounter, fleetCharge, type SharedStore, takeBack } from '../store.ts'
import { laterEnd } from './seen-counts.ts'

/** What one key was admitted here and the store has not counted. */
interface Unreported {
  readonly counter: FleetCounter
  readonly key: string
  readonly table: Table
  cost: number
  /** What this process would count for the key if it had admitted none of that. */
  before: KeyState
}

/** What was reported to the store of one key. */
interface Reported {
  readonly unreported: Unreported
  readonly catchUp: CatchUp<FleetCounter>
  /** The life of the store in which it was. */
  readonly era: string
}

interface ReportTerms {
  /** Others may have begun to report this long ago. */
  readonly reportedForUs?: number | undefined
  /** The present life of the store. */
  readonly era?: string | undefined
}

const MOST = 100_000
const AT_ONCE = 64
/** A store that takes longer for so few does not answer. */
const CHUNK_MS = 1000

/**
 * What was admitted in this process without the store, to be counted there when it can be asked again. Each level is told
 * what it would have counted itself: the difference between what this process counts for the key and what it would count
 * without those calls, so calls that a short window has forgotten burden only the longer ones. What does not fit was over
 * the limit.
 */
export class Backlog {
  readonly #backlog = new Map<FleetCounter, Map<string, Unreported>>()
  #size = 0
  /** What the store has counted since this process began to return. */
  #reported: Reported[] = []
  /** Places that calls under way hold in this process only. */
  readonly #places = new Set<SharedCharge>()

  get isEmpty(): boolean {
    return this.#size === 0 && this.#places.size === 0
  }

  /** What is counted for a key before a call of it is counted here; none if the key is in debt, or owes nothing later. */
  stateBefore({ counter, key, table }: SharedCharge): KeyState | undefined {
    if (counter.needsRelease || this.#find(counter, key)) return undefined
    const slot = table.find(key)
    return new KeyState(table, slot)
  }

  /** A charge was counted here, and the key's state was `before` until then. */
  add(charge: SharedCharge, before: KeyState | undefined): void {
    const { counter, key, cost, table, slot } = charge
    if (counter.needsRelease) {
      this.#places.add(charge)
      return
    }
    // a key that this process could not tell apart from others cannot be told to the store
    if (slot === OVERFLOW_SLOT && key !== '') return
    const unreported = this.#find(counter, key)
    if (unreported) unreported.cost += cost
    else if (before) this.#insert({ counter, key, table, cost, before })
  }

  /** Adds a charge that was counted before all others which are owed, so before their states. */
  addEarlier(charge: SharedCharge, before: KeyState | undefined): void {
    const { counter, key, cost } = charge
    const unreported = this.#find(counter, key)
    if (!unreported) this.add(charge, before)
    else {
      unreported.cost += cost
      unreported.before = before ?? unreported.before
    }
  }

  /** The store has counted a charge after all; or the place of a call that has ended is free. */
  cancel(charge: SharedCharge, now: number): void {
    const { counter, key, cost } = charge
    if (counter.needsRelease) {
      this.#places.delete(charge)
      return
    }
    const unreported = this.#find(counter, key)
    if (!unreported) return
    unreported.cost -= cost
    if (unreported.cost <= 0) this.#remove(unreported)
    else for (let level = 0; level < counter.meters.length; level++) this.follow(charge, level, cost, now)
  }

  /** The store has counted `cost` of a key, and this process counts it too: it is no debt. */
  follow(
    { counter, key, table }: Pick<SharedCharge, 'counter' | 'key' | 'table'>,
    level: number,
    cost: number,
    now: number,
  ): void {
    const unreported = this.#size === 0 ? undefined : this.#find(counter, key)
    if (!unreported) return
    unreported.before.use(table, now)
    unreported.before.take(level, cost, now)
  }

  /** What a key was admitted here without the store, level by level, as far as it still counts. */
  owed({ counter, key }: Pick<SharedCharge, 'counter' | 'key'>, now: number): readonly LevelCatchUp[] {
    const unreported = this.#find(counter, key)
    return unreported ? levelsOf(unreported, now) : []
  }

  /** Whether a key was admitted something here that the store has not counted. */
  owes({ counter, key }: Pick<SharedCharge, 'counter' | 'key'>): boolean {
    return this.#size > 0 && this.#find(counter, key) !== undefined
  }

  forget(counter: FleetCounter, key: string): void {
    const unreported = this.#find(counter, key)
    if (unreported) this.#remove(unreported)
  }

  /** All processes have reported: what this one has reported is among what the store counts. Returns what that was. */
  confirm(): { readonly catchUp: CatchUp<FleetCounter>; readonly table: Table }[] {
    const reported = this.#reported
    this.#reported = []
    return reported.map(({ unreported, catchUp }) => ({ catchUp, table: unreported.table }))
  }

  /**
   * The store has lost its counts. What was reported and not confirmed is owed again, unless that was in the store's present life, which
   * may be noticed more than once.
   */
  recall(era?: string): void {
    const reported = this.#reported
    this.#reported = reported.filter(one => one.era === era)
    for (const one of reported) if (one.era !== era) this.#restore(one.unreported)
  }

  /**
   * Counts in the store what is owed, until it is confirmed or recalled; returns what did not fit. Throws if the store cannot
   * be asked; what was not counted is then still owed.
   */
  async settle(
    store: SharedStore,
    now: () => number,
    { reportedForUs = 0, era = '' }: ReportTerms = {},
  ): Promise<number> {
    await within(Promise.all([...this.#places].map(charge => this.#hold(charge, store))), CHUNK_MS)
    const owed = [...this.#backlog.values()].flatMap(known => [...known.values()])
    const failures: unknown[] = []
    let over = 0
    for (let from = 0; from < owed.length; from += AT_ONCE) {
      const some = owed.slice(from, from + AT_ONCE)
      const reports = Promise.allSettled(
        some.map(unreported => this.#report(unreported, store, now(), { reportedForUs, era })),
      )
      for (const outcome of await within(reports, CHUNK_MS)) {
        if (outcome.status === 'fulfilled') over += outcome.value
        else failures.push(outcome.reason)
      }
    }
    if (failures.length > 0) throw failures[0]
    return over
  }

  async #report(
    unreported: Unreported,
    store: SharedStore,
    now: number,
    { reportedForUs = 0, era = '' }: ReportTerms,
  ): Promise<number> {
    const { counter, key } = unreported
    const missed = { counter, key, levels: levelsOf(unreported, now, { reportedForUs, withLater: true }), unfit: [] }
    // what is admitted from now on is another debt
    this.#remove(unreported)
    if (missed.levels.every(({ known, missing }) => known === 0 && missing === 0)) return 0
    try {
      await store.catchUp(missed)
    } catch (error) {
      this.#restore(unreported)
      throw error
    }
    this.#reported.push({ unreported, catchUp: missed, era })
    return Math.max(0, ...missed.unfit)
  }

  /** Lets a place that is held here be held in the store, where its call gives it back. */
  async #hold(charge: SharedCharge, store: SharedStore): Promise<void> {
    const { counter, key, cost } = charge
    const held = Object.assign(fleetCharge(counter), { key, cost, enforced: charge.enforced })
    const { allowed, now } = await store.take([held])
    if (!allowed) return
    if (!this.#places.delete(charge)) takeBack(store, [held], now)
    else Object.assign(charge, { countedBy: 'fleet', moment: now })
  }

  #find(counter: FleetCounter, key: string): Unreported | undefined {
    return this.#backlog.get(counter)?.get(key)
  }

  #insert(unreported: Unreported): void {
    if (this.#size >= MOST) return
    const known = this.#backlog.get(unreported.counter) ?? new Map<string, Unreported>()
    this.#backlog.set(unreported.counter, known)
    known.set(unreported.key, unreported)
    this.#size++
  }

  #remove({ counter, key }: Unreported): void {
    const known = this.#backlog.get(counter)
    if (!known?.delete(key)) return
    this.#size--
    if (known.size === 0) this.#backlog.delete(counter)
  }

  #restore(unreported: Unreported): void {
    const newer = this.#find(unreported.counter, unreported.key)
    if (!newer) this.#insert(unreported)
    else {
      newer.cost += unreported.cost
      newer.before = unreported.before
    }
  }
}

/**
 * What each level has counted of a debt and still counts. Since others began to report, time pays in the store of what they
 * reported; so what it has paid here of a bucket's since then is reported, too.
 */
function levelsOf(
  { table, key, cost, before }: Unreported,
  now: number,
  { reportedForUs = 0, withLater = false }: { readonly reportedForUs?: number; readonly withLater?: boolean } = {},
): LevelCatchUp[] {
  const slot = table.find(key)
  before.use(table, now)
  return table.meters.map((meter, level) => {
    // the key was forgotten because its count no longer matters
    if (slot === OVERFLOW_SLOT && key !== '') return { known: 0, missing: 0 }
    const state = table.state(slot)
    const at = table.base(slot) + table.offsets[level]!
    const lasts = costLasting(meter, state, at, now)
    if (lasts !== undefined) return { known: lasts, missing: 0 }
    const missing = before.remaining(level, now) - meter.remaining(state, at, now)
    const isFull = meter.rate?.drain !== undefined && before.remaining(level, now) === meter.rate.most
    const paid = isFull ? Math.ceil((meter.rate?.perUs ?? 0) * reportedForUs) : 0
    const owed = Math.min(cost, Math.max(0, missing) + paid)
    if (!withLater || !isWindow(meter)) return { known: 0, missing: owed }
    if (meter.rate?.endsAt) return { known: 0, missing: owed, ...laterEnd(meter, state, at, now) }
    const leftAt = (moment: number): number => before.remaining(level, moment) - meter.remaining(state, at, moment)
    const later = laterOf(meter.rate!.windowUs!, cost, now, leftAt)
    // a share that is used up has no more than nothing left, whatever it was admitted beyond
    return { known: 0, missing: Math.max(owed, later[0]?.missing ?? 0), later }
  })
}

/** How much of a debt still counts at moments to come; at none more than later. */
function laterOf(windowUs: number, cost: number, now: number, leftAt: (moment: number) => number): LaterCount[] {
  let most = 0
  const later = laterMoments(windowUs, now)
    .toReversed()
    .map(afterUs => {
      most = Math.max(most, Math.min(cost, leftAt(now + afterUs)))
      return { afterUs, known: 0, missing: most }
    })
  return later.toReversed()
}
