import { fullAt, type Meter, type Overrun, type PassResult } from '../../algorithms/algorithm.ts'
import { attempt, type Repeated, repeat } from '../../common/background.ts'
import { blankCharge, type Charge } from '../charge.ts'
import { delayBeside } from './delay-beside.ts'
import { OVERFLOW_SLOT, Table } from './table.ts'

const passResult: PassResult = { delay: 0, remaining: 0, idleAt: 0 }
const SWEEP_PER_NEW_KEY = 2
const SWEEP_WHEN_FULL = 64
/** A key is kept a little longer than necessary, unless room is needed: a recent caller may call again. */
const LINGER_US = 10_000_000

/** A charge to one key's counts in this process. */
export interface LocalCharge extends Charge {
  readonly kind: 'local'
  table: Table
  /** Where the key is counted. */
  slot: number
  /** The rank of the call's level, from 0 for the lowest to 1 for the highest. */
  priority: number
  /** Permits of the key that processes hold in advance: the call is judged as if they were used. */
  held: number
}

export function localCharge(table: Table): LocalCharge {
  const { key, cost, enforced, mayWait, holdUs, reservation, delays, wait, fits, remaining, resets } = blankCharge()
  // spelled out, since V8 keeps what is spread from another object one step further away
  return {
    kind: 'local',
    key,
    cost,
    enforced,
    mayWait,
    holdUs,
    reservation,
    delays,
    wait,
    fits,
    remaining,
    resets,
    table,
    slot: OVERFLOW_SLOT,
    priority: 0,
    held: 0,
  }
}

/** Counts in this process, decided at once. Holds at most `maxKeys` keys, and forgets none that still matters. */
export class MemoryStore {
  readonly #maxKeys: number
  readonly #tables = new Map<string, Table>()
  #keys = 0
  /** Starts the timer of `sweepEvery` when the first key comes. */
  #beginSweeping: (() => void) | undefined
  #sweeping: MapIterator<Table> | undefined

  constructor(options: { maxKeys?: number | undefined } = {}) {
    this.#maxKeys = options.maxKeys ?? 1_000_000
  }

  get keys(): number {
    return this.#keys
  }

  get maxKeys(): number {
    return this.#maxKeys
  }

  /** Creates the table of one rule, empty. */
  createTable(id: string, meters: readonly Meter[]): Table {
    this.dropTable(id)
    const table = new Table(meters)
    this.#tables.set(id, table)
    return table
  }

  dropTable(id: string): void {
    this.#keys -= this.#tables.get(id)?.keys ?? 0
    this.#tables.delete(id)
  }

