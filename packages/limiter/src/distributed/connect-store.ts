import type { EngineOptions } from '../engine/engine.ts'
import { fleetName, RedisRegistry } from '../stores/membership/redis-registry.ts'
import { observerRegistry } from '../stores/membership/registry.ts'
import { connectRedis, type RedisTarget } from '../stores/redis/connection/client.ts'
import { warnOfEviction } from '../stores/redis/connection/memory-policy.ts'
import { RedisStore } from '../stores/redis/redis-store.ts'
import { RedisStatistics } from '../stores/redis/statistics.ts'

/** Redis as an engine uses it, and how to leave it. */
export interface ConnectedStore
  extends Pick<EngineOptions, 'fleet' | 'registry' | 'hasParts' | 'reconnect' | 'onReady' | 'lastError'> {
  readonly statistics: RedisStatistics
  readonly disconnect: () => void
  readonly adviseOnMemory: () => void
}

export interface ConnectOptions {
  /** What every key in Redis begins with. */
  readonly prefix: string
  /** Whole microseconds; left out, the clock of Redis. */
  readonly now: (() => number) | undefined
  /** Whether this process decides no calls, so that no share of a limit is set aside for it. */
  readonly isObserver: boolean | undefined
}

/** Opens the store in which rules are counted for the whole fleet. */
export async function connectStore(
  target: RedisTarget,
  { prefix, now, isObserver }: ConnectOptions,
): Promise<ConnectedStore> {
  const { send, isCluster, close, reconnect, onReady, lastError } = await connectRedis(target)
  const fleet = new RedisStore(send, { prefix, isCluster, now })
  const statistics = new RedisStatistics(send, { prefix, isCluster })
  const members = new RedisRegistry(send, fleetName(prefix))
  const registry = isObserver ? observerRegistry(() => members.count()) : members
  const adviseOnMemory = (): void => void warnOfEviction(send)
  onReady?.(adviseOnMemory)
  return {
    fleet,
    registry,
    hasParts: isCluster,
    statistics,
    disconnect: close,
    reconnect,
    onReady,
    lastError,
    adviseOnMemory,
  }
}
