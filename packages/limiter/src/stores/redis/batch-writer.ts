import { fieldJsonOf, type RedisCounter, type RedisPartition } from './counter.ts'
import { hashOf, type RedisLayout, shardNames, shardOf, spreadLevels } from './layout.ts'
import type { Amendment, DecisionRequest } from './script-request.ts'

/** The codes of requests, as the script reads them. */
const CODES = { look: 0, take: 1, giveBack: 2, renew: 3, reset: 4, catchUp: 5 } as const
/** A code includes the number of charges. */
const PER_CHARGE = 8

const FIRST = '#'.charCodeAt(0)
const ESCAPE = '~'
/** Numbers as characters, but for the one that JSON would have to escape. */
const CHARACTERS = Array.from({ length: ESCAPE.charCodeAt(0) - FIRST }, (_, i) => String.fromCharCode(FIRST + i)).map(
  character => (character === '\\' ? undefined : character),
)

/** The length of a row is encoded in one character. */
const LONGEST_ROW = 50

/** Encodes the calls of a batch for the script: numbers as characters, and what consecutive calls share only once. */
export class BatchWriter {
  /** The keys of all partitions, in their order; and, in the end, their shards. */
  readonly keys: string[] = []
  readonly partitions: RedisPartition[] = []
  readonly #layouts: ReadonlyMap<string, RedisLayout>
  readonly #partitions = new Map<string, OpenPartition>()
  readonly #rules: string[] = []
  readonly #places: number[] = []
  #text = ''
  /** Those that are too large for a character, in the order of the text. */
  readonly #numbers: number[] = []

  /** What the calls of the row have in common: the code, and of each charge its target, its rule code and its cost. */
  #code = -1
  readonly #seats: Seat[] = []
  readonly #packed: number[] = []
  readonly #costs: number[] = []
  #row = 0
  #head = ''
  #fields = ''

  constructor(layouts: ReadonlyMap<string, RedisLayout>) {
    this.#layouts = layouts
  }

  /** Asks for all charges of a call at once. */
  ask({ what, charges }: DecisionRequest): void {
    const code = CODES[what] + PER_CHARGE * charges.length
    let isAlike = code === this.#code
    for (let c = 0; c < charges.length; c++) {
      const { counter, key, cost, mayWait } = charges[c]!
      const seat = this.#seatOf(c, counter, key)
      const packed = seat.rule * 2 + (mayWait ? 1 : 0)
      if (isAlike && packed === this.#packed[c] && cost === this.#costs[c]) continue
      isAlike = false
      this.#packed[c] = packed
      this.#costs[c] = cost
    }
    if (!isAlike || this.#row === LONGEST_ROW) this.#beginRow(code, charges.length)
    this.#row++
    for (let c = 0; c < charges.length; c++) {
      this.#fields += this.#character(this.#seats[c]!.partition.fieldOf(charges[c]!.key))
    }
  }

  /** Refunds charges, renews leases, resets keys, or counts what was missed. */
  amend({ what, charges }: Amendment): void {
    this.#endRow()
    this.#add(CODES[what] + PER_CHARGE * charges.length)
    charges.forEach((charge, c) => {
      const seat = this.#seatOf(c, charge.counter, charge.key)
      this.#add(seat.rule * 2)
      this.#add(seat.partition.fieldOf(charge.key))
      for (const number of numbersOf(charge)) this.#add(number)
    })
  }

  /** All that was written, as the members of a JSON object. */
  end(): string {
    this.#endRow()
    const partitions = Array.from(this.#partitions.values(), partition => `[${partition.fields}]`)
    const places = this.#places.every((place, r) => place === r + 1) ? '' : `,"places":[${this.#places}]`
    const numbers = this.#numbers.length === 0 ? '' : `,"numbers":[${this.#numbers}]`
    return `"partitions":[${partitions}]${this.#endLayouts()},"rules":[${this.#rules}]${places},"calls":"${this.#text}"${numbers}`
  }

  /** How the callers of each partition are spread, if those of any are; adds their shards to the keys. */
  #endLayouts(): string {
    const layouts = Array.from(this.#partitions.values(), partition => {
      const layout = this.#layouts.get(partition.current)
      return layout && { ...layout, shards: partition.addShards(layout, this.keys) }
    })
    return layouts.some(Boolean) ? `,"layouts":${JSON.stringify(layouts.map(layout => layout ?? false))}` : ''
  }

  #beginRow(code: number, charges: number): void {
    this.#endRow()
    this.#code = code
    this.#head = this.#character(code)
    let terms = ''
    for (let c = 0; c < charges; c++) terms += this.#character(this.#packed[c]!) + this.#character(this.#costs[c]!)
    this.#fields = terms
  }

