import type { Ending } from '../../algorithms/adaptive/estimator.ts'
import type { Meter, MeterMemory, Overrun } from '../../algorithms/algorithm.ts'
import { FreeSlots } from './free-slots.ts'
import { KeyIndex } from './key-index.ts'
import { inheritMoves, isSameLayout, type Layout, type LevelMove, layOut } from './migrate-states.ts'
import {
  isFaster,
  onlyVersion,
  type RuleVersion,
  type RuleVersions,
  recordCall,
  useVersion,
  withoutPast,
} from './rule-versions.ts'
import { States } from './states.ts'

const CHUNK_BITS = 10
const CHUNK_SLOTS = 1 << CHUNK_BITS
/** A rule with few keys needs no whole chunk. */
const FEW_SLOTS = 16
/** Slot 0 counts all keys that have no slot of their own. */
export const OVERFLOW_SLOT = 0

/** The resets of no more keys than this are known after they have lost their slots. */
const MOST_PAST_RESETS = 10_000

let resets = 0

/** How many keys were reset in this process so far. A charge remembers it, and is not refunded after a later reset. */
export function resetsSoFar(): number {
  return resets
}

/** The tables of all limits of a rule whose limit depends on the caller (limit-family.ts). */
export interface TableFamily {
  readonly tables: Iterable<Table>
  readonly isEager: boolean
  isMoved(key: string): boolean
  isKept(key: string, now: number): boolean
  isElsewhere(key: string, table: Table, now: number): boolean
  inherit(key: string, table: Table, slot: number, now: number, from?: Table): void
  join(key: string, table: Table, now: number): number
  othersFor(key: string, table: Table): Table[]
  joinAll(key: string, table: Table, others: readonly Table[], now: number): void
  leaveIdle(key: string, table: Table, now: number): number
  record(key: string, table: Table, now: number, cost: number, delay: number): number
  /** The delay of a call by the limit of a table, with that of what longer windows have admitted. */
  delayOf(key: string, table: Table, now: number, cost: number, delay: number): number
  /** What the limit of a table has left beside that. */
  remainingOf(key: string, table: Table, now: number, remaining: number): number
  /** Counts in the other tables of a key what was used beyond its limit, or what of it fits. */
  overdraw(key: string, table: Table, now: number, cost: number, overrun: Overrun): void
  giveBack(
    key: string,
    now: number,
    cost: number,
    moment: number,
    applies: (meter: Meter) => boolean,
    ending?: Ending,
  ): void
  removeEmpty(isUsed: (table: Table) => boolean): Table[]
  forgot(key: string, table: Table): void
}

/**
 * The counts of one rule: a slot of numbers per key (states.ts).
 *
 * A key without a slot reads the overflow slot. That slot is all zeros, as of a key never seen, unless the store was full
 * and new keys had to be counted together; then a new key starts with what the overflow slot has used, since it may have
 * been among them.
 */
export class Table {
  meters: readonly Meter[] = []
  /** Where each meter's numbers begin within a slot. */
  offsets: readonly number[] = []
  /** How many numbers a slot has. */
  stride = 0
  /** Since when the limit is what it is; before all moments if it was never changed. */
  changedAt = -1
  /** Counts a call that passes at once by one move, if that is enough. */
  swift: MeterMemory | undefined = undefined
  /** Whether calls that are not admitted are stored as the moment at which a key was first seen. */
  begins = false
  /** Whether a rule in shadow counts the calls that it would refuse, too. */
  countsAll = false
  /** Versions of the rule that are not used any more, and still record all calls; most tables have none. */
  past: readonly RuleVersion[] = []
  /** The tables of the other limits of the rule, if its limit depends on the caller. */
  family: TableFamily | undefined = undefined
  #versions: RuleVersions
  #held = false
  readonly #index = new KeyIndex()
  #states: States
  /** Those of `#states`, one step nearer. */
  #chunks: States['chunks']
  #step = 0
  readonly #free = new FreeSlots()
  #slots = 1
  #hasOverflow = false
  /** The last reset of each slot, by chunks; none for a chunk without any. */
  readonly #resets: (Float64Array | undefined)[] = []
  /** The last reset of keys that have lost their slots. */
  readonly #pastResets = new Map<string, number>()

  constructor(meters: readonly Meter[]) {
    this.#versions = onlyVersion(meters, -1)
    this.#use(this.#versions)
    this.#states = new States(layoutOf(this.#versions), CHUNK_BITS)
    this.#useStates(this.#states)
    // a table of the overflow slot alone, such as a global rule's, needs no whole chunk
    this.#states.addChunk(OVERFLOW_SLOT, 1)
  }

