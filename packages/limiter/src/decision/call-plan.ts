import type { Call } from '../call.ts'
import { type LocalCharge, localCharge } from '../stores/memory/memory-store.ts'
import { resetsSoFar, type Table } from '../stores/memory/table.ts'
import { type SharedCharge, sharedCharge } from '../stores/shared-charge.ts'
import type { FleetCounter } from '../stores/store.ts'
import type { BlockCounters, NamedRules, RuleState } from './pending-verdict.ts'

const NO_CALL: Call = { method: '', path: '' }

/** How the call wants to be judged. */
export interface DocketOptions extends NamedRules {
  /** Told with the call, and maybe to be settled. */
  readonly cost?: unknown
}

/** One call before the judge: the rules it meets, and a charge for each. A judge uses one again and again. */
export class CallPlan {
  readonly found: RuleState[] = []
  /** One per rule that was found, in the same order. */
  readonly charges: (LocalCharge | SharedCharge)[] = []
  /** Those of them that are counted in this process; `locals` says how many belong to this call. */
  readonly local: LocalCharge[] = []
  locals = 0
  /** Those that are counted for the whole fleet. */
  shared: SharedCharge[] = []
  /** For rules that block, the charge that asks whether they block this caller; by the place of the rule. */
  readonly gates: (LocalCharge | SharedCharge | undefined)[] = []
  hasGates = false
  size = 0
  isDenied = false
  /** How many keys had been reset when the call came. */
  resetsBefore = 0
  call: Call = NO_CALL
  options: DocketOptions | undefined

  /** `found` rules are in the list already; a negative number of them says that the call is denied. */
  prepare(found: number, call: Call, cost: number, options: DocketOptions | undefined): void {
    const size = Math.max(0, found)
    this.call = call
    this.options = options
    this.isDenied = found < 0
    this.resetsBefore = resetsSoFar()
    this.size = size
    this.locals = 0
    this.hasGates = false
    if (this.shared.length > 0) this.shared = []
    for (let i = 0; i < size; i++) {
      const counted = this.found[i]!
      const { rule } = counted
      const charge = counted.counter
        ? this.#nextShared(counted.counter, counted.table, rule.whenStoreDown)
        : this.#nextLocal(counted.table)
      charge.key = rule.key(call)
      charge.cost = rule.cost === undefined || cost === 0 ? cost : rule.cost(call)
      charge.enforced = rule.enforced
      charge.mayWait = counted.waiting < rule.queueSize
      this.charges[i] = charge
      if (counted.gate !== undefined) this.#addGate(i, counted.gate, charge)
      else if (this.gates.length > i) this.gates[i] = undefined
    }
  }

  /** Microseconds for which a rule has blocked the caller. */
  blockedUs(place: number): number {
    return this.gates[place]?.delays[0] ?? 0
  }

  #addGate(place: number, gate: BlockCounters, { key, enforced }: LocalCharge | SharedCharge): void {
    const { table, counter } = gate
    const charge = counter ? this.#nextShared(counter, table, 'local') : this.#nextLocal(table)
    charge.key = key
    charge.cost = 0
    charge.enforced = enforced
    charge.mayWait = false
    this.gates[place] = charge
    this.hasGates = true
  }

  /** Keeps nothing of a call that has been judged. */
  forget(): void {
    this.call = NO_CALL
    this.options = undefined
  }

  #nextShared(counter: FleetCounter, table: Table, emergency: SharedCharge['whenStoreDown']): SharedCharge {
    const charge = sharedCharge(counter, table, emergency)
    this.shared.push(charge)
    return charge
  }

  #nextLocal(table: Table): LocalCharge {
    const charge = this.local[this.locals] ?? localCharge(table)
    charge.table = table
    this.local[this.locals++] = charge
    return charge
  }
}