  /** The ids of rules whose new keys share one counter because the store is full. */
  overflowing(now: number): string[] {
    return [...this.#tables].filter(([, table]) => table.isOverflowing(now)).map(([id]) => id)
  }

  /** Judges the first `size` charges without counting any. */
  look(charges: readonly LocalCharge[], size: number, now: number): boolean {
    locateAll(charges, size)
    const joined = tryLimits(charges, size, now)
    const allowed = measureAll(charges, size, now)
    for (let i = 0; i < size; i++) report(charges[i]!, now)
    for (const charge of joined) {
      charge.table.forget(charge.key)
      charge.slot = OVERFLOW_SLOT
    }
    return allowed
  }

  /** Judges the first `size` charges at once: all of them are counted, or, if one refuses, none. */
  take(charges: readonly LocalCharge[], size: number, now: number): boolean {
    // most calls are done with here, and what is this short V8 compiles into its caller
    const answer = size === 1 ? this.#takeOne(charges[0]!, now) : passAll(charges, size, now)
    return answer ?? this.#takeStepwise(charges, size, now)
  }

  /** Counts what was used beyond a reservation: beyond the limit, or up to it. */
  overdraw(table: Table, key: string, now: number, cost: number, overrun: Overrun): void {
    const { family } = table
    const isNew = key !== '' && table.find(key) === OVERFLOW_SLOT
    if (family !== undefined && (isNew ? !family.isElsewhere(key, table, now) : family.isMoved(key))) {
      this.#keys -= family.leaveIdle(key, table, now)
    }
    const slot = isNew ? this.#place(table, key, now) : table.find(key)
    if (isNew && slot !== OVERFLOW_SLOT) family?.inherit(key, table, slot, now)
    const counted = table.overdraw(slot, now, cost, overrun)
    if (counted === 0 && isNew && family !== undefined && table.forget(key)) this.#keys--
    if (counted === 0 || family === undefined) return
    if (isNew) this.#keys -= family.join(key, table, now)
    family.overdraw(key, table, now, counted, overrun)
  }

  /** The slot of a key that is counted elsewhere and followed here; none if that would evict keys that are counted here. */
  slotFor(table: Table, key: string, now: number): number | undefined {
    const slot = table.find(key)
    if (slot !== OVERFLOW_SLOT || key === '') return slot
    if (this.#keys * 2 >= this.#maxKeys) this.#keys -= table.sweep(SWEEP_WHEN_FULL, now)
    return this.#keys * 2 >= this.#maxKeys ? undefined : this.#place(table, key, now)
  }

  /** Fast path: decides a charge with one call of `pass`; undefined if that is not enough. */
  #takeOne(charge: LocalCharge, now: number): boolean | undefined {
    if (!locate(charge) && !this.#receive(charge, now)) return undefined
    if (passAt(charge, now)) return true
    return passesLater(charge) ? undefined : !charge.enforced
  }

  /** Gives a new key a slot if its call passes, and none if it is refused; undefined if the fast path cannot decide. */
  #receive(charge: LocalCharge, now: number): boolean {
    const { table, key, slot, cost } = charge
    if (table.swift === undefined || cost === 0 || charge.held > 0 || table.family?.isMoved(key)) return false
    if (table.family?.isElsewhere(key, table, now)) return false
    const delay = table.meters[0]!.delay(table.state(slot), table.base(slot), now, cost)
    if (delay > 0) return true
    if (table.family !== undefined) this.#keys -= table.family.leaveIdle(key, table, now)
    charge.slot = this.#place(table, key, now)
    return true
  }

  #takeStepwise(charges: readonly LocalCharge[], size: number, now: number): boolean {
    for (let i = 0; i < size; i++) if (charges[i]!.table.family !== undefined) this.#join(charges[i]!, now)
    const allowed = measureAll(charges, size, now)
    let hasPlaced = false
    for (let i = 0; i < size; i++) {
      const charge = charges[i]!
      // to make room for a key, its table may have forgotten the idle key of a later charge
      if (hasPlaced) charge.slot = charge.table.find(charge.key)
      const counts = allowed && charge.cost > 0 && (charge.fits || charge.table.countsAll)
      const begins = !counts && charge.cost > 0 && charge.table.begins
      if ((counts || begins) && charge.slot === OVERFLOW_SLOT && charge.key !== '') {
        charge.slot = this.#place(charge.table, charge.key, now)
        hasPlaced = true
      }
      if (counts && charge.table.family?.isEager) this.#joinAll(charge, now)
      if (counts) this.#keys -= count(charge, now)
      else if (begins) begin(charge, now)
      report(charge, now)
    }
    return allowed
  }

