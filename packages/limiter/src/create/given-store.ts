import { DianaError } from '../errors.ts'
import type { StoreOptions } from '../rules/schema/options.ts'
import type { MembershipRegistry } from '../stores/membership/registry.ts'
import type { RedisTarget } from '../stores/redis/connection/client.ts'
import type { SharedStore } from '../stores/store.ts'

/** The place of Redis: a URL, URLs of a Cluster, a client, or a function that sends a command. */
export interface RedisStoreOptions extends StoreOptions {
  readonly redis: RedisTarget
}

/** A store of your own, which counts for the whole fleet; see `diana-limiter/store`. */
export interface CustomStoreOptions extends Pick<StoreOptions, 'timeout' | 'fleet'> {
  /** If it is also a registry, each process has its share of the limits while the store cannot be asked. */
  readonly custom: SharedStore & Partial<MembershipRegistry>
}

/** The store of `createLimiter`. */
export type GivenStore = RedisStoreOptions | CustomStoreOptions

const STORE_METHODS = [
  'createCounter',
  'take',
  'look',
  'giveBack',
  'refund',
  'catchUp',
  'keys',
  'reset',
  'close',
] as const

/** Throws a DianaError if the option `store` names no store. */
export function assertStore(store: unknown): void {
  if (store === undefined) return
  const { custom, redis } = (store ?? {}) as Partial<RedisStoreOptions & CustomStoreOptions>
  if (custom !== undefined) {
    assertMethods(custom)
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

function assertMethods(custom: unknown): void {
  const missing = STORE_METHODS.filter(name => typeof (custom as Partial<SharedStore> | null)?.[name] !== 'function')
  if (missing.length === 0) return
  throw fault(`store.custom lacks ${missing.join(', ')}: give an object with the methods of SharedStore`)
}

/** Returns the option as a rule file would have it: an object has no form there, and is represented by an address. */
export function storeInput(store: GivenStore): StoreOptions & { redis: string | readonly string[] } {
  if ('custom' in store) {
    const { custom: _, ...options } = store
    return { ...options, redis: 'redis://custom' }
  }
  const { redis } = store
  return { ...store, redis: typeof redis === 'string' || Array.isArray(redis) ? redis : 'redis://client' }
}

function fault(message: string): DianaError {
  return new DianaError('BAD_RULES', message)
}
