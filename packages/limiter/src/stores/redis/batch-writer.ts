import type { Meter } from '../../algorithms/algorithm.ts'
import type { LevelCatchUp } from '../catch-up.ts'
import { fieldOf, type RedisCounter, type RedisPartition } from './counter.ts'
import { hashOf, type RedisLayout, shardNames, shardOf, spreadLevels } from './layout.ts'
import type { Amendment, DecisionRequest, RedisLease, RedisSettlement } from './script-request.ts'

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

/** Encodes the calls of a batch for the engine: rows of numbers, what consecutive calls share only once, and the callers. */
export class BatchWriter {
  /** Two for each partition, in their order; and, in the end, their shards, and the keys of holders. */
  readonly keys: string[] = []
  readonly partitions: RedisPartition[] = []
  /** The rules; each is numbered from 1, as Lua counts. */
  readonly rules: string[] = []
  readonly #layouts: ReadonlyMap<string, RedisLayout>
  readonly #clock: () => number
  readonly #open = new Map<RedisPartition, OpenPartition>()
  readonly #holderKeys: string[] = []
  #places = ''
  /** Whether a partition has a caller more than once. */
  #hasSame = false
  #rows = ''
  /** What the calls of the row have in common: the code, and the numbers of their charges; and how many calls there are. */
  #code = 0
  #row: number[] = []
  #alike = 0
  /** The numbers of the call that is being written. */
  #next: number[] = []
  /** The rules that the charges of the call before had, which are mostly the same. */
  readonly #last: { readonly counter: RedisCounter; readonly open: OpenPartition; readonly rule: number }[] = []

  /** `clock` is that of Redis as far as it is known. */
  constructor(layouts: ReadonlyMap<string, RedisLayout>, clock: () => number) {
    this.#layouts = layouts
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
      next[c * 2] = this.#ruleOf(counter, key, c) * 2 + (mayWait ? 1 : 0)
      next[c * 2 + 1] = cost
    }
    const code = CODES[what]
    if (this.#alike > 0 && code === this.#code && areEqual(next, this.#row)) this.#alike++
    else this.#begin(code, next)
  }

  /** The same for a call whose charges wait to be settled. */
  #reserve(charges: DecisionRequest['charges']): void {
    const numbers = [charges.find(({ holdUs }) => holdUs > 0)!.reservation]
    charges.forEach(({ counter, key, cost, mayWait, holdUs }, c) => {
      numbers.push(this.#ruleOf(counter, key, c) * 2 + (mayWait ? 1 : 0), cost, holdUs)
    })
    this.#begin(CODES.reserve, numbers)
  }

