import { once } from '../../common/once.ts'
import { warnOnce } from '../../common/warn-once.ts'
import { beginLimiter } from '../../create/create-limiter.ts'
import { engineOf } from '../../engine/engine-of.ts'
import { DianaError } from '../../errors.ts'
import type { Limiter } from '../../limiter.ts'
import type { Filter } from '../filter.ts'
import type { Framework } from '../frameworks/framework.ts'
import { DEFAULT_ID, fault, type RateLimitOptions, sortOptions } from './options.ts'

/** What a filter made by `rateLimit({ limit })` has besides being a filter. */
export interface OwnLimiter {
  /** The limiter behind it; a process that counts in Redis has it before it is connected. */
  readonly limiter: Promise<Limiter>
  /** Ends its connection and timers; the filter then lets all requests pass, unless `whenFailed` is `refuse`. A process can end without it unless it counts in Redis. */
  close(): Promise<void>
}

/** A filter whose limiter is made in the background, and the way to close it. */
export interface OwnFilter<Request, Reply> extends OwnLimiter {
  readonly filter: Filter<Request, Reply>
}

/** More filters with the same options than an application has routes. */
const MOST_ALIKE = 50
const MOST_KINDS = 1000
const alike = new Map<string, number>()
/** The stores in which a filter without an id of its own counts. */
const stores = new Set<unknown>()

/**
 * A filter by one limit. Names of options are checked at once. The engine and zod are loaded in the background, and requests
 * that arrive before wait for that; if the limit then proves invalid, the process ends with the error, as if it had been thrown here.
 */
export function createOwnFilter<Request, Reply>(
  given: RateLimitOptions<Request>,
  framework: Framework<Request, Reply>,
  own: readonly string[] = [],
): OwnFilter<Request, Reply> {
  const { limiter: options, filter: filterOptions } = sortOptions(given, own)
  const release = claimStore(given)
  const forget = countAlike(given)
  const calledAt = new Error()
  const limiter = beginLimiter(options).catch((error: Error) => {
    throw explained(error, calledAt)
  })
  const filter = {
    limiter: undefined as unknown as Limiter,
    trust: undefined as unknown as Filter<Request, Reply>['trust'],
    ...{ framework, options: filterOptions, rules: [], only: false, whenFailed: given.whenFailed },
    pending: undefined as Promise<void> | undefined,
  }
  filter.pending = limiter.then(ready => {
    filter.limiter = ready
    filter.trust = engineOf(ready)
    filter.pending = undefined
  })
  // requests report it, and so does the process
  filter.pending.catch(() => {})
  limiter.catch(error => {
    setImmediate(() => {
      throw error
    })
  })
  const close = async (): Promise<void> => {
    release()
    forget()
    const ready = await limiter.catch(() => undefined)
    await ready?.close()
  }
  return { filter, limiter, close }
}

/** Adds what a filter with its own limiter has to the handler that a framework takes. */
export function withOwnLimiter<Handler extends object>(
  handler: Handler,
  { limiter, close }: OwnLimiter,
): Handler & OwnLimiter {
  return Object.assign(handler, { limiter, close })
}

/** In one Redis, limits of the same id are one limit; in this process each has its own counts. */
function claimStore({ store, id }: RateLimitOptions<never>): () => void {
  if (store === undefined || id !== undefined) return () => {}
  const place = typeof store === 'object' && 'redis' in store ? store.redis : store
  if (stores.has(place)) {
    throw fault(
      `two limits in one store need names, or they are counted as one: write id: 'login', not only "${DEFAULT_ID}"`,
    )
  }
  stores.add(place)
  return () => void stores.delete(place)
}

/** Counts the open filters with the same options, until the returned function is called; many are a mistake. */
function countAlike({ limit, by, id }: RateLimitOptions<never>): () => void {
  const kind = JSON.stringify([limit, id, typeof by === 'function' ? 'function' : by])
  const count = (alike.get(kind) ?? 0) + 1
  if (alike.size >= MOST_KINDS && count === 1) return () => {}
  alike.set(kind, count)
  if (count >= MOST_ALIKE) warnOnce('DIANA_MADE_OFTEN')
  return once(() => {
    const left = (alike.get(kind) ?? 1) - 1
    if (left === 0) alike.delete(kind)
    else alike.set(kind, left)
  })
}

/** The mistakes of the rule as those of the options, with the line of the program that gave them. */
function explained(error: Error, { stack = '' }: Error): Error {
  if (!(error instanceof DianaError)) return error
  const message = error.message.replace(/^options:\d+:\d+(?: rule "[^"]*")?: (?:rules\[0\]\.?)?/gm, '')
  const made = new DianaError(
    error.code,
    `rateLimit: ${message}`,
    error.cause === undefined ? {} : { cause: error.cause },
  )
  made.stack = `${made.name}: ${made.message}\n${stack.split('\n').slice(2).join('\n')}`
  return made
}