  /**
   * Sweeps from time to time, from the first key on; returns a function that ends this. Some runtimes allow no timers before the
   * first request.
   */
  sweepEvery(everyMs: number, count: number, now: () => number): () => void {
    let sweeping: Repeated | undefined
    const begin = (): void => {
      this.#beginSweeping = undefined
      sweeping = repeat('counts in memory', everyMs, () => {
        this.sweep(count, now())
        if (this.#keys > 0) return
        // tests of applications run all timers until there are none
        sweeping?.stop()
        this.#beginSweeping = begin
      })
    }
    this.#beginSweeping = begin
    return () => {
      this.#beginSweeping = undefined
      sweeping?.stop()
    }
  }

  /** Frees forgotten keys among the next `count`, over all tables in turn. */
  sweep(count: number, now: number): void {
    for (let left = count; left > 0; left--) {
      this.#sweeping ??= this.#tables.values()
      const { value: table } = this.#sweeping.next()
      if (table === undefined) {
        this.#sweeping = undefined
        continue
      }
      // a large table must not have to wait its turn among many small ones
      const share = Math.min(left, table.keys, Math.max(SWEEP_WHEN_FULL, table.keys >> 4))
      // its counts stay: to drop them would free its callers of their limits
      attempt('counts in memory', () => {
        this.#keys -= table.sweep(share, now - LINGER_US)
      })
      left -= share
    }
  }

  /** Gives a key that was counted by another limit of its rule a slot with what it has used. */
  #join(charge: LocalCharge, now: number): void {
    const { table, key, cost } = charge
    const family = table.family!
    if (key === '' || cost === 0) return
    if (charge.slot === OVERFLOW_SLOT ? !family.isElsewhere(key, table, now) : family.isMoved(key)) {
      this.#keys -= family.leaveIdle(key, table, now)
    }
    if (charge.slot !== OVERFLOW_SLOT || !family.isElsewhere(key, table, now)) return
    charge.slot = this.#place(table, key, now)
    if (charge.slot === OVERFLOW_SLOT) return
    family.inherit(key, table, charge.slot, now)
    this.#keys -= family.join(key, table, now)
  }

  /** Gives a key slots in the tables of all limits that count it from its first call on. */
  #joinAll({ table, key, slot }: LocalCharge, now: number): void {
    if (slot === OVERFLOW_SLOT) return
    const others = table.family!.othersFor(key, table)
    for (const other of others) if (other.find(key) === OVERFLOW_SLOT) this.#place(other, key, now)
    const placed = others.filter(other => other.find(key) !== OVERFLOW_SLOT)
    for (const other of placed) table.family!.inherit(key, other, other.find(key), now, table)
    if (placed.length > 0) table.family!.joinAll(key, table, placed, now)
  }

  #place(table: Table, key: string, now: number): number {
    this.#beginSweeping?.()
    this.#keys -= table.sweep(SWEEP_PER_NEW_KEY, now - LINGER_US)
    if (this.#keys >= this.#maxKeys) this.#keys -= table.sweep(SWEEP_WHEN_FULL, now)
    if (this.#keys >= this.#maxKeys) return table.addToOverflow()
    const slot = table.add(key, now)
    if (slot !== OVERFLOW_SLOT) this.#keys++
    return slot
  }
}

/** Finds the slot of a key, and returns whether the fast path applies. */
function locate(charge: LocalCharge): boolean {
  const { table, key } = charge
  const slot = table.find(key)
  charge.slot = slot
  // a new key needs a slot first, and one with several limits is counted by all of them
  if (table.family?.isMoved(key)) return false
  return table.swift !== undefined && charge.held === 0 && charge.cost > 0 && (slot !== OVERFLOW_SLOT || key === '')
}

function locateAll(charges: readonly LocalCharge[], size: number): boolean {
  let inOneMove = true
  for (let i = 0; i < size; i++) if (!locate(charges[i]!)) inOneMove = false
  return inOneMove
}

/** Fast path: counts all charges if they pass at once; otherwise counts none. */
function passAll(charges: readonly LocalCharge[], size: number, now: number): true | undefined {
  if (!locateAll(charges, size)) return undefined
  // whether the last one passes its move shows, so it comes first
  for (let i = size - 2; i >= 0; i--) if (!passesNow(charges[i]!, now)) return undefined
  for (let i = size - 1; i >= 0; i--) if (!passAt(charges[i]!, now)) return undefined
  return true
}

function passesNow({ table, slot, cost }: LocalCharge, now: number): boolean {
  return table.meters[0]!.delay(table.state(slot), table.base(slot), now, cost) === 0
}

function passesLater({ mayWait, wait, table }: LocalCharge): boolean {
  return mayWait && wait <= table.meters[0]!.maxWaitUs
}

