import { warnOnce } from '../../common/warn-once.ts'
import { UnreadableReply } from '../store-error.ts'
import { BatchWriter } from './batch-writer.ts'
import type { RedisCharge, RedisPartition } from './counter.ts'
import { RESETS } from './engine/engine.ts'
import type { RedisLayout } from './layout.ts'
import type { DecisionRequest, RedisLease, ScriptRequest } from './script-request.ts'

/** The engine's value for an infinite delay. */
const NEVER = -(2 ** 53)
/** With a clock given from outside, time in Redis and time in the test run at different speeds. */
const TEST_LINGER_MS = 600_000

/** What a batch depends on besides its questions. */
export interface BatchTerms {
  /** How the callers of partitions are spread, by the name of the current hash, as far as this process knows. */
  readonly layouts: ReadonlyMap<string, RedisLayout>
  readonly homesPerRule: number
  /** The clock of Redis as far as it is known, in microseconds; that of this process before. */
  readonly clock: () => number
  /** Left out: the clock of Redis. */
  readonly now?: number | undefined
  /** Versions of rules that are no longer used are forgotten at once, for tests. */
  readonly forgetsVersions?: boolean | undefined
  /** Left out: what the engine has. */
  readonly callersPerHash?: number | undefined
}

/** A batch as the engine reads it: its keys and its arguments; and the partitions that they are about. */
export interface EncodedBatch {
  readonly keys: readonly string[]
  readonly args: readonly string[]
  readonly partitions: readonly RedisPartition[]
}

export function encodeBatch(requests: readonly ScriptRequest[], terms: BatchTerms): EncodedBatch {
  const batch = new BatchWriter(terms.layouts, terms.clock)
  for (const request of requests) {
    if (isDecision(request)) batch.ask(request)
    else batch.amend(request)
  }
  const calls = batch.end()
  const { keys, rules, callers, partitions } = batch
  return {
    keys,
    args: [`{${encodeTerms(terms)}${encodeBirths(partitions)}${calls}}`, ...rules, ...callers],
    partitions,
  }
}

/** Extends the expiry of some shards of a partition to that of the partition. */
export function encodeKeep(shards: number, terms: BatchTerms): string {
  return `{${encodeTerms(terms)}"keep":${shards}}`
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

/** When partitions were created, as this process knows it; if one is not known, the reply lists all of them. */
function encodeBirths(partitions: readonly RedisPartition[]): string {
  let births = ''
  let isKnown = true
  for (const { createdAt } of partitions) {
    births += births === '' ? createdAt : `,${createdAt}`
    if (createdAt === 0) isKnown = false
  }
  return `"createdAt":[${births}],${isKnown ? '' : '"wantsCreationTimes":1,'}`
}

/** How the callers of each partition are spread, if the reply corrects the request. */
export function decodeLayouts(reply: unknown): RedisLayout[] | undefined {
  if (!Array.isArray(reply) || Number(reply[0]) !== -1 || reply.length % 2 === 0) return undefined
  const numbers = readNumbers(reply)
  return Array.from({ length: (numbers.length - 1) / 2 }, (_, h) => {
    return { code: numbers[h * 2 + 1]!, seed: numbers[h * 2 + 2]! }
  })
}

/** When each partition was created, if the reply corrects the request. */
export function decodeBirths(reply: unknown): readonly number[] | undefined {
  if (!Array.isArray(reply) || Number(reply[0]) !== -2) return undefined
  return readNumbers(reply).slice(1)
}

/** Writes the engine's answers into the charges; returns the server's clock and whether each request was allowed. */
export function decodeBatch(
  requests: readonly ScriptRequest[],
  reply: unknown,
  partitions: readonly RedisPartition[] = [],
): { now: number; allowed: boolean[] } {
  const numbers = readNumbers(reply)
  let next = 1
  const allowed = requests.map(request => {
    if (request.what === 'catchUp') {
      for (const { counter, unfit } of request.charges) for (const _ of counter.meters) unfit.push(numbers[next++]!)
      return true
    }
    if (request.what === 'lease') {
      for (const charge of request.charges) next = decodeLease(charge, numbers, next)
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
  if (next + partitions.length === numbers.length)
    for (const partition of partitions) partition.createdAt = numbers[next++]!
  if (next !== numbers.length) throw new UnreadableReply(`${next} numbers`, reply)
  return { now: numbers[0]!, allowed }
}

function decodeLease(lease: RedisLease, numbers: readonly number[], from: number): number {
  const next = from + lease.counter.meters.length * 3
  const figures = numbers.slice(from, next)
  const [remaining, resets, delays] = [0, 1, 2].map(place => figures.filter((_, i) => i % 3 === place))
  lease.answer = {
    remaining: remaining!,
    resets: resets!,
    delays: delays!,
    amount: numbers[next]!,
    lastsUs: numbers[next + 1]!,
    retryUs: numbers[next + 2]!,
    now: numbers[0]!,
    newest: numbers[next + 3]!,
  }
  const ignored = numbers[next + 4]!
  if (ignored > 0) warnOnce('DIANA_RESERVATION_IGNORED', `${ignored} of rule key ${JSON.stringify(lease.counter.tag)}`)
  return next + 5
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
  throw new UnreadableReply('numbers', reply)
}

function areIntegers(values: readonly unknown[]): values is readonly number[] {
  for (let i = 0; i < values.length; i++) if (!Number.isInteger(values[i])) return false
  return true
}
