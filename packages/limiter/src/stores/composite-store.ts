import type { Meter, Overrun, Part } from '../algorithms/algorithm.ts'
import { countingStatus } from './counting/counting-status.ts'
import type { FailoverStore } from './failover/failover-store.ts'
import type { StoreStats, StoreStatus } from './failover/store-health.ts'
import { refundLocal } from './memory/refund-local.ts'
import type { Table } from './memory/table.ts'
import type { SharedCharge } from './shared-charge.ts'
import type { FleetCounter, FleetRule } from './store.ts'

/** The parts of a rule that its store depends on. */
interface SharedRule {
  /** True if the rule is counted for the whole fleet. */
  readonly distributed: boolean
  readonly meters: readonly Meter[]
}

/** The stores of rules that are shared with other processes. */
export interface CompositeStoreOptions {
  /** For the whole fleet. */
  readonly fleet?: FailoverStore | undefined
  /** For the processes of this machine. */
  readonly machine?: FailoverStore | undefined
}

/** Both stores as one: each decides its own rules, the machine's store first; if the fleet's store refuses, nothing is counted. */
export class CompositeStore {
  readonly #stores: CompositeStoreOptions
  readonly #ofMachine = new WeakSet<FleetCounter>()

  constructor(stores: CompositeStoreOptions) {
    this.#stores = stores
  }

  get fleetStatus(): StoreStatus | undefined {
    return this.#stores.fleet?.status
  }

  get machineStatus(): StoreStatus | undefined {
    return this.#stores.machine && countingStatus(this.#stores.machine.status)
  }

  /** How calls with rules of the whole fleet were decided. */
  get fleetStats(): StoreStats | undefined {
    return this.#stores.fleet?.stats
  }

  async start(): Promise<void> {
    await Promise.all(this.#all().map(store => store.start()))
  }

  async close(): Promise<void> {
    await Promise.all(this.#all().map(store => store.close()))
  }

  /** Undefined if the rule is counted in this process alone. */
  createCounter(rule: FleetRule & SharedRule): FleetCounter | undefined {
    const counter = this.#storeFor(rule)?.createCounter(rule)
    if (counter && !rule.distributed) this.#ofMachine.add(counter)
    return counter
  }

  /** This process's share of a rule's limits while its store cannot be asked; undefined if it is counted here anyway. */
  partOf(rule: SharedRule): Part | undefined {
    return this.#storeFor(rule)?.part
  }

  /** Decides all charges at once: all are counted, or, if one refuses, none. */
  take(charges: readonly SharedCharge[], now: number): boolean | Promise<boolean> {
    const { machineCharges, fleetCharges } = this.#split(charges)
    if (fleetCharges.length === 0) return this.#stores.machine!.take(machineCharges, now)
    return machineCharges.length === 0
      ? this.#stores.fleet!.take(fleetCharges, now)
      : this.#takeBoth(machineCharges, fleetCharges, now)
  }

  async look(charges: readonly SharedCharge[], now: number): Promise<boolean> {
    const { machineCharges, fleetCharges } = this.#split(charges)
    const allowed = await Promise.all([
      machineCharges.length === 0 || this.#stores.machine!.look(machineCharges, now),
      fleetCharges.length === 0 || this.#stores.fleet!.look(fleetCharges, now),
    ])
    return allowed.every(Boolean)
  }

  giveBack(charge: SharedCharge, cost: number): void {
    this.#storeOf(charge.counter).giveBack(charge, cost)
  }

  /** Whether the store of a charge keeps reservations, and was asked about this one. */
  settles({ counter, countedBy }: SharedCharge): boolean {
    return (countedBy === 'fleet' || countedBy === 'lease') && this.#storeOf(counter).keepsReservations
  }

  /** Settles a reservation at what was really used. */
  settle(charge: SharedCharge, actual: number, overrun: Overrun): Promise<void> {
    return this.#storeOf(charge.counter).settle(charge, actual, overrun)
  }

  /** A reservation was not settled in time. */
  expire(charge: SharedCharge): void {
    this.#storeOf(charge.counter).expire(charge)
  }

  /** The keys of a counter, at most `most`; while its store cannot be asked, those known in this process. */
  async keys(counter: FleetCounter, table: Table, most: number): Promise<string[]> {
    return await this.#storeOf(counter).keys(counter, table, most)
  }

  /** How many permits of a rule this process holds in advance, of one key or of all; undefined if it never does. */
  leasedOf(counter: FleetCounter, key?: string): number | undefined {
    return this.#storeOf(counter).leasedOf(counter, key)
  }

  async reset(counter: FleetCounter, key: string): Promise<void> {
    await this.#storeOf(counter).reset(counter, key)
  }

  /** The rules have changed: what was known of their keys may be wrong. */
  reconsider(): void {
    for (const store of this.#all()) store.reconsider()
  }

  async #takeBoth(
    machineCharges: readonly SharedCharge[],
    fleetCharges: readonly SharedCharge[],
    now: number,
  ): Promise<boolean> {
    if (!(await this.#stores.machine!.take(machineCharges, now))) return false
    if (await this.#stores.fleet!.take(fleetCharges, now)) return true
    for (const charge of machineCharges) this.#undo(charge, now)
    await this.#stores.machine!.look(machineCharges, now)
    return false
  }

  #undo(charge: SharedCharge, now: number): void {
    const { fits, cost, countedBy, counter } = charge
    if (!fits || cost === 0 || countedBy === 'none') return
    if (countedBy !== 'memory' || counter.needsRelease) this.giveBack(charge, cost)
    else refundLocal(charge, now, 'all')
  }

  #all(): FailoverStore[] {
    return [this.#stores.fleet, this.#stores.machine].filter(store => store !== undefined)
  }

  #storeFor({ distributed, meters }: SharedRule): FailoverStore | undefined {
    // what a process learns of the service by its own calls holds for this process only
    if (meters.some(meter => meter.held?.learns !== undefined)) return undefined
    return distributed ? this.#stores.fleet : this.#stores.machine
  }

  #storeOf(counter: FleetCounter): FailoverStore {
    return (this.#ofMachine.has(counter) ? this.#stores.machine : this.#stores.fleet)!
  }

  #split(charges: readonly SharedCharge[]): {
    machineCharges: readonly SharedCharge[]
    fleetCharges: readonly SharedCharge[]
  } {
    if (this.#stores.machine === undefined) return { machineCharges: [], fleetCharges: charges }
    if (this.#stores.fleet === undefined) return { machineCharges: charges, fleetCharges: [] }
    const machineCharges = charges.filter(({ counter }) => this.#ofMachine.has(counter))
    return { machineCharges, fleetCharges: charges.filter(({ counter }) => !this.#ofMachine.has(counter)) }
  }
}
