import { BatchWriter } from './redis-batch-writer.ts'
import type { RedisCharge, RedisCounter } from './redis-counter.ts'
import { RESETS } from './redis-script.ts'

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

/** Questions as the script reads them: its keys, and its argument. */
export function encodeBatch(questions: readonly Question[], now: number | undefined): { keys: string[]; arg: string } {
  const batch = new BatchWriter()
  for (const question of questions) {
    if (question.what === 'giveBack' || question.what === 'renew') batch.amend(CODES[question.what], question.charges)
    else batch.ask(CODES[question.what], question.charges)
  }
  const clock = now === undefined ? `"lingerMs":${LINGER_MS}` : `"now":${now},"lingerMs":${TEST_LINGER_MS}`
  return { keys: batch.keys, arg: `{${clock},${batch.end()}}` }
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
    let number = numbers[next++]!
    if (number < -1) {
      delay = number === NEVER ? Number.POSITIVE_INFINITY : -number - 1
      if (delay > wait) wait = delay
      if (delay > (mayWait ? meters[level]!.patienceUs : 0)) fits = false
      number = numbers[next++]!
    }
    delays[level] = delay
    if (number === -1) {
      remaining[level] = numbers[next]!
      resets[level] = numbers[next + 1] === -1 ? Number.POSITIVE_INFINITY : numbers[next + 1]!
      next += 2
    } else {
      const left = Math.floor(number / RESETS)
      remaining[level] = left
      resets[level] = number - left * RESETS
    }
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