  /** Refunds charges, renews leases, resets keys, or counts what was missed. */
  amend({ what, charges }: Amendment): void {
    for (const charge of charges) {
      const place = 'holderKey' in charge ? [this.#holderKeys.push(charge.holderKey)] : []
      this.#begin(CODES[what], [this.#ruleOf(charge.counter, charge.key, 0) * 2, ...place, ...numbersOf(charge)])
    }
  }

  /** All that was written, as the members of a JSON object; adds the shards to the keys. */
  end(): string {
    this.#endRow()
    const isEachForItself = this.rules.length === this.partitions.length
    const places = isEachForItself ? '' : `"places":[${this.#places}],`
    const same = this.#hasSame ? '"same":true,' : ''
    let sizes = ''
    for (const { callers } of this.#open.values()) sizes += sizes === '' ? callers.length : `,${callers.length}`
    const layouts = this.#endLayouts()
    this.keys.push(...this.#holderKeys)
    const holders = this.#holderKeys.length > 0 ? `"holders":${this.#holderKeys.length},` : ''
    return `${places}${same}${layouts}${holders}"sizes":[${sizes}],"rules":${this.rules.length},"calls":[${this.#rows}]`
  }

  /** The callers of each partition, one for each charge. */
  get callers(): string[] {
    const all: string[] = []
    for (const { callers } of this.#open.values()) for (const caller of callers) all.push(caller)
    return all
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
    if (this.#alike === 0) return
    const row = `[${this.#code},${this.#alike},${this.#row.join()}]`
    this.#rows += this.#rows === '' ? row : `,${row}`
  }

  /** The number of a rule in the partition of a caller, which is added to the callers. */
  #ruleOf(counter: RedisCounter, key: string, charge: number): number {
    const partition = counter.partitionOf(key)
    let last = this.#last[charge]
    if (last?.counter !== counter || last.open.partition !== partition) {
      last = { counter, ...this.#find(counter, partition) }
      this.#last[charge] = last
    }
    const { seen, callers, keys } = last.open
    callers.push(fieldOf(key))
    if (seen.size === seen.add(key).size) this.#hasSame = true
    keys?.push(key)
    return last.rule
  }

  #find(counter: RedisCounter, partition: RedisPartition): { open: OpenPartition; rule: number } {
    let open = this.#open.get(partition)
    if (!open) {
      this.keys.push(partition.current, partition.previous)
      const place = this.partitions.push(partition)
      const keys = this.#layouts.has(partition.current) ? [] : undefined
      open = { partition, place, rules: new Map(), seen: new Set(), callers: [], keys }
      this.#open.set(partition, open)
    }
    let rule = open.rules.get(counter)
    if (rule === undefined) {
      rule = this.rules.push(counter.json(this.#clock))
      this.#places += this.#places === '' ? open.place : `,${open.place}`
      open.rules.set(counter, rule)
    }
    return { open, rule }
  }

  /** How the callers of each partition are spread, if those of any are. */
  #endLayouts(): string {
    if (this.#layouts.size === 0) return ''
    const layouts = Array.from(this.#open.values(), ({ partition, keys }) => {
      const layout = keys && this.#layouts.get(partition.current)
      return layout ? { ...layout, shards: this.#addShards(partition.current, layout, keys) } : false
    })
    return layouts.some(Boolean) ? `"layouts":${JSON.stringify(layouts)},` : ''
  }

  /** Adds the shards of callers to the keys; returns for each level where the shard of each caller begins there. */
  #addShards(current: string, layout: RedisLayout, callers: readonly string[]): number[][] {
    const hashes = callers.map(key => hashOf(key, layout.seed))
    const shards: number[][] = [[], [], [], []]
    for (const level of spreadLevels(layout)) {
      const added = new Map<number, number>()
      shards[level - 1] = hashes.map(hash => {
        const shard = shardOf(hash, level)
        const at = added.get(shard) ?? this.keys.length + 1
        if (!added.has(shard)) {
          added.set(shard, at)
          this.keys.push(...shardNames(current, level, shard))
        }
        return at
      })
    }
    return shards
  }
}

/** A partition of a batch with the numbers of its rules. */
interface OpenPartition {
  readonly partition: RedisPartition
  /** Its number, from 1. */
  readonly place: number
  readonly rules: Map<RedisCounter, number>
  /** The keys of its callers, each once. */
  readonly seen: Set<string>
  /** The caller of each charge, in the order of the calls. */
  readonly callers: string[]
  /** The keys of its callers, in the order of the calls, if they are spread. */
  readonly keys: string[] | undefined
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
  return [known, missing, meter?.windowUs ?? 0, later.length, ...counts]
}

function settlementNumbers({ reservation, cost, moment, wait = 0, actual, until, overrun }: RedisSettlement): number[] {
  return [reservation, cost, moment, wait, actual, until, overrun === 'debt' ? 1 : 0]
}

/** More permits than any limit has: not all were reported, and which were used is not known. */
const ALL = 2 ** 50

function leaseNumbers({ sequence, kept, needed, wanted, used }: RedisLease): number[] {
  return [
    sequence,
    kept,
    needed,
    wanted,
    ...used.flatMap(({ amount, ageUs }) => [Math.min(amount, ALL), Math.round(ageUs)]),
  ]
}
