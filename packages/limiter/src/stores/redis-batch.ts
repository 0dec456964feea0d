import type { RedisCharge, RedisCounter } from './redis-counter.ts'

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
/** Every key lives on for so long after it has stopped to matter, as margin for clocks that step. */
const LINGER_MS = 1000
/** With a clock given from outside, time in Redis and time in the test run at different speeds. */
const TEST_LINGER_MS = 600_000

/** Questions as the script reads them: its keys, and its one argument. */
export function encodeBatch(questions: readonly Question[], now: number | undefined): { keys: string[]; json: string } {
  const keys = new Indexes()
  const rules = new Indexes()
  let calls = ''
  for (const { what, charges } of questions) {
    calls += `,${CODES[what] + 4 * charges.length}`
    for (const charge of charges) {
      const rule = rules.of(charge.counter.json)
      const key = keys.of(charge.counter.keyOf(charge.key))
      if ('mayWait' in charge) calls += `,${charge.mayWait ? rule : -rule},${key},${charge.cost}`
      else if ('moment' in charge) calls += `,${rule},${key},${charge.cost},${charge.moment}`
      else calls += `,${rule},${key},${charge.least},${charge.most}`
    }
  }
  const clock = now === undefined ? `"lingerMs":${LINGER_MS}` : `"now":${now},"lingerMs":${TEST_LINGER_MS}`
  return { keys: keys.all, json: `{${clock},"rules":[${rules.all.join()}],"calls":[${calls.slice(1)}]}` }
}

/** Writes the script's answers into the charges; returns the server's clock and whether each question was allowed. */
export function decodeBatch(questions: readonly Question[], reply: unknown): { now: number; allowed: boolean[] } {
  const numbers = readNumbers(reply)
  let next = 1
  const allowed = questions.map(({ what, charges }) => {
    if (what === 'giveBack' || what === 'renew') return true
    const answer = numbers[next++] === 1
    for (const charge of charges) next = decodeCharge(charge, numbers, next)
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
    const delay = durationOf(numbers[next])
    delays[level] = delay
    remaining[level] = numbers[next + 1]!
    resets[level] = durationOf(numbers[next + 2])
    next += 3
    if (delay > wait) wait = delay
    if (delay > (mayWait ? meters[level]!.patienceUs : 0)) fits = false
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

/** The script says -1 for never. */
function durationOf(number: number | undefined): number {
  return number === -1 ? Number.POSITIVE_INFINITY : (number ?? Number.NaN)
}

/** Numbers what it is given from 1, as Lua counts, the same thing by the same number. */
class Indexes {
  readonly all: string[] = []
  readonly #known = new Map<string, number>()

  of(text: string): number {
    let index = this.#known.get(text)
    if (index === undefined) {
      index = this.all.push(text)
      this.#known.set(text, index)
    }
    return index
  }
}
