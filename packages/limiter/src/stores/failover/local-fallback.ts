import { capacityOf, type Meter } from '../../algorithms/algorithm.ts'
import { type CatchUp, costLasting, isBlock, isWindow, record } from '../catch-up.ts'
import { type LocalCharge, localCharge, type MemoryStore } from '../memory/memory-store.ts'
import { OVERFLOW_SLOT, type Table } from '../memory/table.ts'
import { isCountedHere, type SharedCharge } from '../shared-charge.ts'
import type { FleetCounter } from '../store.ts'
import type { Backlog } from './backlog.ts'
import { LateAllowance } from './late-allowance.ts'
import { SeenCounts } from './seen-counts.ts'

/** What the meters here and those of the whole fleet admit to a key never seen. */
interface Capacities {
  readonly meters: readonly Meter[]
  readonly here: readonly number[]
  readonly fleet: readonly number[]
  readonly late: LateAllowance
}

/** What is known of the processes that count together. */
export interface FleetView {
  /** Whether this process may take its part of limits that are dealt out. */
  readonly hasShare: boolean
  /** Whether there are no others. */
  readonly isAlone: boolean
}

/** One in so many permits is left to what others are admitted between the last answer and an outage. */
const MARGIN = 20
const SHORT_US = 10_000_000
/** A call that was refused because an answer is late may be tried again after so long. */
const RETRY_US = 1_000_000
/** A store that has lost its memory is told of so many keys by each process; more would take too long. */
const MOST_KNOWN = 50_000

/**
 * Judges calls in this process while the store cannot be asked. As long as it can, this follows along: it counts what
 * this process was admitted, and keeps no more than its part of what the store said is left. So a switch grants no second
 * burst, and the parts of all processes add up to no more than what was left.
 */
export class LocalFallback {
  readonly #memory: MemoryStore
  readonly #backlog: Backlog
  readonly #fleet: FleetView
  readonly #capacities = new WeakMap<FleetCounter, Capacities>()
  readonly #seen = new WeakMap<FleetCounter, SeenCounts>()
  readonly #seenByTable = new WeakMap<Table, SeenCounts>()
  #counters: WeakRef<FleetCounter>[] = []
  /** When a call was last decided here, and how long before the last answer of the store that was. */
  #decidedAt = Number.NEGATIVE_INFINITY
  #calmUs = Number.POSITIVE_INFINITY
  #awayAt = 0
  #wasStalled = false

  constructor(memory: MemoryStore, backlog: Backlog, fleet: FleetView = { hasShare: true, isAlone: true }) {
    this.#memory = memory
    this.#backlog = backlog
    this.#fleet = fleet
  }

  /** Follows what the store has judged; `isCounted` tells that this process has counted the call already. */
  follow(charges: readonly SharedCharge[], allowed: boolean, isCounted: boolean, now: number): void {
    for (const charge of charges) {
      if (!isCountedHere(charge)) continue
      if (charge.cost === 0) this.#followBlock(charge, now)
      else this.#follow(charge, allowed && charge.fits, isCounted, now)
    }
  }

  /** Counts permits that this process holds in advance, and the store has set aside: it may use them beside its share. */
  hold(charge: SharedCharge, now: number): void {
    if (charge.cost === 0 || !isCountedHere(charge)) return
    const slot = this.#slotFor(charge, now)
    if (slot === undefined) return
    charge.slot = slot
    const { table } = charge
    table.meters.forEach((meter, level) => {
      if (this.#isDated(meter) && !this.#isWhole(charge, level)) this.#followOwn(charge, level, charge.cost, now)
      else {
        const room = meter.remaining(table.state(slot), table.base(slot) + table.offsets[level]!, now)
        this.#keepAtMost(charge, slot, level, room - charge.cost, now)
      }
    })
  }

  /** Takes note of what the store says of a call that was judged here meanwhile. */
  see(charge: SharedCharge, now: number): void {
    const slot = this.#slotFor(charge, now)
    if (slot === undefined || (slot === OVERFLOW_SLOT && charge.key !== '')) return
    const { remaining, resets, cost } = charge
    this.#seenOf(charge.counter, charge.table, now).see(slot, { remaining, resets, own: cost }, now)
  }

  /** Takes note of what the store says while processes are still to report what it missed. */
  #seePartly({ counter, table, slot, key, cost, remaining }: SharedCharge, isAdmitted: boolean, now: number): void {
    if (slot === OVERFLOW_SLOT && key !== '') return
    const seen = this.#seenOf(counter, table, now)
    if (isAdmitted) seen.count(slot, cost, now)
    seen.seeAtLeast(slot, remaining, now)
  }

