import type { Call } from '../call.ts'
import { nodeCrypto } from '../common/node-modules.ts'
import { DEFAULT_HOLD_MS } from '../rules/schema/cost.ts'
import { type LocalCharge, localCharge } from '../stores/memory/memory-store.ts'
import { resetsSoFar, type Table } from '../stores/memory/table.ts'
import { type SharedCharge, sharedCharge } from '../stores/shared-charge.ts'
import type { FleetCounter } from '../stores/store.ts'
import { isSpecial, type PlanOptions } from './check-options.ts'
import type { BlockCounters, RuleState } from './rule-state.ts'
import { hasRoom } from './rule-state.ts'

/** One call that is being decided: the rules it meets, and a charge for each. It is used again for the next call. */
export class CallPlan {
  readonly found: RuleState[] = []
  /** One per rule that was found, in the same order. */
  readonly charges: (LocalCharge | SharedCharge)[] = []
  /** Those of them that are counted in this process; `locals` says how many belong to this call. */
  readonly local: LocalCharge[] = []
  locals = 0
  /** Those that are counted together with other processes. */
  shared: SharedCharge[] = []
  /** For rules that block callers, the charge that asks whether they block this one; by the index of the rule. */
  readonly blocks: (LocalCharge | SharedCharge | undefined)[] = []
  hasBlocks = false
  size = 0
  isDenied = false
  /** The number of keys that had been reset when the call came. */
  resetsBefore = 0

  /** True if a charge waits to be settled. */
  isReserved = false

  /**
   * Makes a charge for each of the first `size` rules in `found`; none if that is DENIED. `holdUs` is for how long what can be settled
   * is reserved, 0 if that is left to the rules; without it, only rules that say so reserve. Rules that are `paid` charge nothing.
   */
  prepare(call: Call, cost: number, found: number, holdUs?: number, paid?: ReadonlySet<string>): this {
    const size = Math.max(0, found)
    this.isDenied = found < 0
    this.size = size
    this.resetsBefore = resetsSoFar()
    this.locals = 0
    this.hasBlocks = false
    this.isReserved = false
    let reservation = 0
    if (this.shared.length > 0) this.shared = []
    for (let i = 0; i < size; i++) {
      let state = this.found[i]!
      const key = state.rule.key(call)
      if (state.plans !== undefined) {
        state = state.plans.stateFor(call, key)
        this.found[i] = state
      }
      const { rule } = state
      const charge = state.counter
        ? this.#nextShared(state.counter, state.table, rule.whenStoreDown)
        : this.#nextLocal(state.table)
      charge.key = key
      const isPaid = paid?.has(rule.id) === true
      charge.cost = isPaid ? 0 : costBy(rule, call, cost)
      charge.holdUs = rule.settles && !isPaid ? holdUsOf(rule, holdUs) : 0
      if (charge.holdUs > 0) {
        reservation ||= nextReservationId()
        this.isReserved = true
      }
      charge.reservation = charge.holdUs > 0 ? reservation : 0
      charge.enforced = rule.enforced
      charge.mayWait = hasRoom(state, key)
      this.charges[i] = charge
      if (state.blocks !== undefined) this.#askBlocks(i, state.blocks, charge)
      else if (this.blocks.length > i) this.blocks[i] = undefined
    }
    return this
  }

  /** Gives all charges of this process the rank of the call's level. */
  prioritize(rank: number): void {
    for (let i = 0; i < this.locals; i++) this.local[i]!.priority = rank
  }

  /** True if the charges cannot be read from the call again: they depend on more than the rules that it matches. */
  keepsReceipts(options: PlanOptions | undefined): boolean {
    return this.shared.length > 0 || this.isReserved || isSpecial(options)
  }

  /** Microseconds for which a rule has blocked the caller. */
  blockedUs(index: number): number {
    return this.blocks[index]?.delays[0] ?? 0
  }

  /** Returns how long a block lasts that a rule sets now, in microseconds; 0 if it sets none. */
  nextBlockUs(index: number): number {
    const { rule } = this.found[index]!
    return (rule.blockGrowth ? (this.blocks[index]?.remaining[0] ?? 0) : (rule.blockMs ?? 0)) * 1000
  }

  #askBlocks(index: number, blocks: BlockCounters, { key, enforced }: LocalCharge | SharedCharge): void {
    const { table, counter } = blocks
    const charge = counter ? this.#nextShared(counter, table, 'local') : this.#nextLocal(table)
    charge.key = key
    charge.cost = 0
    charge.holdUs = 0
    charge.enforced = enforced
    charge.mayWait = false
    this.blocks[index] = charge
    this.hasBlocks = true
  }

  #nextShared(counter: FleetCounter, table: Table, whenStoreDown: SharedCharge['whenStoreDown']): SharedCharge {
    const charge = sharedCharge(counter, table, whenStoreDown)
    // a list that grows by itself takes room for many
    if (this.shared.length === 0) this.shared = [charge]
    else this.shared.push(charge)
    return charge
  }

  #nextLocal(table: Table): LocalCharge {
    const charge = this.local[this.locals] ?? localCharge(table)
    charge.table = table
    this.local[this.locals++] = charge
    return charge
  }
}

/** Returns what a rule charges for a call. */
export function costBy(rule: RuleState['rule'], call: Call, given: number): number {
  if (rule.cost === undefined || given === 0) return given
  const cost = rule.cost(call)
  // an estimate that no moment has room for would be refused always
  return rule.estimates && cost > rule.mostAtOnce ? rule.mostAtOnce : cost
}

function holdUsOf({ holdMs }: RuleState['rule'], holdUs: number | undefined): number {
  if (holdUs === undefined) return holdMs === undefined ? 0 : holdMs * 1000
  return holdUs > 0 ? holdUs : (holdMs ?? DEFAULT_HOLD_MS) * 1000
}

// not at load time: some runtimes have no random numbers before the first request
let lastId: number | undefined

/** Returns an id that no other process has, and no other call of this one. */
export function nextReservationId(): number {
  lastId = (lastId ?? nodeCrypto().randomInt(2 ** 47)) + 1
  return lastId
}
