import type { Call } from './call.ts'
import type { CountedRule, NamedRules } from './judgement.ts'
import { type LocalCharge, localCharge } from './stores/memory.ts'
import type { RedisCounter } from './stores/redis-counter.ts'
import { type SharedCharge, sharedCharge } from './stores/shared.ts'

const NO_CALL: Call = { method: '', path: '' }

/** How the call wants to be judged. */
export interface DocketOptions extends NamedRules {
  /** Told with the call, and maybe to be settled. */
  readonly cost?: unknown
}

/** One call before the judge: the rules it meets, and a charge for each. A judge uses one again and again. */
export class Docket {
  readonly found: CountedRule[] = []
  /** One per rule that was found, in the same order. */
  readonly charges: (LocalCharge | SharedCharge)[] = []
  /** Those of them that are counted in this process; `locals` says how many belong to this call. */
  readonly local: LocalCharge[] = []
  locals = 0
  /** Those that are counted for the whole fleet. */
  shared: SharedCharge[] = []
  size = 0
  call: Call = NO_CALL
  cost = 0
  options: DocketOptions | undefined

  prepare(size: number, call: Call, cost: number, options: DocketOptions | undefined): void {
    this.call = call
    this.cost = cost
    this.options = options
    this.size = size
    this.locals = 0
    if (this.shared.length > 0) this.shared = []
    for (let i = 0; i < size; i++) {
      const counted = this.found[i]!
      const { rule } = counted
      const charge = counted.counter ? this.#nextShared(counted, counted.counter) : this.#nextLocal(counted)
      charge.key = rule.key(call)
      charge.cost = rule.cost === undefined || cost === 0 ? cost : rule.cost(call)
      charge.enforced = rule.enforced
      charge.mayWait = counted.waiting < rule.queueSize
      this.charges[i] = charge
    }
  }

  /** Keeps nothing of a call that has been judged. */
  forget(): void {
    this.call = NO_CALL
    this.options = undefined
  }

  #nextShared({ table, rule }: CountedRule, counter: RedisCounter): SharedCharge {
    const charge = sharedCharge(counter, table, rule.emergency)
    this.shared.push(charge)
    return charge
  }

  #nextLocal({ table }: CountedRule): LocalCharge {
    const charge = this.local[this.locals] ?? localCharge(table)
    charge.table = table
    this.local[this.locals++] = charge
    return charge
  }
}