  /**
   * The store is away, and was so at `awayAt`. What other processes were admitted between its last answer here and that moment is
   * not known here, so nothing that time has brought back until then may be admitted again. Of a process that was stalled
   * meanwhile, others may also have used what was left.
   */
  begin(awayAt: number, wasStalled: boolean): void {
    this.#awayAt = awayAt
    this.#wasStalled = wasStalled
  }

  /** Judges all charges at once: every one is counted, or, if one refuses, none. */
  take(charges: readonly SharedCharge[], now: number): boolean {
    return this.#judge(charges, now, true)
  }

  /** Whether the store has said lately what is left of every charge that is counted. */
  knows(charges: readonly SharedCharge[], now: number): boolean {
    return charges.every(charge => {
      if (!isCountedHere(charge) || charge.cost === 0) return true
      const { table, key, counter } = charge
      if (charge.whenStoreDown === 'share' && !this.#fleet.hasShare) return false
      const slot = table.find(key)
      return (slot !== OVERFLOW_SLOT || key === '') && this.#capacitiesOf(counter, table).late.isKnown(slot, now)
    })
  }

  /** Judges all charges by what the store last said is left, if it is not away, and counts every one or none. */
  takeLate(charges: readonly SharedCharge[], now: number): boolean {
    const counted = charges.filter(charge => isCountedHere(charge) && charge.cost > 0)
    const short = counted.filter(charge => charge.enforced && !this.#coversLate(charge, now))
    if (short.length > 0) {
      this.look(charges, now)
      for (const charge of short) refuseFor(charge, RETRY_US)
      return false
    }
    if (!this.take(charges, now)) return false
    for (const { counter, table, key, cost } of counted) {
      this.#capacitiesOf(counter, table).late.spend(table.find(key), cost)
    }
    return true
  }

  /** Whether what the store last said is left covers a charge. If it has said nothing, others may have used up the limit. */
  #coversLate(charge: SharedCharge, now: number): boolean {
    const { counter, table, key, cost } = charge
    if (this.knows([charge], now)) return this.#capacitiesOf(counter, table).late.covers(table.find(key), cost, now)
    return charge.whenStoreDown === 'local' || this.#fleet.isAlone
  }

  /** Judges all charges without counting any. */
  look(charges: readonly SharedCharge[], now: number): boolean {
    return this.#judge(charges, now, false)
  }

  /** Frees the places here of a call that has ended. */
  release({ table, key, slot, cost, resetsBefore }: SharedCharge, now: number): void {
    if ((slot === OVERFLOW_SLOT ? key !== '' : table.find(key) !== slot) || table.isResetSince(key, resetsBefore))
      return
    table.meters.forEach((meter, level) => {
      if (meter.held !== undefined)
        meter.refund(table.state(slot), table.base(slot) + table.offsets[level]!, now, cost, now)
    })
  }

  /** Gives back here what the store gives back. */
  giveBack({ counter, table, key, slot, followedAt }: SharedCharge, cost: number, now: number): void {
    if (followedAt === 0 || (slot === OVERFLOW_SLOT ? key !== '' : table.find(key) !== slot)) return
    this.#seen.get(counter)?.giveBack(slot, cost, followedAt, now)
    table.meters.forEach((meter, level) => {
      if (meter.held === undefined)
        meter.refund(table.state(slot), table.base(slot) + table.offsets[level]!, now, cost, followedAt)
    })
  }

  /** The counts of a key were reset. */
  forget(counter: FleetCounter, key: string): void {
    const seen = this.#seen.get(counter)
    const slot = seen?.table.find(key)
    if (slot !== undefined && (slot !== OVERFLOW_SLOT || key === '')) seen?.clear(slot)
  }

  /** The store was told of calls that this process had admitted. */
  told({ counter, key, levels, unfit }: CatchUp<FleetCounter>, table: Table, now: number): void {
    const slot = table.find(key)
    if (slot === OVERFLOW_SLOT && key !== '') return
    this.#seenOf(counter, table, now).countReported(slot, levels, unfit, now)
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
    return counter.meters.some((meter, level) => isBlock(meter) || levels[level]!.known >= capacityOf(meter))
  }

  *#known(now: () => number): Generator<CatchUp<FleetCounter>> {
    for (const counter of this.#counters.flatMap(one => one.deref() ?? [])) {
      const seen = this.#seen.get(counter)
      if (!seen || counter.needsRelease) continue
      for (const [key, slot] of seen.table.entries()) {
        const levels = seen.known(slot, now()).map((known, level) => {
          const at = seen.table.base(slot) + seen.table.offsets[level]!
          const lasts = costLasting(counter.meters[level]!, seen.table.state(slot), at, now())
          return lasts === undefined ? known : { known: lasts, missing: 0 }
        })
        if (levels.some(({ known }) => known > 0)) yield { counter, key, levels, unfit: [] }
      }
    }
  }

