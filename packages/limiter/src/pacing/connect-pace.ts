import type { Curve } from '../algorithms/smooth.ts'
import { DEFAULT_PREFIX } from '../common/redis-url.ts'
import { TooLate } from '../common/within.ts'
import { Fleet } from '../stores/membership/fleet.ts'
import { Heartbeat } from '../stores/membership/heartbeat.ts'
import { RedisRegistry } from '../stores/membership/redis-registry.ts'
import { connectRedis, type RedisConnection, type RedisTarget } from '../stores/redis/connection/client.ts'
import { paceKey, RedisPace } from '../stores/redis/pace.ts'

export interface FleetPaceOptions {
  readonly redis: RedisTarget
  /** The beginning of its keys; default: diana. */
  readonly prefix?: string | undefined
  /** All processes that use this name share the pace. */
  readonly name: string
  readonly timeoutMs: number
  readonly curveAt: (rate: number) => Curve
  /** Whole microseconds. */
  readonly now: () => number
}

/** A pace in Redis, and the processes that share it. */
export interface Connected {
  readonly connection: RedisConnection
  readonly pace: RedisPace
  readonly fleet: Fleet
  readonly heartbeat: Heartbeat
}

export interface PaceHooks {
  /** This process has registered, for the first time or again. */
  onRegistered(pace: RedisPace): Promise<void>
  /** This process's share of the pace has changed. */
  onChange(): void
}

/** Connects to Redis and joins the processes that share a pace. Loaded with the first shared pace: most programs have none. */
export async function connectPace(options: FleetPaceOptions, hooks: PaceHooks): Promise<Connected> {
  const { redis, prefix = DEFAULT_PREFIX, name, timeoutMs, curveAt } = options
  const connection = await connectRedis(redis)
  const { send } = connection
  const key = paceKey(prefix, name)
  const pace = new RedisPace(send, key, curveAt)
  const registry = new RedisRegistry(send, key)
  const register: RedisRegistry['register'] = async sign => {
    const membership = await registry.register(sign)
    await hooks.onRegistered(pace)
    return membership
  }
  const fleet = new Fleet(
    { register, share: claim => registry.share(claim), leave: () => registry.leave() },
    { assumed: 1, onChange: () => hooks.onChange() },
  )
  const heartbeat = new Heartbeat(fleet, {
    timeoutMs,
    classify: error => ({ isSilent: error instanceof TooLate, kind: 'down' }),
    isPaused: () => false,
    onTrouble: () => {},
    onForgotten: () => {},
  })
  await heartbeat.start()
  return { connection, pace, fleet, heartbeat }
}
