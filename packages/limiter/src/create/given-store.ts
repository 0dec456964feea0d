import { DianaError } from '../errors.ts'
import type { StoreOptions } from '../rules/schema/options.ts'
import type { RedisTarget } from '../stores/redis/connection/client.ts'
import type { TransactionalStore } from '../stores/transactional-store.ts'

/** The place of Redis: a URL, URLs of a Cluster, a client, or a function that sends a command. */
export interface RedisStoreOptions extends StoreOptions {
  readonly redis: RedisTarget
}

/** A store of your own, which counts for the whole fleet; see `diana-limiter/store`. */
export interface TransactionalStoreOptions extends StoreOptions, TransactionalStore {}

/** The store of `createLimiter`. */
export type GivenStore = RedisStoreOptions | TransactionalStoreOptions

/** Throws a DianaError if the option `store` names no store. */
export function assertStore(store: unknown): void {
  if (store === undefined) return
  const { custom, redis, transact, keys, close } = (store ?? {}) as Partial<Record<string, unknown>>
  if (custom !== undefined) {
    throw fault(
      'store.custom has become store.transact, one function: it reads ledgers, calls change, and writes what that returns; ' +
        'see "Your own store" in docs/extending.md',
    )
  }
  if (transact !== undefined) {
    for (const [name, method] of Object.entries({ transact, keys: keys ?? fault, close: close ?? fault })) {
      if (typeof method !== 'function') throw fault(`store.${name} must be a function, not ${typeof method}`)
    }
    return
  }
  if (typeof store !== 'object' || store === null || !('redis' in store)) {
    throw fault("store must say where Redis is, as in store: { redis: 'redis://127.0.0.1:6379' }")
  }
  if (redis === undefined || redis === null || (redis as unknown) === '') {
    throw fault(
      'store.redis is empty, as when an environment variable is not set: give the URL of Redis, or leave store out to ' +
        'count in this process',
    )
  }
}

/** Returns the option as a rule file would have it: an object has no form there, and is represented by an address. */
export function storeInput(store: GivenStore): StoreOptions & { redis: string | readonly string[] } {
  if ('transact' in store) {
    const { transact: _, keys: __, close: ___, ...options } = store
    const { timeout, fleet, prefix } = store
    // other fields of an object of a class are no options
    const isPlain = Object.getPrototypeOf(store) === Object.prototype
    return { ...(isPlain ? options : { timeout, fleet, prefix }), redis: 'redis://transact' }
  }
  const { redis } = store
  return { ...store, redis: typeof redis === 'string' || Array.isArray(redis) ? redis : 'redis://client' }
}

function fault(message: string): DianaError {
  return new DianaError('BAD_RULES', message)
}