  /** A caller whom the store has blocked stays blocked while it cannot be asked. */
  #followBlock(charge: SharedCharge, now: number): void {
    const { table, counter, key, delays } = charge
    const meter = table.meters[0]!
    if (!isBlock(meter) || !(delays[0]! > 0)) return
    const slot = this.#slotFor(charge, now)
    if (slot === undefined) return
    this.#seenOf(counter, table, now)
    if (slot !== OVERFLOW_SLOT || key === '')
      meter.take(table.state(slot), table.base(slot), now, meter.costLasting(delays[0]!), 0)
  }

  #follow(charge: SharedCharge, isAdmitted: boolean, isCounted: boolean, now: number): void {
    const { table, counter, cost } = charge
    this.#calmUs = now - this.#decidedAt
    const slot = this.#slotFor(charge, now)
    if (slot === undefined) return
    charge.slot = slot
    charge.followedAt = now
    const state = table.state(slot)
    const base = table.base(slot)
    const { here, fleet, late } = this.#capacitiesOf(counter, table)
    if (!counter.needsRelease && isCounted) {
      this.#seePartly(charge, isAdmitted, now)
    } else if (!counter.needsRelease && (slot !== OVERFLOW_SLOT || charge.key === '')) {
      const { remaining, resets } = charge
      this.#seenOf(counter, table, now).see(slot, { remaining, resets, own: isAdmitted ? cost : 0 }, now)
    }
    const reference = late.begin(slot, now)
    const own = isAdmitted && !isCounted ? cost : 0
    for (let level = 0; level < table.meters.length; level++) {
      const meter = table.meters[level]!
      const at = base + table.offsets[level]!
      const isWhole = this.#isWhole(charge, level)
      const part = Math.floor((charge.remaining[level]! * here[level]!) / fleet[level]!)
      // a process that has the whole limit to itself need not reckon with others
      const left = isWhole ? part : Math.max(0, part - Math.ceil(here[level]! / MARGIN))
      late.note(slot, level, left, newestOf(charge, level, meter, now), reference)
      if (meter.held !== undefined) {
        if (own > 0) meter.take(state, at, now, own, 0)
        continue
      }
      if (isCounted) this.#backlog.follow(charge, level, cost, now)
      if (this.#isDated(meter) && !isWhole) {
        this.#followOwn(charge, level, own, now)
        continue
      }
      if (left === 0 && meter.rate?.drain && !isWhole) {
        meter.rate.drain(state, at, now)
        continue
      }
      meter.rate?.start?.begin(state, at, now)
      const room = meter.remaining(state, at, now)
      if (own > room && meter.delay(state, at, now, own) === 0) {
        // it counts something else than permits
        meter.take(state, at, now, own, 0)
        continue
      }
      // beyond the whole permits there may be a fraction of one
      const spare = meter.rate?.drain && !isWhole ? room - left + 1 : room - left
      const gone = Math.min(room, Math.max(own, spare))
      if (gone <= 0) continue
      meter.take(state, at, now, gone, 0)
      this.#backlog.follow(charge, level, gone, now)
    }
  }

  /**
   * Counts a call of this process in a window, even beyond its share: the calls that leave the window are then its own, and all
   * processes together admit again what has left, whichever of them had admitted it.
   */
  #followOwn(charge: SharedCharge, level: number, own: number, now: number): void {
    const { table, slot } = charge
    const meter = table.meters[level]!
    const at = table.base(slot) + table.offsets[level]!
    // what the store has not counted yet is known only within the share
    const counted = this.#backlog.owes(charge) ? Math.min(own, meter.remaining(table.state(slot), at, now)) : own
    if (counted <= 0) return
    record(meter, table.state(slot), at, now, counted)
    this.#backlog.follow(charge, level, counted, now)
  }

  /** This process takes a larger part now: of no key more than that part of what the store last said is left. */
  reshare(now: number): void {
    for (const counter of this.#counters.flatMap(one => one.deref() ?? [])) {
      const seen = this.#seen.get(counter)
      if (!seen || counter.needsRelease) continue
      const { table } = seen
      const { here, fleet } = this.#capacitiesOf(counter, table)
      for (const [key, slot] of table.entries()) {
        seen.used(slot, now).forEach((used, level) => {
          const meter = table.meters[level]
          if (used <= 0 || !meter || isBlock(meter)) return
          const at = table.base(slot) + table.offsets[level]!
          const left = Math.floor((Math.max(0, fleet[level]! - used) * here[level]!) / fleet[level]!)
          const gone = meter.remaining(table.state(slot), at, now) - left
          if (gone <= 0) return
          meter.take(table.state(slot), at, now, gone, 0)
          this.#backlog.follow({ counter, key, table }, level, gone, now)
        })
      }
    }
  }

  /** The slot of a key that is followed here; none if there is no room for it. */
  #slotFor({ table, key, counter }: SharedCharge, now: number): number | undefined {
    const known = table.find(key)
    if (known !== OVERFLOW_SLOT || key === '') return known
    const slot = this.#memory.slotFor(table, key, now)
    if (slot !== undefined) {
      this.#seenByTable.get(table)?.clear(slot)
      this.#capacitiesOf(counter, table).late.clear(slot)
    }
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
    const here = meters.map(capacityOf)
    const capacities = { meters, here, fleet: counter.meters.map(capacityOf), late: lateAllowanceFor(here, known) }
    this.#capacities.set(counter, capacities)
    return capacities
  }

  /** Whether this process has the whole limit to itself. */
  #isWhole({ counter, table, whenStoreDown }: SharedCharge, level: number): boolean {
    const { here, fleet } = this.#capacitiesOf(counter, table)
    return here[level] === fleet[level] && (this.#fleet.isAlone || whenStoreDown === 'local')
  }

  #judge(charges: readonly SharedCharge[], now: number, counting: boolean): boolean {
    const { hasShare } = this.#fleet
    const isCounted = (charge: SharedCharge): boolean =>
      isCountedHere(charge) && (hasShare || charge.whenStoreDown !== 'share')
    const counted = charges.filter(isCounted)
    const local = counted.map(({ table, key, cost, enforced, mayWait }): LocalCharge => {
      return { ...localCharge(table), key, cost, enforced, mayWait }
    })
    const isNew = counting ? counted.map(({ table, key }) => key !== '' && table.find(key) === OVERFLOW_SLOT) : []
    const rest = charges.filter(charge => !isCounted(charge))
    for (const charge of rest) fill(charge, charge.whenStoreDown !== 'allow')
    for (const charge of counted) {
      this.#leaveOthersShares(charge)
      this.#leaveToOthers(charge)
    }
    const beyond = counted.filter(charge => charge.enforced && this.#isBeyondSeen(charge, now))
    const isShut = beyond.length > 0 || rest.some(({ fits, enforced }) => !fits && enforced)
    const takes = counting && !isShut
    const allowed = takes ? this.#memory.take(local, local.length, now) : this.#memory.look(local, local.length, now)
    counted.forEach((charge, i) => {
      const { delays, wait, fits, remaining, resets, slot } = local[i]!
      Object.assign(charge, { delays, wait, fits, remaining, resets, slot, countedBy: 'memory', moment: now + wait })
      if (!isNew[i] || slot === OVERFLOW_SLOT) return
      this.#seenByTable.get(charge.table)?.clear(slot)
      this.#capacitiesOf(charge.counter, charge.table).late.clear(slot)
    })
    for (const charge of beyond) refuseFor(charge, RETRY_US)
    if (takes) this.#decidedAt = now
    return allowed && !isShut
  }

  /**
   * Whether the calls of a window are counted here as of their own moments, each process its own. Not within a period after calls
   * were decided without the store: it counts those as of their report, and no process knows the moments of the others' calls.
   */
  #isDated(meter: Meter): boolean {
    return isWindow(meter) && this.#calmUs >= (meter.rate?.windowUs ?? 0)
  }

  /**
   * Keeps of a key's windows no more than this process's share of what the store last said is left: what it has not used of its
   * share itself was used by others, as late as the last call that the store had counted.
   */
  #leaveOthersShares(charge: SharedCharge): void {
    const { counter, table, key, cost } = charge
    if (cost === 0 || counter.needsRelease) return
    const slot = table.find(key)
    if (slot === OVERFLOW_SLOT && key !== '') return
    const { late } = this.#capacitiesOf(counter, table)
    for (let level = 0; level < table.meters.length; level++) {
      const meter = table.meters[level]!
      const said = late.unsettled(slot, level)
      if (!said || !this.#isDated(meter) || this.#isWhole(charge, level)) continue
      const at = table.base(slot) + table.offsets[level]!
      const gone = meter.remaining(table.state(slot), at, said.saidAt) - Math.floor(said.left)
      if (gone <= 0) continue
      // a window that ends all at once has one moment for all of its calls, and that may be before it begins here
      const moment = meter.rate?.endsAt ? said.saidAt : Math.min(said.newest, said.saidAt)
      record(meter, table.state(slot), at, moment, gone)
      this.#backlog.follow(charge, level, gone, moment)
    }
    late.settled(slot)
  }

  /** Keeps of a key no more than what the store last said is left, less what others have used until it went away. */
  #leaveToOthers(charge: SharedCharge): void {
    const { counter, table, key, cost } = charge
    if (cost === 0 || counter.needsRelease || (this.#fleet.isAlone && charge.whenStoreDown === 'share')) return
    const slot = table.find(key)
    if (slot === OVERFLOW_SLOT && key !== '') return
    const { here, fleet, late } = this.#capacitiesOf(counter, table)
    const since = this.#awayAt
    const saidAt = late.saidBefore(slot, since)
    if (saidAt === 0) return
    for (let level = 0; level < table.meters.length; level++) {
      const meter = table.meters[level]!
      if (isBlock(meter) || (here[level] === fleet[level] && charge.whenStoreDown === 'local')) continue
      const left = this.#wasStalled ? late.leftAt(slot, level, since) : late.expectedAt(slot, level, since)
      this.#keepAtMost(charge, slot, level, this.#wasStalled && isShort(meter) ? 0 : Math.floor(left), since)
    }
    late.catchUp(slot, since)
  }

  /** Lets a key have no more than `left` permits of a level at `now`, and no part of another one. */
  #keepAtMost(charge: SharedCharge, slot: number, level: number, left: number, now: number): void {
    const { table } = charge
    const meter = table.meters[level]!
    const state = table.state(slot)
    const at = table.base(slot) + table.offsets[level]!
    if (left <= 0 && meter.rate?.drain) {
      meter.rate.drain(state, at, now)
      return
    }
    const room = meter.remaining(state, at, now)
    const gone = Math.min(room, meter.rate?.drain ? room - left + 1 : room - left)
    if (gone <= 0) return
    meter.take(state, at, now, gone, 0)
    this.#backlog.follow(charge, level, gone, now)
  }

  /**
   * Whether a call would exceed this process's part of what the store has left as far as this process saw it counting. The
   * count here alone cannot tell: it forgets this process's calls when they are a period old, and others may have called
   * later.
   */
  #isBeyondSeen(charge: SharedCharge, now: number): boolean {
    const { counter, table, key, cost } = charge
    const seen = this.#seen.get(counter)
    if (cost === 0 || !seen || seen.table !== table) return false
    const slot = table.find(key)
    if (slot === OVERFLOW_SLOT && key !== '') return false
    const { here, fleet } = this.#capacitiesOf(counter, table)
    const used = seen.used(slot, now)
    const owed = this.#backlog.owed(charge, now)
    return table.meters.some((meter, level) => {
      if (meter.held !== undefined || isBlock(meter) || meter.maxWaitUs > 0 || here[level]! >= fleet[level]!)
        return false
      if (this.#isDated(meter)) return false
      const part = Math.floor(((fleet[level]! - used[level]!) * here[level]!) / fleet[level]!)
      return (owed[level]?.missing ?? 0) + cost > part
    })
  }
}

