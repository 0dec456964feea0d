import type { Meter } from '../algorithms/algorithm.ts'
import { type CatchUp, capacityOf, costLasting } from './catch-up.ts'
import type { Debts } from './debts.ts'
import type { FleetCounter } from './fleet-store.ts'
import { type LocalCharge, localCharge, type MemoryStore } from './memory.ts'
import { SeenCounts } from './seen-counts.ts'
import { isCountedHere, type SharedCharge } from './shared-charge.ts'
import { CROWD, type Table } from './table.ts'

/** What the meters here and those of the whole fleet admit to a key never seen. */
interface Capacities {
  readonly meters: readonly Meter[]
  readonly here: readonly number[]
  readonly fleet: readonly number[]
}

/** One in so many permits is left to what others are admitted between the last answer and an outage. */
const MARGIN = 20
/** A store that has lost its memory is told of so many keys by each process; more would take too long. */
const MOST_KNOWN = 50_000

/**
 * Judges calls in this process while the store cannot be asked. As long as it can, this follows along: it counts what
 * this process was admitted, and keeps no more than its part of what the store said is left. So a switch grants no second
 * burst, and the parts of all processes add up to no more than what was left.
 */
export class StandIn {
  readonly #memory: MemoryStore
  readonly #debts: Debts
  readonly #capacities = new WeakMap<FleetCounter, Capacities>()
  readonly #seen = new WeakMap<FleetCounter, SeenCounts>()
  readonly #seenByTable = new WeakMap<Table, SeenCounts>()
  #counters: WeakRef<FleetCounter>[] = []

  constructor(memory: MemoryStore, debts: Debts) {
    this.#memory = memory
    this.#debts = debts
  }

  /** Follows what the store has judged; `isCounted` tells that this process has counted the call already. */
  follow(charges: readonly SharedCharge[], allowed: boolean, isCounted: boolean, now: number): void {
    for (const charge of charges) {
      if (!isCountedHere(charge)) continue
      if (charge.cost === 0) this.#followBlock(charge, now)
      else this.#follow(charge, allowed && charge.fits, isCounted, now)
    }
  }

  /** Takes note of what the store says of a call that was judged here meanwhile. */
  see(charge: SharedCharge, now: number): void {
    const slot = this.#slotFor(charge, now)
    if (slot === undefined || (slot === CROWD && charge.key !== '')) return
    this.#seenOf(charge.counter, charge.table, now).see(slot, charge.remaining, now)
  }

  /** Judges all charges at once: every one is counted, or, if one refuses, none. */
  take(charges: readonly SharedCharge[], now: number): boolean {
    return this.#judge(charges, now, true)
  }

  /** Judges all charges without counting any. */
  look(charges: readonly SharedCharge[], now: number): boolean {
    return this.#judge(charges, now, false)
  }

  /** Frees the places here of a call that has ended. */
  release({ table, key, slot, cost, resetsBefore }: SharedCharge, now: number): void {
    if ((slot === CROWD ? key !== '' : table.find(key) !== slot) || table.isResetSince(slot, resetsBefore)) return
    table.meters.forEach((meter, level) => {
      if (meter.held) meter.giveBack(table.state(slot), table.base(slot) + table.offsets[level]!, now, cost, now)
    })
  }

  /** Gives back here what the store gives back. */
  giveBack({ counter, table, key, slot, followedAt }: SharedCharge, cost: number, now: number): void {
    if (followedAt === 0 || (slot === CROWD ? key !== '' : table.find(key) !== slot)) return
    this.#seen.get(counter)?.giveBack(slot, cost, followedAt, now)
    table.meters.forEach((meter, level) => {
      if (!meter.held)
        meter.giveBack(table.state(slot), table.base(slot) + table.offsets[level]!, now, cost, followedAt)
    })
  }

  /** The counts of a key were reset. */
  forget(counter: FleetCounter, key: string): void {
    const seen = this.#seen.get(counter)
    const slot = seen?.table.find(key)
    if (slot !== undefined && (slot !== CROWD || key === '')) seen?.clear(slot)
  }

  /** The store was told of calls that this process had admitted. */
  told({ counter, key, levels, unfit }: CatchUp<FleetCounter>, table: Table, now: number): void {
    const slot = table.find(key)
    if (slot === CROWD && key !== '') return
    const counted = levels.map(({ missing }, level) => Math.max(0, missing - unfit[level]!))
    this.#seenOf(counter, table, now).count(slot, counted, now)
  }

  /**
   * What the store was last seen to have counted, key by key: all that it can be told if it has lost its memory. Keys with nothing
   * left come first, and there are at most MOST_KNOWN.
   */
  *known(now: () => number): Generator<CatchUp<FleetCounter>> {
    let left = MOST_KNOWN
    for (const isExhausted of [true, false]) {
      for (const known of this.#known(now)) {
        if (this.#isExhausted(known) !== isExhausted) continue
        if (left-- === 0) return
        yield known
      }
    }
  }

  #isExhausted({ counter, levels }: CatchUp<FleetCounter>): boolean {
    return counter.meters.some((meter, level) => meter.costLasting || levels[level]!.known >= capacityOf(meter))
  }

