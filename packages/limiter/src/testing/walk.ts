import type { Limit } from '../algorithms/algorithm.ts'

const counts = [1, 2, 3, 5, 7, 10, 19, 20, 21, 22, 25, 33, 97, 100, 360, 997, 1000]
const largeCounts = [1013, 4096, 9999, 65_537, 1_000_000, 7_777_777, 60_000_000]
const periodsMs = [1, 7, 10, 100, 999, 1000, 7000, 60_000, 3_600_000, 86_400_000, 30 * 86_400_000]
const startsUs = [0, 1, 999_999, 1_794_700_800_000_000, 1_794_712_345_678_901]

/** Numbers of any size, as a generator of random data gives them. */
export type Dice = readonly number[]

export function pick<T>(values: readonly T[], die: number): T {
  return values[die % values.length]!
}

/** Picks a limit out of those that are small, large, uneven or slow. */
export function limitFrom([count = 0, period = 0]: Dice, largest = 1000): Limit {
  const all = [...counts, ...largeCounts].filter(candidate => candidate <= largest)
  return { count: pick(all, count), periodMs: pick(periodsMs, period) }
}

export function startFrom(die: number): number {
  return pick(startsUs, die)
}

/** Picks the next moment of a walk: bursts, exact multiples and their neighbors, retries, silences. */
export function nextMoment(now: number, [kind = 0, size = 0]: Dice, limit: Limit, retryUs: number): number {
  const periodUs = limit.periodMs * 1000
  const gapUs = Math.floor(periodUs / limit.count)
  const retry = Number.isFinite(retryUs) ? Math.max(0, retryUs) : 0
  const gaps = [
    0,
    0,
    0,
    1,
    gapUs,
    gapUs + 1,
    Math.max(0, gapUs - 1),
    Math.floor((periodUs * (size % 1000)) / 1000),
    periodUs,
    periodUs - 1,
    periodUs + 1,
    Math.max(0, Math.floor(periodUs / 10) * (size % 10) + (size % 3) - 1),
    periodUs - (now % periodUs) - (size % 2),
    periodUs * (size % 20) + (size % 7),
    retry,
    Math.max(0, retry - 1),
  ]
  return now + pick(gaps, kind)
}

/** Picks the next moment for a clock that may also step back. */
export function nextMomentOfBadClock(now: number, step: Dice, limit: Limit, retryUs: number): number {
  const [kind = 0, size = 0] = step
  const periodUs = limit.periodMs * 1000
  const backwards = [1, periodUs, Math.floor(periodUs / 10), Math.floor((periodUs * (size % 3000)) / 1000)]
  if (kind % 3 > 0) return nextMoment(now, [Math.floor(kind / 3), size], limit, retryUs)
  return Math.max(0, now - pick(backwards, Math.floor(kind / 3)))
}

/** Picks a cost: mostly 1; also 0, all, half, and more than all. */
export function costFrom([, size = 0, kind = 0]: Dice, most: number): number {
  const some = 1 + Math.floor(((most - 1) * (size % 1000)) / 1000)
  return pick([1, 1, 1, 1, 0, most, most + 1, Math.ceil(most / 2), Math.max(1, most - 1), some, some], kind)
}

/** Creates random numbers, six at a time (mulberry32). */
export function randomDice(seed: number): () => Dice {
  let state = seed >>> 0
  const die = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) % 10_000
  }
  return () => Array.from({ length: 6 }, die)
}