/** What was said of keys holds for a process that takes another share, too. */
function lateAllowanceFor(here: readonly number[], known: Capacities | undefined): LateAllowance {
  if (known?.here.length !== here.length || known.here.includes(0)) return new LateAllowance(here.length)
  known.late.rescale(here.map((capacity, level) => capacity / known.here[level]!))
  return known.late
}

/** When the store has counted the last call of a window; now, if it does not say when all will be free again. */
function newestOf({ resets }: SharedCharge, level: number, { rate }: Meter, now: number): number {
  const resetUs = resets[level] ?? 0
  return resetUs > 0 ? Math.min(now, now + resetUs - (rate?.windowUs ?? 0)) : now
}

/** Whether a limit is soon whole again, so that others may have used all of it in a moment, and little is lost without it. */
function isShort({ migrate }: Meter): boolean {
  const periodUs = migrate?.scale[0]
  return periodUs !== undefined && periodUs <= SHORT_US
}

/** Refuses a charge that might fit, since it is not known whether it does. */
function refuseFor(charge: SharedCharge, us: number): void {
  charge.fits = false
  charge.wait = Math.max(charge.wait, us)
  charge.delays[0] = Math.max(charge.delays[0] ?? 0, us)
}

/** What a rule says that counts nothing. */
function fill(charge: SharedCharge, refuses: boolean): void {
  const delay = refuses ? Number.POSITIVE_INFINITY : 0
  charge.wait = delay
  charge.fits = !refuses
  charge.countedBy = 'none'
  charge.counter.meters.forEach((_, level) => {
    charge.delays[level] = delay
    charge.remaining[level] = 0
    charge.resets[level] = 0
  })
}