  /**
   * Goes on counting with other numbers: every key's state is what the new meters make of it. If `keepsPast` is true, the meters
   * of before record calls for a while longer, in case they are used again. Returns what undoes this, as long as nothing was
   * counted since; where a meter throws, nothing has changed.
   */
  adopt(meters: readonly Meter[], now: number, { keepsPast = false }: { keepsPast?: boolean } = {}): () => void {
    const [versions, states] = [this.#versions, this.#states]
    const { used, stride } = versions
    if (isSameLayout(layOut(used.meters), layOut(meters))) {
      const next = { ...used, meters }
      this.#use({ all: versions.all.map(version => (version === used ? next : version)), used: next, stride })
    } else if (keepsPast) {
      this.#move(useVersion(versions, meters, now), now)
    } else {
      const after = onlyVersion(meters, now)
      const before = { meters: used.meters, offsets: used.offsets, stride }
      this.#move({ versions: after, moves: inheritMoves(before, layoutOf(after)) }, now)
    }
    return () => {
      this.#use(versions)
      this.#useStates(states)
    }
  }

  /** Counts in all versions that are kept a call which the one in use has admitted. */
  record(slot: number, now: number, cost: number, delay: number): void {
    const kept = withoutPast(this.#versions, now)
    if (kept) this.#move(kept, now)
    const [state, base] = [this.state(slot), this.base(slot)]
    for (const { meters, offsets } of this.past) {
      meters.forEach(
        (meter, level) =>
          void recordCall(meter, state, base + offsets[level]!, {
            now,
            cost,
            delay,
            carries: isFaster(meter, this.meters),
          }),
      )
    }
  }

  /** Takes back what was counted as admitted at `moment`, in all levels or in those that `applies` names; `ending` is how the call ended. */
  giveBack(
    slot: number,
    now: number,
    cost: number,
    moment: number,
    applies: (meter: Meter) => boolean = () => true,
    ending: Ending = 'unknown',
  ): void {
    const [state, base] = [this.state(slot), this.base(slot)]
    for (const { meters, offsets, changedAt } of this.#versions.all) {
      meters.forEach((meter, level) => {
        if (!applies(meter)) return
        if (meter.held?.learns) meter.held.learns.end(state, base + offsets[level]!, now, cost, moment, ending)
        else meter.refund(state, base + offsets[level]!, now, cost, moment, changedAt)
      })
    }
  }

  /** Counts at `now` what was used beyond a reservation: beyond the limit, or up to it. */
  overdraw(slot: number, now: number, cost: number, overrun: Overrun): number {
    const [state, base] = [this.state(slot), this.base(slot)]
    const roomIn = (meter: Meter, level: number) => meter.remaining(state, base + this.offsets[level]!, now)
    const amount = overrun === 'debt' ? cost : Math.min(cost, ...this.meters.map(roomIn))
    if (amount <= 0) return 0
    for (const { meters, offsets } of this.past) {
      meters.forEach((meter, level) => {
        const at = base + offsets[level]!
        if (overrun === 'debt' && meter.migrate?.overdraw) meter.migrate.overdraw(state, at, now, amount)
        else recordCall(meter, state, at, { now, cost: amount, delay: 0, carries: isFaster(meter, this.meters) })
      })
    }
    this.meters.forEach((meter, level) => {
      const at = base + this.offsets[level]!
      if (overrun === 'debt' && meter.migrate?.overdraw) {
        meter.migrate.overdraw(state, at, now, amount)
        return
      }
      const room = Math.min(amount, roomIn(meter, level))
      if (room > 0) meter.take(state, at, now, room, 0)
    })
    return amount
  }

  #move({ versions, moves }: { versions: RuleVersions; moves: readonly LevelMove[] }, now: number): void {
    this.#useStates(this.#states.move(layoutOf(versions), moves, now))
    this.#use(versions)
  }

  #use(versions: RuleVersions): void {
    const { meters, offsets, changedAt } = versions.used
    this.#versions = versions
    this.meters = meters
    this.offsets = offsets
    this.stride = versions.stride
    this.changedAt = changedAt
    this.past = versions.all.filter(version => version !== versions.used)
    this.begins = versions.all.some(version => version.meters.some(meter => meter.rate?.start !== undefined))
    this.swift = meters.length === 1 && this.past.length === 0 && !this.begins ? meters[0]!.memory : undefined
    this.countsAll = meters.some(meter => meter.held?.learns !== undefined)
    this.#held = meters.some(meter => meter.held !== undefined)
  }

