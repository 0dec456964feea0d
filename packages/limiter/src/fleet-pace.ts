import { performance } from 'node:perf_hooks'
import { type Curve, emptied, Smooth } from './algorithms/smooth.ts'
import { within } from './stores/deadline.ts'
import { Fleet } from './stores/fleet.ts'
import { Heartbeat } from './stores/heartbeat.ts'
import { RedisStore } from './stores/redis.ts'
import { connectRedis, type RedisConnection, type RedisTarget } from './stores/redis-client.ts'
import { escapePart, type RedisCounter, redisCharge } from './stores/redis-counter.ts'
import { RedisRoll } from './stores/redis-roll.ts'

/** Permits that were taken: how long until they are there, and how to give them back. */
export interface Reservation {
  readonly waitUs: number
  giveBack(): void
}

export interface FleetPaceOptions {
  readonly redis: RedisTarget
  /** Whoever uses the same name shares the pace. */
  readonly name: string
  readonly timeoutMs: number
  readonly curveAt: (rate: number) => Curve
  /** Whole microseconds. */
  readonly now: () => number
}

interface Connected {
  readonly connection: RedisConnection
  readonly store: RedisStore
  readonly fleet: Fleet
  readonly heartbeat: Heartbeat
}

/** Redis is not asked again for so long after it has failed. */
const RETRY_MS = 1000
/** Longer than anybody waits; what is without end cannot be written down. */
const ENDLESS_US = 2 ** 52
/** So many ways to wait are known at one time. */
const MOST_COUNTERS = 100

/**
 * The pace of jobs that several processes share in Redis. While Redis cannot be asked, each process goes on at its part of
 * the rate, with nothing saved.
 */
export class FleetPace {
  readonly #options: FleetPaceOptions
  readonly #counters = new Map<number, RedisCounter>()
  #connecting: Promise<Connected> | undefined
  #rate: number
  #retryAt = 0
  #here: { readonly smooth: Smooth; readonly state: Float64Array } | undefined

  constructor(rate: number, options: FleetPaceOptions) {
    this.#rate = rate
    this.#options = options
  }

  set rate(rate: number) {
    this.#rate = rate
    this.#counters.clear()
    this.#here = undefined
  }

  /** Takes permits that are there within `patienceUs`; undefined where none are, and nothing is taken. */
  async take(permits: number, patienceUs: number): Promise<Reservation | undefined> {
    this.#connecting ??= this.#connect()
    const { store, fleet } = await this.#connecting
    if (performance.now() < this.#retryAt) return this.#takeHere(permits, patienceUs, fleet.part.size)
    const counter = this.#counterFor(Math.min(patienceUs, ENDLESS_US), store)
    const charge = Object.assign(redisCharge(counter), { key: '', cost: permits })
    const asked = store.take([charge])
    try {
      const { allowed, now } = await within(asked, this.#options.timeoutMs)
      this.#here = undefined
      if (!allowed) return undefined
      return { waitUs: charge.wait, giveBack: () => store.refund([charge], now) }
    } catch {
      // what is answered later is nobody's
      asked.then(({ allowed, now }) => allowed && store.refund([charge], now)).catch(() => {})
      this.#retryAt = performance.now() + RETRY_MS
      return this.#takeHere(permits, patienceUs, fleet.part.size)
    }
  }

  async close(): Promise<void> {
    const connected = await this.#connecting?.catch(() => undefined)
    if (!connected) return
    const { heartbeat, fleet, store, connection } = connected
    heartbeat.stop()
    await within(fleet.leave(), this.#options.timeoutMs).catch(() => {})
    store.close()
    connection.close()
  }

  async #connect(): Promise<Connected> {
    const { redis, name, timeoutMs } = this.#options
    const connection = await connectRedis(redis)
    const { send, isCluster } = connection
    const fleet = new Fleet(new RedisRoll(send, { prefix: `diana:pace:${escapePart(name)}` }), {
      assumed: 1,
      onChange: () => {
        this.#here = undefined
      },
    })
    const heartbeat = new Heartbeat(fleet, { timeoutMs, isPaused: () => false, onTrouble: () => {} })
    await heartbeat.start()
    return { connection, store: new RedisStore(send, { isCluster }), fleet, heartbeat }
  }

  /** How long a call may wait belongs to the counter, and what is counted does not depend on it. */
  #counterFor(patienceUs: number, store: RedisStore): RedisCounter {
    const known = this.#counters.get(patienceUs)
    if (known) return known
    if (this.#counters.size === MOST_COUNTERS) this.#counters.clear()
    const { name, curveAt } = this.#options
    const meters = [new Smooth(curveAt(this.#rate), patienceUs)]
    const counter = store.createCounter({ id: name, algorithm: 'rate-limiter', enforced: true, meters })
    this.#counters.set(patienceUs, counter)
    return counter
  }

  #takeHere(permits: number, patienceUs: number, processes: number): Reservation | undefined {
    const { curveAt, now: clock } = this.#options
    const now = clock()
    if (!this.#here) {
      const curve = curveAt(this.#rate / processes)
      this.#here = { smooth: new Smooth(curve, Number.POSITIVE_INFINITY), state: emptied(curve, now) }
    }
    const { smooth, state } = this.#here
    const waitUs = smooth.delay(state, 0, now)
    if (waitUs > patienceUs) return undefined
    smooth.take(state, 0, now, permits, waitUs)
    return { waitUs, giveBack: () => smooth.giveBack(state, 0, clock(), permits, now + waitUs) }
  }
}
