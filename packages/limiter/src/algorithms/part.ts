import type { Algorithm, Limit, Meter, Part, Terms, WaitOptions } from './algorithm.ts'
import { InvalidLimitError } from './algorithm.ts'

export const WHOLE: Part = { rank: 0, size: 1 }

/** Divides whole permits: the shares of all ranks add up to `count`; with fewer permits than processes some get none. */
export function deal(count: number, { rank, size }: Part): number {
  return Math.floor(count / size) + (rank < count % size ? 1 : 0)
}

/** The meter of one process's part of a limit. */
export function partMeter(algorithm: Algorithm, terms: Terms, part: Part, waitOptions?: WaitOptions): Meter {
  const { limit, options } = terms
  if (part.size === 1) return algorithm.meter(limit, options, waitOptions)
  const own = algorithm.part ? algorithm.part(limit, options, part) : dealt(terms, part)
  try {
    return own ? algorithm.meter(own.limit, own.options, waitOptions) : NOTHING
  } catch (error) {
    // so little that it cannot be counted
    if (error instanceof InvalidLimitError) return NOTHING
    throw error
  }
}

function dealt({ limit, options }: Terms, part: Part): Terms | undefined {
  const count = deal(limit.count, part)
  return count === 0 ? undefined : { limit: { ...limit, count }, options }
}

/** The share of a process that gets nothing: it refuses all calls. */
const NOTHING: Meter = {
  slots: 1,
  maxWaitUs: 0,
  delay: (_state, _at, _now, cost) => (cost === 0 ? 0 : Number.POSITIVE_INFINITY),
  take: () => {},
  refund: () => {},
  remaining: () => 0,
  idleAt: () => 0,
}

/** `permits` of `all` that a rate of `count` per period refills: the same part of the rate, as a fraction of whole numbers. */
export function partOfRate({ count, periodMs }: Limit, permits: number, all: number): Limit {
  const divisor = commonDivisor(count * permits, all)
  const exact = { count: (count * permits) / divisor, periodMs: (periodMs * all) / divisor }
  const isExact = count * permits < 2 ** 53 && periodMs * all * 1000 < 2 ** 53
  return isExact ? exact : { count: Math.floor(count * (permits / all)), periodMs }
}

function commonDivisor(a: number, b: number): number {
  return b === 0 ? a : commonDivisor(b, a % b)
}