  #useStates(states: States): void {
    this.#states = states
    this.#chunks = states.chunks
    this.#step = states.base(1)
  }

  /** Keys with a slot of their own. */
  get keys(): number {
    return this.#index.size
  }

  find(key: string): number {
    // to compare texts takes a call, to measure one does not
    return key.length === 0 ? OVERFLOW_SLOT : (this.#index.get(key) ?? OVERFLOW_SLOT)
  }

  /** All keys and their slots; the overflow slot has the empty key. */
  *entries(): Generator<readonly [key: string, slot: number]> {
    yield ['', OVERFLOW_SLOT]
    yield* this.#index.entries()
  }

  /** The array with the state of a slot, from `base` on; it is invalid after that of another slot was read. */
  state(slot: number): Float64Array {
    const chunks = this.#chunks
    return chunks === undefined ? this.#states.state(slot) : chunks[slot >> CHUNK_BITS]!
  }

  base(slot: number): number {
    return (slot & (CHUNK_SLOTS - 1)) * this.#step
  }

  /** Whether new keys share the overflow slot now. */
  isOverflowing(now: number): boolean {
    return this.#hasOverflow && this.#isLive(OVERFLOW_SLOT, now)
  }

  /** The slot of a key for which there is no room. */
  addToOverflow(): number {
    this.#hasOverflow = true
    return OVERFLOW_SLOT
  }

  /** A slot for a key that has none; the overflow slot, if the key's calls may have been counted there. */
  add(key: string, now: number): number {
    const overflowing = this.isOverflowing(now)
    if (overflowing && this.#held) return OVERFLOW_SLOT
    const slot = this.#free.pop() ?? this.#grow()
    this.#index.add(key, slot)
    const reset = this.#pastResets.size > 0 ? this.#pastResets.get(key) : undefined
    if (reset !== undefined) this.#noteReset(slot, reset)
    if (overflowing) this.#states.copy(OVERFLOW_SLOT, slot)
    return slot
  }

  /**
   * Forgets what is counted for a key; a key that shares a counter with others keeps it. `stamp` is larger than that of every
   * charge so far.
   */
  reset(key: string, stamp: number = ++resets): void {
    if (this.family === undefined) this.#reset(key, stamp)
    else for (const table of this.family.tables) table.#reset(key, stamp)
  }

  #reset(key: string, stamp: number): void {
    const slot = this.find(key)
    if (slot === OVERFLOW_SLOT && key !== '') {
      this.#notePastReset(key, stamp)
      return
    }
    this.#states.clear(slot)
    this.#noteReset(slot, stamp)
  }

  /** True if a key was reset after a charge with this stamp; of keys without a slot, the last ones to lose theirs are known. */
  isResetSince(key: string, stamp: number): boolean {
    const slot = this.find(key)
    const last = slot === OVERFLOW_SLOT && key !== '' ? this.#pastResets.get(key) : this.#resetOf(slot)
    return (last ?? 0) > stamp
  }

  #resetOf(slot: number): number {
    return this.#resets[slot >> CHUNK_BITS]?.[slot & (CHUNK_SLOTS - 1)] ?? 0
  }

  #noteReset(slot: number, stamp: number): void {
    this.#resets[slot >> CHUNK_BITS] ??= new Float64Array(CHUNK_SLOTS)
    this.#resets[slot >> CHUNK_BITS]![slot & (CHUNK_SLOTS - 1)] = stamp
  }

  #notePastReset(key: string, stamp: number): void {
    this.#pastResets.delete(key)
    this.#pastResets.set(key, stamp)
    if (this.#pastResets.size > MOST_PAST_RESETS) this.#pastResets.delete(this.#pastResets.keys().next().value!)
  }

  /** Checks up to `count` keys and frees those whose state is idle; returns how many it freed. */
  sweep(count: number, now: number): number {
    let freed = 0
    for (let looked = 0; looked < count; looked++) {
      const entry = this.#index.next()
      if (entry === undefined || this.#isLive(entry[1], now) || this.family?.isKept(entry[0], now)) continue
      this.#forget(entry[0], entry[1])
      freed++
    }
    return freed
  }

  /** Frees the slot of a key; true if it had one. */
  forget(key: string): boolean {
    const slot = this.find(key)
    if (slot === OVERFLOW_SLOT) return false
    this.#forget(key, slot)
    return true
  }

  #forget(key: string, slot: number): void {
    const reset = this.#resetOf(slot)
    if (reset > 0) {
      this.#noteReset(slot, 0)
      this.#notePastReset(key, reset)
    }
    this.#index.delete(key)
    this.#states.clear(slot)
    this.#free.push(slot)
    this.family?.forgot(key, this)
  }

  /** True if no key matters any more, those without a slot included. */
  isIdle(now: number): boolean {
    for (const [, slot] of this.entries()) if (this.#isLive(slot, now)) return false
    return true
  }

  /** Whether a key has a slot whose numbers matter. */
  isKeyLive(key: string, now: number): boolean {
    const slot = this.find(key)
    return slot !== OVERFLOW_SLOT && this.#isLive(slot, now)
  }

  #grow(): number {
    const slot = this.#slots++
    if (slot === OVERFLOW_SLOT + 1) this.#states.addChunk(slot, FEW_SLOTS)
    else if (slot === FEW_SLOTS || !this.#states.hasChunk(slot)) this.#states.addChunk(slot)
    return slot
  }

  #isLive(slot: number, now: number): boolean {
    const state = this.state(slot)
    const base = this.base(slot)
    return this.#versions.all.some(({ meters, offsets }) => {
      return meters.some((meter, level) => meter.idleAt(state, base + offsets[level]!) > now)
    })
  }
}

/** Where the numbers of all versions are within a slot. */
function layoutOf({ all, stride }: RuleVersions): Layout {
  return { meters: all.flatMap(({ meters }) => meters), offsets: all.flatMap(({ offsets }) => offsets), stride }
}
