import type { Algorithm } from '../algorithms/algorithm.ts'
import { attempt } from '../common/background.ts'
import { type Clock, inMicroseconds } from '../common/clock.ts'
import { DEFAULT_PREFIX } from '../common/redis-url.ts'
import { warnOnce } from '../common/warn-once.ts'
import type { SharedStoresOptions } from '../engine/create-shared-stores.ts'
import type { StoreAddress } from '../rules/rule.ts'
import type { MoveCredit } from '../stores/credits.ts'
import { creditInLedgers } from '../stores/ledgers/ledger-credits.ts'
import { LedgerRegistry } from '../stores/ledgers/ledger-registry.ts'
import { LedgerStore } from '../stores/ledgers/ledger-store.ts'
import { fleetName, RedisRegistry } from '../stores/membership/redis-registry.ts'
import { observerRegistry } from '../stores/membership/registry.ts'
import { connectRedis, type RedisTarget } from '../stores/redis/connection/client.ts'
import { warnOfEviction } from '../stores/redis/connection/memory-policy.ts'
import { creditInRedis } from '../stores/redis/redis-credits.ts'
import { RedisStore } from '../stores/redis/redis-store.ts'
import type { SendCommand } from '../stores/redis/send-command.ts'
import type { SharedStore } from '../stores/store.ts'
import { connectionError } from '../stores/store-error.ts'
import type { GivenStore, TransactionalStoreOptions } from './given-store.ts'

/** The fleet's store, and what ends with the limiter. */
export interface OpenedStore extends Omit<SharedStoresOptions, 'machine' | 'machineProcesses'> {
  readonly fleet: SharedStore
  readonly disconnect: () => void
  /** Sends a command to the Redis that counts. */
  readonly send?: SendCommand | undefined
  readonly moveCredit: MoveCredit
  /** Warns if Redis is set up to delete counts. */
  readonly adviseOnMemory?: (() => void) | undefined
}

export interface OpenStoreOptions {
  readonly clock?: Clock | undefined
  /** True if it decides no calls. */
  readonly isObserver?: boolean | undefined
  /** All algorithms, also those of plugins. */
  readonly algorithms: readonly Algorithm[]
}

/** Connects to the store of a document, or to the one that was given in code. */
export async function openStore(
  given: GivenStore | undefined,
  { redis: urls, prefix = DEFAULT_PREFIX }: StoreAddress,
  options: OpenStoreOptions,
): Promise<OpenedStore> {
  if (given && 'transact' in given) return openLedgers(given, prefix, options)
  const { clock, isObserver } = options
  const connection = await connectRedis(targetIn(given?.redis, urls))
  const { send, masters, isCluster, close, reconnect, onReady, onLost, lastError, hasWorked } = connection
  const members = new RedisRegistry(send, fleetName(prefix), (apart, size) => {
    warnOnce('DIANA_COUNTS_APART', `${apart} of the ${size} processes that use the prefix ${prefix}`)
  })
  const adviseOnMemory = (): void => void warnOfEviction(send)
  onReady?.(adviseOnMemory)
  const fleet = new RedisStore(send, {
    ...{ prefix, isCluster, masters, now: clock && inMicroseconds(clock) },
    onFunctionsForbidden: error => warnOnce('DIANA_STORE_FUNCTIONS', String(error)),
  })
  return {
    fleet,
    moveCredit: creditInRedis(send, prefix),
    registry: isObserver ? observerRegistry(() => members.count()) : members,
    hasParts: isCluster,
    disconnect: () => {
      fleet.close()
      close()
    },
    send,
    reconnect,
    onReady,
    onLost,
    lastError: lastError && (() => connectionError(lastError(), hasWorked?.() ?? false)),
    adviseOnMemory,
  }
}

function openLedgers(
  given: TransactionalStoreOptions,
  prefix: string,
  { clock, isObserver, algorithms }: OpenStoreOptions,
): OpenedStore {
  const now = clock && inMicroseconds(clock)
  const fleet = new LedgerStore(given, { algorithms, prefix, now })
  const members = new LedgerRegistry(given, { prefix, now })
  return {
    fleet,
    moveCredit: creditInLedgers(given, prefix),
    registry: isObserver ? observerRegistry(() => members.count()) : members,
    disconnect: () => {
      fleet.close()
      attempt('closing the store', () => given.close?.())
    },
  }
}

/** Returns what was given in code, except for addresses, which are taken as they were read: they may be in the environment. */
function targetIn(given: RedisTarget | undefined, urls: readonly string[]): RedisTarget {
  if (Array.isArray(given)) return urls
  if (given !== undefined && typeof given !== 'string') return given
  return urls.length === 1 ? urls[0]! : urls
}