  #endRow(): void {
    if (this.#row > 0) this.#text += this.#head + CHARACTERS[this.#row]! + this.#fields
    this.#row = 0
    this.#code = -1
  }

  #add(number: number): void {
    this.#text += this.#character(number)
  }

  #character(number: number): string {
    const character = CHARACTERS[number]
    if (character !== undefined) return character
    this.#numbers.push(number)
    return ESCAPE
  }

  /** The target of charge number `c` of a call; mostly the same as for the call before. */
  #seatOf(c: number, counter: RedisCounter, key: string): Seat {
    const partition = counter.partitionOf(key)
    const known = this.#seats[c]
    if (known?.counter === counter && known.partition.current === partition.current) return known
    const open = this.#open(partition)
    let rule = open.rules.get(counter)
    if (rule === undefined) {
      rule = this.#rules.push(counter.json)
      this.#places.push(open.place)
      open.rules.set(counter, rule)
    }
    const seat = { counter, partition: open, rule }
    this.#seats[c] = seat
    return seat
  }

  #open(partition: RedisPartition): OpenPartition {
    const known = this.#partitions.get(partition.current)
    if (known) return known
    const open = new OpenPartition(partition.current, this.#partitions.size + 1)
    this.#partitions.set(partition.current, open)
    this.keys.push(partition.current, partition.previous)
    this.partitions.push(partition)
    return open
  }
}

function numbersOf(charge: Amendment['charges'][number]): readonly number[] {
  if ('levels' in charge) return charge.levels.flatMap(({ known, missing }) => [known, missing])
  if ('moment' in charge) return [charge.cost, charge.moment, charge.wait ?? 0]
  return 'least' in charge ? [charge.least, charge.most, 0] : [0, 0, 0]
}

/** A rule in one of its partitions. Rules, partitions and fields are numbered from 1, as Lua counts. */
interface Seat {
  readonly counter: RedisCounter
  readonly partition: OpenPartition
  readonly rule: number
}

/** A partition of a batch with its rules and fields. */
class OpenPartition {
  readonly current: string
  readonly place: number
  readonly rules: Map<RedisCounter, number> = new Map()
  /** As the members of a JSON array. */
  fields = ''
  readonly #known = new Map<string, number>()

  constructor(current: string, place: number) {
    this.current = current
    this.place = place
  }

  fieldOf(key: string): number {
    let index = this.#known.get(key)
    if (index === undefined) {
      index = this.#known.size + 1
      this.fields += index === 1 ? fieldJsonOf(key) : `,${fieldJsonOf(key)}`
      this.#known.set(key, index)
    }
    return index
  }

  /** Adds the shards of all callers to the keys of the script; returns for each level where the shard of each caller begins there. */
  addShards(layout: RedisLayout, keys: string[]): number[][] {
    const hashes = Array.from(this.#known.keys(), key => hashOf(key, layout.seed))
    const shards: number[][] = [[], [], [], []]
    for (const level of spreadLevels(layout)) {
      const added = new Map<number, number>()
      shards[level - 1] = hashes.map(hash => {
        const shard = shardOf(hash, level)
        const at = added.get(shard) ?? keys.length + 1
        if (!added.has(shard)) {
          added.set(shard, at)
          keys.push(...shardNames(this.current, level, shard))
        }
        return at
      })
    }
    return shards
  }
}
