import type { Part } from '../algorithms/algorithm.ts'
import { refundLocal } from '../decision/receipt.ts'
import type { CompiledRule } from '../rules/compile.ts'
import type { FailoverStore } from '../stores/failover/failover-store.ts'
import type { StoreStatus } from '../stores/failover/store-health.ts'
import type { Table } from '../stores/memory/table.ts'
import type { SharedCharge } from '../stores/shared-charge.ts'
import type { FleetCounter, FleetRule } from '../stores/store.ts'

/** Where rules are counted that are not counted in this process alone. */
export interface CompositeStoreOptions {
  /** For the whole fleet. */
  readonly fleet?: FailoverStore | undefined
  /** For the processes of this machine. */
  readonly machine?: FailoverStore | undefined
}

/** Both stores as one: each is asked for its own rules, the near one first; where the far one refuses, nothing is counted. */
export class CompositeStore {
  readonly #parts: CompositeStoreOptions
  readonly #ofMachine = new WeakSet<FleetCounter>()

  constructor(parts: CompositeStoreOptions) {
    this.#parts = parts
  }

  get fleetStatus(): StoreStatus | undefined {
    return this.#parts.fleet?.status
  }

  get machineStatus(): StoreStatus | undefined {
    return this.#parts.machine?.status
  }

  async start(): Promise<void> {
    await Promise.all(this.#all().map(store => store.start()))
  }

  async close(): Promise<void> {
    await Promise.all(this.#all().map(store => store.close()))
  }

  /** None where the rule is counted in this process alone. */
  createCounter(rule: FleetRule & Pick<CompiledRule, 'distributed'>): FleetCounter | undefined {
    const counter = this.#storeFor(rule)?.createCounter(rule)
    if (counter && !rule.distributed) this.#ofMachine.add(counter)
    return counter
  }

  /** This process's part of a rule's limits while its store cannot be asked; none where it is counted here anyway. */
  partOf(rule: Pick<CompiledRule, 'distributed'>): Part | undefined {
    return this.#storeFor(rule)?.part
  }

  /** Judges all charges at once: every one is counted, or, if one refuses, none. */
  take(charges: readonly SharedCharge[], now: number): boolean | Promise<boolean> {
    const { near, far } = this.#split(charges)
    if (far.length === 0) return this.#parts.machine!.take(near, now)
    return near.length === 0 ? this.#parts.fleet!.take(far, now) : this.#takeBoth(near, far, now)
  }

  async look(charges: readonly SharedCharge[], now: number): Promise<boolean> {
    const { near, far } = this.#split(charges)
    const allowed = await Promise.all([
      near.length === 0 || this.#parts.machine!.look(near, now),
      far.length === 0 || this.#parts.fleet!.look(far, now),
    ])
    return allowed.every(Boolean)
  }

  giveBack(charge: SharedCharge, cost: number): void {
    this.#storeOf(charge.counter).giveBack(charge, cost)
  }

  /** The keys of a counter, at most so many; those that are known here while its store cannot be asked. */
  async keys(counter: FleetCounter, table: Table, most: number): Promise<string[]> {
    return await this.#storeOf(counter).keys(counter, table, most)
  }

  async reset(counter: FleetCounter, key: string): Promise<void> {
    await this.#storeOf(counter).reset(counter, key)
  }

  /** The rules have changed: what was known of their keys may be wrong. */
  reconsider(): void {
    for (const store of this.#all()) store.reconsider()
  }

  async #takeBoth(near: readonly SharedCharge[], far: readonly SharedCharge[], now: number): Promise<boolean> {
    if (!(await this.#parts.machine!.take(near, now))) return false
    if (await this.#parts.fleet!.take(far, now)) return true
    for (const charge of near) this.#undo(charge, now)
    await this.#parts.machine!.look(near, now)
    return false
  }

  #undo(charge: SharedCharge, now: number): void {
    const { fits, cost, countedBy, counter } = charge
    if (!fits || cost === 0 || countedBy === 'nobody') return
    if (countedBy === 'fleet' || counter.needsRelease) this.giveBack(charge, cost)
    else refundLocal(charge, now, 'all')
  }

  #all(): FailoverStore[] {
    return [this.#parts.fleet, this.#parts.machine].filter(store => store !== undefined)
  }

  #storeFor({ distributed }: Pick<CompiledRule, 'distributed'>): FailoverStore | undefined {
    return distributed ? this.#parts.fleet : this.#parts.machine
  }

  #storeOf(counter: FleetCounter): FailoverStore {
    return (this.#ofMachine.has(counter) ? this.#parts.machine : this.#parts.fleet)!
  }

  #split(charges: readonly SharedCharge[]): { near: readonly SharedCharge[]; far: readonly SharedCharge[] } {
    if (this.#parts.machine === undefined) return { near: [], far: charges }
    if (this.#parts.fleet === undefined) return { near: charges, far: [] }
    const near = charges.filter(({ counter }) => this.#ofMachine.has(counter))
    return { near, far: charges.filter(({ counter }) => !this.#ofMachine.has(counter)) }
  }
}
