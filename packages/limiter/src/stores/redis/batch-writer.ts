import { fieldJsonOf, type RedisCounter, type RedisHome } from './counter.ts'
import { hashOf, partNames, partOf, type RedisLayout, spreadLevels } from './layout.ts'
import type { Amendment, DecisionRequest } from './question.ts'

/** What the script is asked to do, in its words. */
const CODES = { look: 0, take: 1, giveBack: 2, renew: 3, reset: 4, catchUp: 5 } as const
/** A code says besides how many charges there are. */
const PER_CHARGE = 8

const FIRST = '#'.charCodeAt(0)
const ESCAPE = '~'
/** Numbers as characters, but for the one that JSON would have to escape. */
const CHARACTERS = Array.from({ length: ESCAPE.charCodeAt(0) - FIRST }, (_, i) => String.fromCharCode(FIRST + i)).map(
  character => (character === '\\' ? undefined : character),
)

/** The length of a row is told by one character. */
const LONGEST_ROW = 50

/** Writes the calls of a batch in the words of the script: numbers as characters, and what calls in a row have in common once. */
export class BatchWriter {
  /** The keys of all homes, in their order; and, in the end, their parts. */
  readonly keys: string[] = []
  readonly homes: RedisHome[] = []
  readonly #layouts: ReadonlyMap<string, RedisLayout>
  readonly #homes = new Map<string, OpenHome>()
  readonly #rules: string[] = []
  readonly #places: number[] = []
  #text = ''
  /** Those that are too large for a character, in the order of the text. */
  readonly #numbers: number[] = []

  /** What the calls of the row have in common: the code, and of each charge where it goes, its word and its cost. */
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
      this.#fields += this.#character(this.#seats[c]!.home.fieldOf(charges[c]!.key))
    }
  }

  /** Refunds charges, renews leases, resets keys, or counts what was missed. */
  amend({ what, charges }: Amendment): void {
    this.#endRow()
    this.#add(CODES[what] + PER_CHARGE * charges.length)
    charges.forEach((charge, c) => {
      const seat = this.#seatOf(c, charge.counter, charge.key)
      this.#add(seat.rule * 2)
      this.#add(seat.home.fieldOf(charge.key))
      for (const number of numbersOf(charge)) this.#add(number)
    })
  }

  /** All that was written, as the members of a JSON object. */
  end(): string {
    this.#endRow()
    const homes = Array.from(this.#homes.values(), home => `[${home.fields}]`)
    const places = this.#places.every((place, r) => place === r + 1) ? '' : `,"places":[${this.#places}]`
    const numbers = this.#numbers.length === 0 ? '' : `,"numbers":[${this.#numbers}]`
    return `"homes":[${homes}]${this.#endLayouts()},"rules":[${this.#rules}]${places},"calls":"${this.#text}"${numbers}`
  }

  /** How the callers of each home are spread, if those of any are; adds their parts to the keys. */
  #endLayouts(): string {
    const layouts = Array.from(this.#homes.values(), home => {
      const layout = this.#layouts.get(home.young)
      return layout && { ...layout, parts: home.addParts(layout, this.keys) }
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

  /** Where the charge number `c` of a call goes; mostly where that of the call before went. */
  #seatOf(c: number, counter: RedisCounter, key: string): Seat {
    const home = counter.homeOf(key)
    const known = this.#seats[c]
    if (known?.counter === counter && known.home.young === home.young) return known
    const open = this.#open(home)
    let rule = open.rules.get(counter)
    if (rule === undefined) {
      rule = this.#rules.push(counter.json)
      this.#places.push(open.place)
      open.rules.set(counter, rule)
    }
    const seat = { counter, home: open, rule }
    this.#seats[c] = seat
    return seat
  }

  #open(home: RedisHome): OpenHome {
    const known = this.#homes.get(home.young)
    if (known) return known
    const open = new OpenHome(home.young, this.#homes.size + 1)
    this.#homes.set(home.young, open)
    this.keys.push(home.young, home.old)
    this.homes.push(home)
    return open
  }
}

function numbersOf(charge: Amendment['charges'][number]): readonly number[] {
  if ('levels' in charge) return charge.levels.flatMap(({ known, missing }) => [known, missing])
  if ('moment' in charge) return [charge.cost, charge.moment, charge.wait ?? 0]
  return 'least' in charge ? [charge.least, charge.most, 0] : [0, 0, 0]
}

/** A rule in one of its homes. Rules, homes and fields are numbered from 1, as Lua counts. */
interface Seat {
  readonly counter: RedisCounter
  readonly home: OpenHome
  readonly rule: number
}

/** A home of a batch and what is asked there. */
class OpenHome {
  readonly young: string
  readonly place: number
  readonly rules: Map<RedisCounter, number> = new Map()
  /** As the members of a JSON array. */
  fields = ''
  readonly #known = new Map<string, number>()

  constructor(young: string, place: number) {
    this.young = young
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

  /** Adds the parts of all callers to the keys of the script; returns for each level where the part of each caller begins there. */
  addParts(layout: RedisLayout, keys: string[]): number[][] {
    const hashes = Array.from(this.#known.keys(), key => hashOf(key, layout.seed))
    const parts: number[][] = [[], [], [], []]
    for (const level of spreadLevels(layout)) {
      const added = new Map<number, number>()
      parts[level - 1] = hashes.map(hash => {
        const part = partOf(hash, level)
        const at = added.get(part) ?? keys.length + 1
        if (!added.has(part)) {
          added.set(part, at)
          keys.push(...partNames(this.young, level, part))
        }
        return at
      })
    }
    return parts
  }
}
