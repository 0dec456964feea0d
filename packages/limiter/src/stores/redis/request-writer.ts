import type { Meter } from '../../algorithms/algorithm.ts'
import type { LevelCatchUp } from '../catch-up.ts'
import type { RedisCounter, RuleDescription } from './counter.ts'
import type { Amendment, DecisionRequest, RedisLease, RedisSettlement, ScriptRequest } from './script-request.ts'

/** The codes of requests, as the engine reads them. */
const CODES = {
  look: 0,
  take: 1,
  giveBack: 2,
  renew: 3,
  reset: 4,
  catchUp: 5,
  lease: 6,
  reserve: 7,
  settle: 8,
} as const

/** A batch as the engine reads it: the ledgers of its charges, its numbers, and the rules that they name. */
export interface EncodedBatch {
  readonly keys: string[]
  readonly numbers: string
  readonly rules: readonly RuleDescription[]
}

export interface BatchTerms {
  /** The clock of Redis as far as it is known, in microseconds; that of this process before. */
  readonly clock: () => number
  /** For how long keys that are idle are kept. */
  readonly lingerMs: number
  /** The engine remembers no limits, so that ledgers have to. */
  readonly keepsLevels: boolean
  /** Limits that are no longer used are forgotten at once, for tests. */
  readonly forgetsLimits: boolean
}

export function encodeBatch(requests: readonly ScriptRequest[], terms: BatchTerms): EncodedBatch {
  const writer = new RequestWriter(terms.clock)
  for (const request of requests) {
    if (isDecision(request)) writer.ask(request)
    else writer.amend(request)
  }
  return writer.end(terms)
}

function isDecision(request: ScriptRequest): request is DecisionRequest {
  return request.what === 'take' || request.what === 'look'
}

/** Writes the calls of a batch as rows of numbers; calls in a row that are alike are written once. */
class RequestWriter {
  readonly #clock: () => number
  readonly #keys: string[] = []
  readonly #rules: RuleDescription[] = []
  #head = ''
  /** The number of each rule, from 1, as Lua counts. */
  readonly #places = new Map<RedisCounter, number>()
  #rows = ''
  /** What the calls of the row have in common: the code, and the numbers of their charges; and how many calls there are. */
  #code = 0
  #row: number[] = []
  #alike = 0
  /** The numbers of the call that is being written. */
  #next: number[] = []

  constructor(clock: () => number) {
    this.#clock = clock
  }

  /** Asks for all charges of a call at once. */
  ask({ what, charges }: DecisionRequest): void {
    if (what === 'take' && charges.some(({ holdUs }) => holdUs > 0)) {
      this.#reserve(charges)
      return
    }
    const next = this.#next
    if (next.length !== charges.length * 2) next.length = charges.length * 2
    for (let c = 0; c < charges.length; c++) {
      const { counter, key, cost, mayWait } = charges[c]!
      next[c * 2] = this.#ruleOf(counter, key) * 2 + (mayWait ? 1 : 0)
      next[c * 2 + 1] = cost
    }
    const code = CODES[what]
    if (this.#alike > 0 && code === this.#code && areEqual(next, this.#row)) this.#alike++
    else this.#begin(code, next)
  }

  /** The same for a call whose charges wait to be settled. */
  #reserve(charges: DecisionRequest['charges']): void {
    const numbers = [charges.find(({ holdUs }) => holdUs > 0)!.reservation]
    for (const { counter, key, cost, mayWait, holdUs } of charges) {
      numbers.push(this.#ruleOf(counter, key) * 2 + (mayWait ? 1 : 0), cost, holdUs)
    }
    this.#begin(CODES.reserve, numbers)
  }

  /** Refunds charges, renews slots, resets keys, reports and leases permits, or counts what was missed. */
  amend({ what, charges }: Amendment): void {
    for (const charge of charges) {
      this.#begin(CODES[what], [this.#ruleOf(charge.counter, charge.key) * 2, ...numbersOf(charge)])
      if ('holderKey' in charge) this.#keys.push(charge.holderKey)
    }
  }

  end({ lingerMs, keepsLevels, forgetsLimits }: BatchTerms): EncodedBatch {
    this.#endRow()
    const flags = (forgetsLimits ? 1 : 0) + (keepsLevels ? 2 : 0)
    const numbers = `${lingerMs} ${flags} ${this.#rules.length}${this.#head}${this.#rows}`
    return { keys: this.#keys, numbers, rules: this.#rules }
  }

  /** Begins a row of calls that are not like those before. */
  #begin(code: number, numbers: number[]): void {
    this.#endRow()
    this.#code = code
    this.#next = this.#row
    this.#row = numbers
    this.#alike = 1
  }

  #endRow(): void {
    if (this.#alike > 0) this.#rows += ` ${this.#row.length + 2} ${this.#code} ${this.#alike} ${this.#row.join(' ')}`
  }

  /** The number of a rule, whose ledger of a caller is added to the keys. */
  #ruleOf(counter: RedisCounter, key: string): number {
    this.#keys.push(counter.ledgerKeyOf(key))
    let place = this.#places.get(counter)
    if (place === undefined) {
      const rule = counter.description(this.#clock)
      place = this.#rules.push(rule)
      this.#head += ` ${rule.id} ${counter.since} ${counter.countsSince}`
      this.#places.set(counter, place)
    }
    return place
  }
}

function areEqual(some: readonly number[], others: readonly number[]): boolean {
  if (some.length !== others.length) return false
  for (let i = 0; i < some.length; i++) if (some[i] !== others[i]) return false
  return true
}

function numbersOf(charge: Amendment['charges'][number]): readonly number[] {
  if ('holderKey' in charge) return leaseNumbers(charge)
  if ('levels' in charge) return charge.levels.flatMap((level, l) => catchUpNumbers(level, charge.counter.meters[l]))
  if ('actual' in charge) return settlementNumbers(charge)
  if ('moment' in charge) return [charge.cost, charge.moment, charge.wait ?? 0]
  return 'least' in charge ? [charge.least, charge.most, 0] : []
}

/** What is known to be used and what is missing of a level, its period, and how much still counts at how many moments to come. */
function catchUpNumbers({ known, missing, later = [] }: LevelCatchUp, meter: Meter | undefined): number[] {
  const counts = later.flatMap(one => [Math.round(one.afterUs), one.known, one.missing])
  return [known, missing, meter?.rate?.windowUs ?? 0, later.length, ...counts]
}

function settlementNumbers({ reservation, cost, moment, wait = 0, actual, until, overrun }: RedisSettlement): number[] {
  return [reservation, cost, moment, wait, actual, until, overrun === 'debt' ? 1 : 0]
}

/** More permits than any limit has: not all were reported, and which were used is not known. */
const ALL = 2 ** 50

function leaseNumbers({ sequence, kept, needed, wanted, used }: RedisLease): number[] {
  const reports = used.flatMap(({ amount, ageUs }) => [Math.min(amount, ALL), Math.round(ageUs)])
  return [sequence, kept, needed, wanted, ...reports]
}
