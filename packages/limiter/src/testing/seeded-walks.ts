import { algorithms } from '../algorithms/index.ts'
import { LedgerStore } from '../stores/ledgers/ledger-store.ts'
import type { SendCommand } from '../stores/redis/send-command.ts'
import { LimiterWalk } from './limiter-walk.ts'
import { StoreWalk, walkAlgorithms } from './store-walk.ts'
import { MapStore } from './stores/map-store.ts'
import { randomDice } from './walk.ts'
import { type CreateWalkedStore, walkedInRedis } from './walked-store.ts'

/** The stores that walks count in. */
export interface WalkedStores {
  readonly create: CreateWalkedStore
  /** Deletes all counts, so that walks need no more room than some of them. */
  empty(): Promise<unknown>
}

/** Returns a Redis in which walks count, which is emptied. */
export function inRedis(send: SendCommand): WalkedStores {
  return { create: walkedInRedis(send), empty: () => send(['FLUSHALL']) }
}

/** Returns ledgers in which walks count. */
export function inMap(): WalkedStores {
  return {
    create: options => new LedgerStore(new MapStore(), { ...options, algorithms }),
    empty: async () => {},
  }
}

export interface SeededWalks extends WalkedStores {
  readonly seed: number
  /** The number of moves in all. */
  readonly steps: number
  readonly onProgress?: ((steps: number, differences: number) => void) | undefined
}

/** A difference between the stores, and how to see it again. */
export interface Difference {
  readonly walk: number
  readonly step: number
  readonly algorithms: readonly string[]
  readonly error: unknown
}

export interface LimiterWalks {
  /** The Redis that the answers of memory are compared with; without it, memory is checked alone. */
  readonly redis?: { readonly url: string; readonly send: SendCommand } | undefined
  readonly seed: number
  readonly steps: number
  readonly leases?: boolean | undefined
  readonly onProgress?: ((steps: number, differences: number) => void) | undefined
}

/** Walks at random through the public API, on limiters that count in memory and in Redis. */
export async function limiterWalks({ redis, seed, steps, leases, onProgress }: LimiterWalks): Promise<Difference[]> {
  const differences: Difference[] = []
  for (let walk = 0, left = steps; left > 0; walk++, left -= STEPS_PER_WALK) {
    const next = randomDice(seed * 100_003 + walk)
    const [several = 0, mask = 0, more = 0] = next()
    // a third has nothing but calls, and the others some kinds of moves
    const kinds = mask % 3 === 0 ? 0 : mask % 3 === 1 ? mask ^ (more << 3) : undefined
    const rules = Array.from({ length: 1 + (several % 3 === 0 ? 1 : 0) }, next)
    const one = await LimiterWalk.create({ redis: redis?.url, prefix: `walk${seed}-${walk}`, rules, leases, kinds })
    const algorithms = one.rules.map(rule => JSON.stringify(rule))
    for (let step = 0; step < Math.min(left, STEPS_PER_WALK); step++) {
      try {
        await one.step(next())
      } catch (error) {
        differences.push({ walk, step, algorithms, error })
        break
      }
    }
    await one.close()
    if (walk % WALKS_PER_REPORT === 0) {
      await redis?.send(['FLUSHALL'])
      onProgress?.(steps - left, differences.length)
    }
  }
  return differences
}

const STEPS_PER_WALK = 100
const WALKS_PER_REPORT = 50

/** Walks at random on memory and a shared store, one after the other, by numbers that follow from a seed. */
export async function seededWalks({ create, empty, seed, steps, onProgress }: SeededWalks): Promise<Difference[]> {
  const differences: Difference[] = []
  for (let walk = 0, left = steps; left > 0; walk++, left -= STEPS_PER_WALK) {
    const difference = await oneWalk(create, seed, walk, Math.min(left, STEPS_PER_WALK))
    if (difference) differences.push(difference)
    if (walk % WALKS_PER_REPORT === 0) {
      await empty()
      onProgress?.(steps - left, differences.length)
    }
  }
  return differences
}

async function oneWalk(
  create: CreateWalkedStore,
  seed: number,
  walk: number,
  steps: number,
): Promise<Difference | undefined> {
  const next = randomDice(seed * 100_003 + walk)
  const [start = 0, several = 0, from = 0] = next()
  const rules = Array.from({ length: several % 2 === 0 ? 1 : 1 + (several % 4) }, next)
  const algorithms = rules.map((_, i) => walkAlgorithms[(from + i * 5) % walkAlgorithms.length]!)
  const one = new StoreWalk({ create, prefix: `walk${walk}`, start, algorithms, rules })
  for (let step = 0; step < steps; step++) {
    try {
      await one.step(next())
    } catch (error) {
      one.close()
      return { walk, step, algorithms, error }
    }
  }
  one.close()
}
