import { type Clock, inMicroseconds } from '../common/clock.ts'
import { DEFAULT_PREFIX } from '../common/redis-url.ts'
import { warnOnce } from '../common/warn-once.ts'
import type { SharedStoresOptions } from '../engine/create-shared-stores.ts'
import type { StoreAddress } from '../rules/rule.ts'
import { fleetName, RedisRegistry } from '../stores/membership/redis-registry.ts'
import { type MembershipRegistry, observerRegistry } from '../stores/membership/registry.ts'
import { connectRedis, type RedisTarget } from '../stores/redis/connection/client.ts'
import { warnOfEviction } from '../stores/redis/connection/memory-policy.ts'
import { RedisStore } from '../stores/redis/redis-store.ts'
import type { SendCommand } from '../stores/redis/send-command.ts'
import type { SharedStore } from '../stores/store.ts'
import type { CustomStoreOptions, GivenStore } from './given-store.ts'

/** The fleet's store, and what ends with the limiter. */
export interface OpenedStore extends Omit<SharedStoresOptions, 'machine' | 'machineProcesses'> {
  readonly fleet: SharedStore
  readonly disconnect: () => void
  /** Sends a command to the Redis that counts. */
  readonly send?: SendCommand | undefined
  /** Warns if Redis is set up to delete counts. */
  readonly adviseOnMemory?: (() => void) | undefined
}

/** Connects to the store of a document, or to the one that was given in code. */
export async function openStore(
  given: GivenStore | undefined,
  { redis: urls, prefix = DEFAULT_PREFIX }: StoreAddress,
  { clock, isObserver }: { clock?: Clock | undefined; isObserver?: boolean | undefined },
): Promise<OpenedStore> {
  if (given && 'custom' in given) return openCustom(given.custom, isObserver)
  const connection = await connectRedis(targetIn(given?.redis, urls))
  const { send, masters, isCluster, close, reconnect, onReady, onLost, lastError } = connection
  const members = new RedisRegistry(send, fleetName(prefix), (apart, size) => {
    warnOnce('DIANA_COUNTS_APART', `${apart} of the ${size} processes that use the prefix ${prefix}`)
  })
  const adviseOnMemory = (): void => void warnOfEviction(send)
  onReady?.(adviseOnMemory)
  return {
    fleet: new RedisStore(send, {
      ...{ prefix, isCluster, masters, now: clock && inMicroseconds(clock) },
      onFunctionsForbidden: error => warnOnce('DIANA_STORE_FUNCTIONS', String(error)),
    }),
    registry: isObserver ? observerRegistry(() => members.count()) : members,
    hasParts: isCluster,
    disconnect: close,
    send,
    reconnect,
    onReady,
    onLost,
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

/** Returns what was given in code, except for addresses, which are taken as they were read: they may be in the environment. */
function targetIn(given: RedisTarget | undefined, urls: readonly string[]): RedisTarget {
  if (Array.isArray(given)) return urls
  if (given !== undefined && typeof given !== 'string') return given
  return urls.length === 1 ? urls[0]! : urls
}