/** Counts a charge if it passes at once, and returns whether it did. */
function passAt(charge: LocalCharge, now: number): boolean {
  const { table, slot } = charge
  const passes = table.swift!.pass(table.state(slot), table.base(slot), now, charge.cost, passResult)
  const delay = passes ? 0 : passResult.delay
  charge.fits = passes
  charge.wait = delay
  charge.delays[0] = delay
  charge.remaining[0] = passResult.remaining
  charge.resets[0] = passResult.idleAt > now ? passResult.idleAt - now : 0
  return passes
}

/** Gives keys that have another limit now slots with what they have used; returns the charges whose slots are to be freed again. */
function tryLimits(charges: readonly LocalCharge[], size: number, now: number): LocalCharge[] {
  const joined: LocalCharge[] = []
  for (let i = 0; i < size; i++) {
    const charge = charges[i]!
    const { table, key, slot } = charge
    if (table.family === undefined || slot !== OVERFLOW_SLOT || key === '') continue
    if (!table.family.isElsewhere(key, table, now)) continue
    charge.slot = table.add(key, now)
    if (charge.slot === OVERFLOW_SLOT) continue
    table.family.inherit(key, table, charge.slot, now)
    joined.push(charge)
  }
  return joined
}

/** Takes a charge from every level; returns how many slots the key has left. */
function count({ table, key, slot, cost, wait, priority }: LocalCharge, now: number): number {
  if (table.past.length > 0) table.record(slot, now, cost, wait)
  const state = table.state(slot)
  const base = table.base(slot)
  for (let level = 0; level < table.meters.length; level++) {
    table.meters[level]!.take(state, base + table.offsets[level]!, now, cost, wait, priority)
  }
  return table.family === undefined ? 0 : table.family.record(key, table, now, cost, wait)
}

/** Stores that a key was first seen at `now`, in every level that gains from it. */
function begin({ table, slot }: LocalCharge, now: number): void {
  const state = table.state(slot)
  const base = table.base(slot)
  for (let level = 0; level < table.meters.length; level++) {
    table.meters[level]!.rate?.start?.begin(state, base + table.offsets[level]!, now)
  }
  for (const { meters, offsets } of table.past) {
    meters.forEach((meter, level) => void meter.rate?.start?.begin(state, base + offsets[level]!, now))
  }
}

function measureAll(charges: readonly LocalCharge[], size: number, now: number): boolean {
  let allowed = true
  for (let i = 0; i < size; i++) {
    const charge = charges[i]!
    measure(charge, now)
    if (!charge.fits && charge.enforced) allowed = false
  }
  return allowed
}

/** Asks every level of a charge how long the call would have to wait. */
function measure(charge: LocalCharge, now: number): void {
  const { table, cost, delays, slot } = charge
  const state = table.state(slot)
  const base = table.base(slot)
  let wait = 0
  let fits = true
  for (let level = 0; level < table.meters.length; level++) {
    const meter = table.meters[level]!
    const at = base + table.offsets[level]!
    let delay =
      charge.held === 0
        ? meter.delay(state, at, now, cost, charge.priority)
        : delayBeside(charge.held, { meter, state, at }, now, cost)
    if (table.family !== undefined) delay = table.family.delayOf(charge.key, table, now, cost, delay)
    delays[level] = delay
    if (delay > wait) wait = delay
    if (delay > (charge.mayWait ? meter.maxWaitUs : 0)) fits = false
  }
  charge.wait = wait
  charge.fits = fits
}

/** Reads what every level of a charge has left. */
function report(charge: LocalCharge, now: number): void {
  const { table, slot, held, remaining, resets } = charge
  const state = table.state(slot)
  const base = table.base(slot)
  for (let level = 0; level < table.meters.length; level++) {
    const meter = table.meters[level]!
    const at = base + table.offsets[level]!
    const left = meter.remaining(state, at, now, charge.priority)
    const beside = held === 0 ? left : Math.max(0, left - held)
    remaining[level] = table.family === undefined ? beside : table.family.remainingOf(charge.key, table, now, beside)
    resets[level] = Math.max(0, fullAt(meter, state, at) - now)
  }
}
