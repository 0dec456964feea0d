import { warnOnce } from '../../common/warn-once.ts'
import { UnreadableReply } from '../store-error.ts'
import type { RedisCharge } from './counter.ts'
import { RESETS } from './engine/engine.ts'
import type { RedisLease, ScriptRequest } from './script-request.ts'

/** The engine's value for an infinite delay. */
const NEVER = -(2 ** 53)

/** What the engine replies: answers; or when the store was created; or the places of rules that it has to be told. */
export type Reply =
  | {
      readonly kind: 'answers'
      readonly now: number
      readonly allowed: readonly boolean[]
      readonly createdAt: number | undefined
    }
  | { readonly kind: 'era'; readonly createdAt: number }
  | { readonly kind: 'rules'; readonly places: readonly number[] }

/** Reads a reply, and writes answers into the charges; `asksEra` if the moment at which the store was created was asked for. */
export function readReply(requests: readonly ScriptRequest[], reply: unknown, asksEra: boolean): Reply {
  const numbers = readNumbers(reply)
  if (numbers[0] === -2 && numbers.length === 2) return { kind: 'era', createdAt: numbers[1]! }
  if (numbers[0] === -3 && numbers.length > 1) return { kind: 'rules', places: numbers.slice(1) }
  let next = 1
  const allowed = requests.map(request => {
    if (request.what === 'catchUp') {
      for (const { counter, unfit } of request.charges) for (const _ of counter.meters) unfit.push(numbers[next++]!)
      return true
    }
    if (request.what === 'lease') {
      for (const charge of request.charges) next = readLease(charge, numbers, next)
      return true
    }
    if (request.what !== 'take' && request.what !== 'look') return true
    let answer = true
    for (const charge of request.charges) {
      next = readCharge(charge, numbers, next)
      if (!charge.fits && charge.counter.enforced) answer = false
    }
    return answer
  })
  const createdAt = asksEra ? numbers[next++] : undefined
  if (next !== numbers.length || numbers[0]! < 0) throw new UnreadableReply(`${next} numbers`, reply)
  return { kind: 'answers', now: numbers[0]!, allowed, createdAt }
}

function readLease(lease: RedisLease, numbers: readonly number[], from: number): number {
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

function readCharge(charge: RedisCharge, numbers: readonly number[], from: number): number {
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