  *#known(now: () => number): Generator<CatchUp<FleetCounter>> {
    for (const counter of this.#counters.flatMap(one => one.deref() ?? [])) {
      const seen = this.#seen.get(counter)
      if (!seen || counter.held) continue
      for (const [key, slot] of seen.table.entries()) {
        const used = seen.used(slot, now())
        const levels = counter.meters.map((meter, level) => {
          const at = seen.table.base(slot) + seen.table.offsets[level]!
          const lasts = costLasting(meter, seen.table.state(slot), at, now())
          return { known: lasts ?? used[level]!, missing: 0 }
        })
        if (levels.some(({ known }) => known > 0)) yield { counter, key, levels, unfit: [] }
      }
    }
  }

  /** A caller whom the store has blocked stays blocked while it cannot be asked. */
  #followBlock(charge: SharedCharge, now: number): void {
    const { table, counter, key, delays } = charge
    const meter = table.meters[0]!
    if (!meter.costLasting || !(delays[0]! > 0)) return
    const slot = this.#slotFor(charge, now)
    if (slot === undefined) return
    this.#seenOf(counter, table, now)
    if (slot !== CROWD || key === '')
      meter.take(table.state(slot), table.base(slot), now, meter.costLasting(delays[0]!), 0)
  }

  #follow(charge: SharedCharge, isAdmitted: boolean, isCounted: boolean, now: number): void {
    const { table, counter, cost } = charge
    const slot = this.#slotFor(charge, now)
    if (slot === undefined) return
    charge.slot = slot
    charge.followedAt = now
    if (!counter.held) this.see(charge, now)
    const state = table.state(slot)
    const base = table.base(slot)
    const { here, fleet } = this.#capacitiesOf(counter, table)
    const own = isAdmitted && !isCounted ? cost : 0
    for (let level = 0; level < table.meters.length; level++) {
      const meter = table.meters[level]!
      const at = base + table.offsets[level]!
      if (meter.held) {
        if (own > 0) meter.take(state, at, now, own, 0)
        continue
      }
      if (isCounted) this.#debts.follow(charge, level, cost, now)
      const isWhole = here[level] === fleet[level]
      const part = Math.floor((charge.remaining[level]! * here[level]!) / fleet[level]!)
      // a process that has the whole limit to itself need not reckon with others
      const left = isWhole ? part : Math.max(0, part - Math.floor(here[level]! / MARGIN))
      if (left === 0 && meter.drain && !isWhole) {
        meter.drain(state, at, now)
        continue
      }
      meter.begin?.(state, at, now)
      const room = meter.remaining(state, at, now)
      if (own > room && meter.delay(state, at, now, own) === 0) {
        // it counts something else than permits
        meter.take(state, at, now, own, 0)
        continue
      }
      // beyond the whole permits there may be a fraction of one
      const spare = meter.drain && !isWhole ? room - left + 1 : room - left
      const gone = Math.min(room, Math.max(own, spare))
      if (gone <= 0) continue
      meter.take(state, at, now, gone, 0)
      this.#debts.follow(charge, level, gone, now)
    }
  }

  /** The slot of a key that is followed here; none if there is no room for it. */
  #slotFor({ table, key }: SharedCharge, now: number): number | undefined {
    const isNew = key !== '' && table.find(key) === CROWD
    const slot = this.#memory.slotFor(table, key, now)
    if (isNew && slot !== undefined) this.#seenByTable.get(table)?.clear(slot)
    return slot
  }

  #seenOf(counter: FleetCounter, table: Table, now: number): SeenCounts {
    const known = this.#seen.get(counter)
    if (known?.table === table) return known
    const seen = this.#seenByTable.get(table) ?? new SeenCounts(table, counter.meters)
    seen.use(counter.meters, now)
    this.#seenByTable.set(table, seen)
    this.#seen.set(counter, seen)
    // the counter that the rule had before counts no more
    const others = this.#counters.filter(one => {
      const other = one.deref()
      return other !== undefined && this.#seen.get(other)?.table !== table
    })
    this.#counters = [...others, new WeakRef(counter)]
    return seen
  }

  #capacitiesOf(counter: FleetCounter, { meters }: Table): Capacities {
    const known = this.#capacities.get(counter)
    if (known?.meters === meters) return known
    const capacities = { meters, here: meters.map(capacityOf), fleet: counter.meters.map(capacityOf) }
    this.#capacities.set(counter, capacities)
    return capacities
  }

  #judge(charges: readonly SharedCharge[], now: number, counting: boolean): boolean {
    const counted = charges.filter(isCountedHere)
    const local = counted.map(({ table, key, cost, enforced, mayWait }): LocalCharge => {
      return { ...localCharge(table), key, cost, enforced, mayWait }
    })
    const isNew = counting ? counted.map(({ table, key }) => key !== '' && table.find(key) === CROWD) : []
    const rest = charges.filter(charge => !isCountedHere(charge))
    for (const charge of rest) fill(charge, charge.emergency === 'refuse')
    const isShut = rest.some(({ fits, enforced }) => !fits && enforced)
    const takes = counting && !isShut
    const allowed = takes ? this.#memory.take(local, local.length, now) : this.#memory.look(local, local.length, now)
    counted.forEach((charge, i) => {
      const { delays, wait, fits, remaining, resets, slot } = local[i]!
      Object.assign(charge, { delays, wait, fits, remaining, resets, slot, countedBy: 'memory', moment: now + wait })
      if (isNew[i] && slot !== CROWD) this.#seenByTable.get(charge.table)?.clear(slot)
    })
    return allowed && !isShut
  }
}

/** What a rule says that counts nothing. */
function fill(charge: SharedCharge, refuses: boolean): void {
  const delay = refuses ? Number.POSITIVE_INFINITY : 0
  charge.wait = delay
  charge.fits = !refuses
  charge.countedBy = 'nobody'
  charge.counter.meters.forEach((_, level) => {
    charge.delays[level] = delay
    charge.remaining[level] = 0
    charge.resets[level] = 0
  })
}
