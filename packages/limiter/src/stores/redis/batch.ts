import { BatchWriter } from './batch-writer.ts'
import { fieldJsonOf, type RedisCharge, type RedisHome } from './counter.ts'
import type { RedisLayout } from './layout.ts'
import type { DecisionRequest, ScriptRequest } from './question.ts'
import { RESETS } from './script/script.ts'

/** What the script says of a delay without end. */
const NEVER = -(2 ** 53)
/** A lone call tells twice its cost, which must stay exact. */
const LARGEST_COST = 2 ** 52 - 1
/** With a clock given from outside, time in Redis and time in the test run at different speeds. */
const TEST_LINGER_MS = 600_000

/** What a batch depends on besides its questions. */
export interface BatchTerms {
  /** How the callers of homes are spread, by the name of the young hash, as far as this process knows. */
  readonly layouts: ReadonlyMap<string, RedisLayout>
  readonly homesPerRule: number
  /** Left out: the clock of Redis. */
  readonly now?: number | undefined
  /** Versions of rules that are no longer used are forgotten at once, for tests. */
  readonly forgetsVersions?: boolean | undefined
  /** Left out: what the script has. */
  readonly callersPerHash?: number | undefined
}

/** Questions as the script reads them: its keys, and its argument; and the homes that they are about. */
export interface EncodedBatch {
  readonly keys: readonly string[]
  readonly arg: string
  readonly homes: readonly RedisHome[]
}

export function encodeBatch(requests: readonly ScriptRequest[], terms: BatchTerms): EncodedBatch {
  const { layouts } = terms
  const clock = encodeTerms(terms)
  if (requests.length === 1 && isSingleCall(requests[0]!, layouts)) return encodeSingleCall(requests[0], clock)
  const batch = new BatchWriter(layouts)
  for (const request of requests) {
    if (isDecision(request)) batch.ask(request)
    else batch.amend(request)
  }
  const text = batch.end()
  return { keys: batch.keys, arg: `{${clock}${encodeBirths(batch.homes)}${text}}`, homes: batch.homes }
}

/** Lets parts of a home, of so many, live on for as long as the home matters. */
export function encodeKeep(parts: number, terms: BatchTerms): string {
  return `{${encodeTerms(terms)}"keep":${parts}}`
}

function encodeTerms({ homesPerRule, now, callersPerHash, forgetsVersions }: BatchTerms): string {
  let text = now === undefined ? '' : `"now":${now},"lingerMs":${TEST_LINGER_MS},`
  if (homesPerRule > 1) text += `"perRule":${homesPerRule},`
  if (callersPerHash !== undefined) text += `"most":${callersPerHash},`
  if (forgetsVersions) text += '"forgets":true,'
  return text
}

function isDecision(request: ScriptRequest): request is DecisionRequest {
  return request.what === 'take' || request.what === 'look'
}

/** A call to take, where no two charges go to one home; the script is quick with it. */
function isSingleCall(request: ScriptRequest, layouts: BatchTerms['layouts']): request is DecisionRequest {
  if (request.what !== 'take') return false
  const homes = new Set<string>()
  for (const { counter, key, cost } of request.charges) {
    const { young } = counter.homeOf(key)
    if (cost > 0 && cost <= LARGEST_COST && !layouts.has(young)) homes.add(young)
  }
  return homes.size === request.charges.length
}

/** When homes were born, as this process knows it; the reply is to say it of all of them if one is not known. */
function encodeBirths(homes: readonly RedisHome[]): string {
  let births = ''
  let isKnown = true
  for (const { born } of homes) {
    births += births === '' ? born : `,${born}`
    if (born === 0) isKnown = false
  }
  return `"born":[${births}],${isKnown ? '' : '"tell":1,'}`
}

function encodeSingleCall({ charges }: DecisionRequest, clock: string): EncodedBatch {
  const keys: string[] = []
  const homes: RedisHome[] = []
  const rules: string[] = []
  let lone = ''
  for (const { counter, key, cost, mayWait } of charges) {
    const home = counter.homeOf(key)
    keys.push(home.young, home.old)
    homes.push(home)
    rules.push(counter.json)
    lone += `${lone === '' ? '' : ','}${fieldJsonOf(key)},${cost * 2 + (mayWait ? 1 : 0)}`
  }
  return { keys, arg: `{${clock}${encodeBirths(homes)}"rules":[${rules}],"lone":[${lone}]}`, homes }
}

/** How the callers of each home are spread, where the reply says that the request had it otherwise. */
export function decodeLayouts(reply: unknown): RedisLayout[] | undefined {
  if (!Array.isArray(reply) || Number(reply[0]) !== -1 || reply.length % 2 === 0) return undefined
  const numbers = readNumbers(reply)
  return Array.from({ length: (numbers.length - 1) / 2 }, (_, h) => {
    return { code: numbers[h * 2 + 1]!, seed: numbers[h * 2 + 2]! }
  })
}

/** When each home was born, where the reply says that the request had it otherwise. */
export function decodeBirths(reply: unknown): readonly number[] | undefined {
  if (!Array.isArray(reply) || Number(reply[0]) !== -2) return undefined
  return readNumbers(reply).slice(1)
}

/** Writes the script's answers into the charges; returns the server's clock and whether each question was allowed. */
export function decodeBatch(
  requests: readonly ScriptRequest[],
  reply: unknown,
  homes: readonly RedisHome[] = [],
): { now: number; allowed: boolean[] } {
  const numbers = readNumbers(reply)
  let next = 1
  const allowed = requests.map(request => {
    if (request.what === 'catchUp') {
      for (const { counter, unfit } of request.charges) for (const _ of counter.meters) unfit.push(numbers[next++]!)
      return true
    }
    if (!isDecision(request)) return true
    let answer = true
    for (const charge of request.charges) {
      next = decodeCharge(charge, numbers, next)
      if (!charge.fits && charge.counter.enforced) answer = false
    }
    return answer
  })
  if (next + homes.length === numbers.length) for (const home of homes) home.born = numbers[next++]!
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
      if (delay > (mayWait ? meters[level]!.maxWaitUs : 0)) fits = false
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
  const values: readonly unknown[] = Array.isArray(reply) ? reply : []
  const numbers = areIntegers(values) ? values : values.map(Number)
  if (numbers.length > 0 && areIntegers(numbers)) return numbers
  throw new Error(`the script answered something other than numbers: ${String(reply).slice(0, 100)}`)
}

function areIntegers(values: readonly unknown[]): values is readonly number[] {
  for (let i = 0; i < values.length; i++) if (!Number.isInteger(values[i])) return false
  return true
}
