import type { Meter } from '../algorithms/algorithm.ts'
import type { FleetCounter } from './fleet-store.ts'
import { type LocalCharge, localCharge, type MemoryStore } from './memory.ts'
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

/**
 * Judges calls in this process while the store cannot be asked. As long as it can, this follows along: it counts what
 * this process was admitted, and keeps no more than its part of what the store said is left. So a switch grants no second
 * burst, and the parts of all processes add up to no more than what was left.
 */
export class StandIn {
  readonly #memory: MemoryStore
  readonly #capacities = new WeakMap<FleetCounter, Capacities>()

  constructor(memory: MemoryStore) {
    this.#memory = memory
  }

  /** Follows what the store has judged. */
  follow(charges: readonly SharedCharge[], allowed: boolean, now: number): void {
    for (const charge of charges) {
      if (charge.cost > 0 && isCountedHere(charge)) this.#follow(charge, allowed && charge.fits, now)
    }
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

  #follow(charge: SharedCharge, isCounted: boolean, now: number): void {
    const { table, counter, key, cost } = charge
    const slot = this.#memory.slotFor(table, key, now)
    if (slot === undefined) return
    charge.slot = slot
    const state = table.state(slot)
    const base = table.base(slot)
    const { here, fleet } = this.#capacitiesOf(counter, table)
    const own = isCounted ? cost : 0
    for (let level = 0; level < table.meters.length; level++) {
      const meter = table.meters[level]!
      const at = base + table.offsets[level]!
      if (meter.held) {
        if (own > 0) meter.take(state, at, now, own, 0)
        continue
      }
      const part = Math.floor((charge.remaining[level]! * here[level]!) / fleet[level]!)
      const left = Math.max(0, part - Math.floor(here[level]! / MARGIN))
      if (left === 0 && meter.drain) {
        meter.drain(state, at, now)
        continue
      }
      const room = meter.remaining(state, at, now)
      if (own > room && meter.delay(state, at, now, own) === 0) {
        // it counts something else than permits
        meter.take(state, at, now, own, 0)
        continue
      }
      // beyond the whole permits there may be a fraction of one
      const spare = meter.drain ? room - left + 1 : room - left
      const gone = Math.min(room, Math.max(own, spare))
      if (gone > 0) meter.take(state, at, now, gone, 0)
    }
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
    const rest = charges.filter(charge => !isCountedHere(charge))
    for (const charge of rest) fill(charge, charge.emergency === 'refuse')
    const isShut = rest.some(({ fits, enforced }) => !fits && enforced)
    const takes = counting && !isShut
    const allowed = takes ? this.#memory.take(local, local.length, now) : this.#memory.look(local, local.length, now)
    counted.forEach((charge, i) => {
      const { delays, wait, fits, remaining, resets, slot } = local[i]!
      Object.assign(charge, { delays, wait, fits, remaining, resets, slot, countedBy: 'memory', moment: now + wait })
    })
    return allowed && !isShut
  }
}

function capacityOf(meter: Meter): number {
  return meter.remaining(new Float64Array(meter.slots), 0, 0)
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
