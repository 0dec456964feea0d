import { fieldOf, type RedisCharge, type RedisCounter, type RedisHome } from './redis-counter.ts'

/** One thing to ask of the script: to judge all charges of a call at once, to take charges back, or to renew leases. */
export type Question =
  | { readonly what: 'take' | 'look'; readonly charges: readonly RedisCharge[] }
  | { readonly what: 'giveBack'; readonly charges: readonly Refund[] }
  | { readonly what: 'renew'; readonly charges: readonly Renewal[] }

/** A charge that was counted as admitted at `moment`, by the clock of Redis, and is taken back. */
export interface Refund {
  readonly counter: RedisCounter
  readonly key: string
  readonly cost: number
  readonly moment: number
}

/** The places that this process holds for one key; how many is not known while answers are under way. */
export interface Renewal {
  readonly counter: RedisCounter
  readonly key: string
  readonly least: number
  readonly most: number
}

/** What the script is asked to do, in its words. */
const CODES = { look: 0, take: 1, giveBack: 2, renew: 3 } as const
/** What the script says of a delay without end. */
const NEVER = -(2 ** 53)
/** Every key lives on for so long after it has stopped to matter, as margin for clocks that step. */
const LINGER_MS = 1000
/** With a clock given from outside, time in Redis and time in the test run at different speeds. */
const TEST_LINGER_MS = 600_000

/** Questions as the script reads them: its keys, and its arguments. */
export function encodeBatch(
  questions: readonly Question[],
  now: number | undefined,
): { keys: string[]; args: string[] } {
  const homes = new Map<string, OpenHome>()
  const rules: string[] = []
  const places: number[] = []
  const calls = new Characters()
  for (const { what, charges } of questions) {
    calls.add(CODES[what] + 4 * charges.length)
    for (const charge of charges) {
      const home = openHome(charge.counter.homeOf(charge.key), homes)
      const rule = home.ruleOf(charge.counter, rules, places)
      const field = home.fieldOf(charge.key)
      if ('mayWait' in charge) {
        calls.add(rule * 2 + (charge.mayWait ? 1 : 0))
        calls.add(field)
        calls.add(charge.cost)
      } else {
        calls.add(rule * 2)
        calls.add(field)
        calls.add('moment' in charge ? charge.cost : charge.least)
        calls.add('moment' in charge ? charge.moment : charge.most)
      }
    }
  }
  const all = [...homes.values()]
  const clock = now === undefined ? `"lingerMs":${LINGER_MS}` : `"now":${now},"lingerMs":${TEST_LINGER_MS}`
  const counts = all.map(({ fields }) => fields.length)
  const said = `"fields":[${counts}],"rules":[${rules}],"homes":[${places}],"numbers":[${calls.numbers}]`
  return {
    keys: all.flatMap(({ home }) => [home.young, home.old]),
    args: [`{${clock},${said}}`, calls.text].concat(...all.map(({ fields }) => fields)),
  }
}

/** Writes the script's answers into the charges; returns the server's clock and whether each question was allowed. */
export function decodeBatch(questions: readonly Question[], reply: unknown): { now: number; allowed: boolean[] } {
  const numbers = readNumbers(reply)
  let next = 1
  const allowed = questions.map(({ what, charges }) => {
    if (what === 'giveBack' || what === 'renew') return true
    let answer = true
    for (const charge of charges) {
      next = decodeCharge(charge, numbers, next)
      if (!charge.fits && charge.counter.enforced) answer = false
    }
    return answer
  })
  if (next !== numbers.length) throw new Error(`the script answered ${numbers.length} numbers where ${next} were due`)
  return { now: numbers[0]!, allowed }
}

function decodeCharge(charge: RedisCharge, numbers: readonly number[], from: number): number {
  const { mayWait, delays, remaining, resets } = charge
  const { meters } = charge.counter
  let next = from
  let wait = 0
  let fits = true
  for (let level = 0; level < meters.length; level++) {
    let delay = 0
    if (numbers[next]! < 0) {
      delay = numbers[next] === NEVER ? Number.POSITIVE_INFINITY : -numbers[next]!
      next++
      if (delay > wait) wait = delay
      if (delay > (mayWait ? meters[level]!.patienceUs : 0)) fits = false
    }
    delays[level] = delay
    remaining[level] = numbers[next]!
    resets[level] = numbers[next + 1] === -1 ? Number.POSITIVE_INFINITY : numbers[next + 1]!
    next += 2
  }
  charge.wait = wait
  charge.fits = fits
  return next
}

/** Some clients answer numbers as text. */
function readNumbers(reply: unknown): readonly number[] {
  if (Array.isArray(reply) && reply.length > 0) {
    if (reply.every(Number.isInteger)) return reply
    const numbers = reply.map(Number)
    if (numbers.every(Number.isInteger)) return numbers
  }
  throw new Error(`the script answered something other than numbers: ${String(reply).slice(0, 100)}`)
}

function openHome(home: RedisHome, homes: Map<string, OpenHome>): OpenHome {
  const known = homes.get(home.young)
  if (known) return known
  const open = new OpenHome(home, homes.size + 1)
  homes.set(home.young, open)
  return open
}

/** A home of a batch and what is asked there. Rules, homes and fields are numbered from 1, as Lua counts. */
class OpenHome {
  readonly home: RedisHome
  readonly place: number
  readonly fields: string[] = []
  readonly #known = new Map<string, number>()
  readonly #rules = new Map<RedisCounter, number>()

  constructor(home: RedisHome, place: number) {
    this.home = home
    this.place = place
  }

  fieldOf(key: string): number {
    let index = this.#known.get(key)
    if (index === undefined) {
      index = this.fields.push(fieldOf(key))
      this.#known.set(key, index)
    }
    return index
  }

  /** The rule's number, under which it is added to `rules` when it is new here. */
  ruleOf(counter: RedisCounter, rules: string[], places: number[]): number {
    let index = this.#rules.get(counter)
    if (index === undefined) {
      index = rules.push(counter.json)
      places.push(this.place)
      this.#rules.set(counter, index)
    }
    return index
  }
}

const FIRST = '!'.charCodeAt(0)
const ESCAPE = '~'
const CHARACTERS = Array.from({ length: ESCAPE.charCodeAt(0) - FIRST }, (_, i) => String.fromCharCode(FIRST + i))

/** Numbers as the script reads them fastest: a character each, where they are small. */
class Characters {
  text = ''
  readonly numbers: number[] = []

  add(number: number): void {
    const character = CHARACTERS[number]
    if (character === undefined) this.numbers.push(number)
    this.text += character ?? ESCAPE
  }
}
