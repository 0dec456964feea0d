import { type Clock, inMicroseconds } from '../common/clock.ts'
import { DEFAULT_PREFIX } from '../common/redis-url.ts'
import { warnOnce } from '../common/warn-once.ts'
import { DianaError } from '../errors.ts'
import type { StoreAddress } from '../rules/rule.ts'
import type { StoreOptions } from '../rules/schema/options.ts'
import { fleetName, RedisRegistry } from '../stores/membership/redis-registry.ts'
import { type MembershipRegistry, observerRegistry } from '../stores/membership/registry.ts'
import { connectRedis, type RedisTarget } from '../stores/redis/connection/client.ts'
import { warnOfEviction } from '../stores/redis/connection/memory-policy.ts'
import { RedisStore } from '../stores/redis/redis-store.ts'
import { RedisStatistics } from '../stores/redis/statistics.ts'
import type { SharedStore } from '../stores/store.ts'
import type { SharedStoresOptions } from './create-shared-stores.ts'

/** Where Redis is: a URL, URLs of a Cluster, a client, or a function that sends a command. */
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

/** The fleet's store, and what ends with the limiter. */
export interface OpenedStore extends Omit<SharedStoresOptions, 'machine' | 'machineProcesses'> {
  readonly fleet: SharedStore
  readonly statistics?: RedisStatistics | undefined
  readonly disconnect: () => void
  /** Warns if Redis is set up to delete counts. */
  readonly adviseOnMemory?: (() => void) | undefined
}

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

/** The option as a rule file would have it: an object has no form there, and is represented by an address. */
export function storeInput(store: GivenStore): StoreOptions & { redis: string | readonly string[] } {
  if ('custom' in store) {
    const { custom: _, ...options } = store
    return { ...options, redis: 'redis://custom' }
  }
  const { redis } = store
  return { ...store, redis: typeof redis === 'string' || Array.isArray(redis) ? redis : 'redis://client' }
}

/** Connects to the store of a document, or to the one that was given in code. */
export async function openStore(
  given: GivenStore | undefined,
  { redis: urls, prefix = DEFAULT_PREFIX }: StoreAddress,
  { clock, isObserver }: { clock?: Clock | undefined; isObserver?: boolean | undefined },
): Promise<OpenedStore> {
  if (given && 'custom' in given) return openCustom(given.custom, isObserver)
  const connection = await connectRedis(targetIn(given?.redis, urls))
  const { send, sendToMasters, isCluster, close, reconnect, onReady, lastError } = connection
  const members = new RedisRegistry(send, fleetName(prefix))
  const adviseOnMemory = (): void => void warnOfEviction(send)
  onReady?.(adviseOnMemory)
  return {
    fleet: new RedisStore(send, {
      ...{ prefix, isCluster, sendToMasters, now: clock && inMicroseconds(clock) },
      onFunctionsForbidden: error => warnOnce('DIANA_STORE_FUNCTIONS', String(error)),
    }),
    registry: isObserver ? observerRegistry(() => members.count()) : members,
    hasParts: isCluster,
    statistics: new RedisStatistics(send, { prefix, isCluster }),
    disconnect: close,
    reconnect,
    onReady,
    lastError,
    adviseOnMemory,
  }
}

function openCustom(custom: CustomStoreOptions['custom'], isObserver = false): OpenedStore {
  const { register, leave } = custom
  const isRegistry = register !== undefined && leave !== undefined
  const registry = isRegistry && !isObserver ? (custom as MembershipRegistry) : undefined
  // the limiter closes the store itself
  return { fleet: custom, registry, disconnect: () => {} }
}

/** What was given in code, except for addresses, which are taken as they were read: they may be in the environment. */
function targetIn(given: RedisTarget | undefined, urls: readonly string[]): RedisTarget {
  if (Array.isArray(given)) return urls
  if (given !== undefined && typeof given !== 'string') return given
  return urls.length === 1 ? urls[0]! : urls
}

function fault(message: string): DianaError {
  return new DianaError('BAD_RULES', message)
}
