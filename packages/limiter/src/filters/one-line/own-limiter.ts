import { once } from '../../common/once.ts'
import { warnOnce } from '../../common/warn-once.ts'
import { beginLimiter } from '../../create/create-limiter.ts'
import { engineOf } from '../../engine/engine-of.ts'
import { DianaError } from '../../errors.ts'
import type { Limiter } from '../../limiter.ts'
import type { Filter } from '../filter.ts'
import type { Framework } from '../frameworks/framework.ts'
import { DEFAULT_ID, fault, type RateLimitOptions, sortOptions } from './options.ts'

/** The parts that a filter made by `rateLimit({ limit })` has besides being a filter. */
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

/** The open filters that one line of a program has made with the same options. */
interface Alike {
  count: number
  /** True if one of them has seen a request before the next was made, as in a handler that makes one for each request. */
  hasServed: boolean
}

/** More filters with the same options than a line of a program mounts on routes. */
const MOST_ALIKE = 50
const MOST_KINDS = 1000
const alike = new Map<string, Alike>()
/** The stores in which a filter without an id of its own counts. */
const stores = new Set<unknown>()

/**
 * Creates a filter by one limit. Options are checked at once. The engine is loaded in the background, and requests that arrive before
 * wait for that. If the limiter then cannot be made, the process ends with the error, as if it had been thrown here; if the
 * application keeps the process alive, every request is refused.
 */
export function createOwnFilter<Request, Reply>(
  given: RateLimitOptions<Request, Reply, never>,
  framework: Framework<Request, Reply>,
  own: readonly string[] = [],
): OwnFilter<Request, Reply> {
  const { limiter: options, filter: filterOptions, functions, passesPreflights } = sortOptions(given, own)
  const release = claimStore(given)
  const calledAt = new Error()
  const { onEarlyRequest, forget } = followAlike(given, calledAt)
  const limiter = beginLimiter(options).catch((error: Error) => {
    throw explained(error, calledAt)
  })
  const filter = {
    limiter: undefined as unknown as Limiter,
    trust: undefined as unknown as Filter<Request, Reply>['trust'],
    ...{ framework, options: filterOptions, rules: [], only: false, functions, passesPreflights },
    pending: undefined as Promise<void> | undefined,
    onEarlyRequest,
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

/** Claims the id of a limit: in one Redis, limits of the same id are one limit; in this process each has its own counts. */
function claimStore({ store, id }: RateLimitOptions<never, never, never>): () => void {
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

/** Warns if a filter is made where one with the same options has served already, until `forget` is called. */
function followAlike(
  { limit, by, id }: RateLimitOptions<never, never, never>,
  { stack = '' }: Error,
): { onEarlyRequest: () => void; forget: () => void } {
  const textOf = (_name: string, value: unknown): unknown => (typeof value === 'function' ? 'function' : value)
  const kind = JSON.stringify([limit, id, by, linesOf(stack)[0]], textOf)
  const known = alike.get(kind) ?? { count: 0, hasServed: false }
  if (alike.size < MOST_KINDS) alike.set(kind, known)
  known.count++
  if (known.hasServed || known.count >= MOST_ALIKE) warnOnce('DIANA_MADE_OFTEN')
  return {
    onEarlyRequest: () => {
      known.hasServed = true
    },
    forget: once(() => {
      known.count--
      if (known.count === 0) alike.delete(kind)
    }),
  }
}

/** Returns the lines of a stack below `rateLimit`; functions of a minified program have other names. */
function linesOf(stack: string): string[] {
  const lines = stack.split('\n')
  const at = lines.findIndex(line => /^ *at (?:\S+\.)?rateLimit /.test(line))
  return lines.slice(at < 0 ? 3 : at + 1)
}

/** Returns the mistakes of the rule as those of the options, with the line of the program that gave them. */
function explained(error: Error, { stack = '' }: Error): Error {
  if (!(error instanceof DianaError)) return error
  const message = error.message.replace(/^(?:rule "[^"]*": )?(?:rules\[0\]\.?)?/gm, '')
  const made = new DianaError(
    error.code,
    `rateLimit: ${message}`,
    error.cause === undefined ? {} : { cause: error.cause },
  )
  made.stack = `${made.name}: ${made.message}\n${linesOf(stack).join('\n')}`
  return made
}
