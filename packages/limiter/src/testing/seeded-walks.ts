import type { SendCommand } from '../stores/redis/send-command.ts'
import { StoreWalk, walkAlgorithms } from './store-walk.ts'
import { randomDice } from './walk.ts'

export interface SeededWalks {
  /** Sends a command to a Redis that may be emptied. */
  readonly send: SendCommand
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

const STEPS_PER_WALK = 100
const WALKS_PER_REPORT = 50

/** Walks at random on memory and Redis, one after the other, by numbers that follow from a seed. */
export async function seededWalks({ send, seed, steps, onProgress }: SeededWalks): Promise<Difference[]> {
  const differences: Difference[] = []
  for (let walk = 0, left = steps; left > 0; walk++, left -= STEPS_PER_WALK) {
    const difference = await oneWalk(send, seed, walk, Math.min(left, STEPS_PER_WALK))
    if (difference) differences.push(difference)
    if (walk % WALKS_PER_REPORT === 0) {
      await send(['FLUSHALL'])
      onProgress?.(steps - left, differences.length)
    }
  }
  return differences
}

async function oneWalk(send: SendCommand, seed: number, walk: number, steps: number): Promise<Difference | undefined> {
  const next = randomDice(seed * 100_003 + walk)
  const [start = 0, several = 0, from = 0] = next()
  const rules = Array.from({ length: several % 2 === 0 ? 1 : 1 + (several % 4) }, next)
  const algorithms = rules.map((_, i) => walkAlgorithms[(from + i * 5) % walkAlgorithms.length]!)
  const one = new StoreWalk({ send, prefix: `walk${walk}`, start, algorithms, rules })
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
