import type { Algorithm, Limit, Meter, Part, Terms, WaitOptions } from './algorithm.ts'
import { InvalidLimitError, maxWaitUsOf } from './algorithm.ts'
import { bucketMeter } from './bucket.ts'
import { deal, partOfRate } from './part.ts'

export interface TokenBucketOptions {
  /** The tokens that the bucket holds; default the count of the limit. */
  readonly burst?: number | undefined
  /** The bucket of a new caller; default `full`. */
  readonly start?: 'full' | 'empty' | undefined
  /** Tokens come one by one, or all at once when a period ends, of the caller or of the clock; default `continuous`. */
  readonly refill?: 'continuous' | 'interval' | 'aligned' | undefined
}

/*
 * Token bucket (the same thing as GCRA, seen from the other side): a bucket holds `burst` tokens, the limit refills it,
 * and a call takes as many as it costs. In any interval t at most burst + rate * t pass.
 *
 *   tokens |\        /|   /|
 *          | \_    /  |  / |     limit: 10/s   burst: 3
 *          |   \__/   |_/  |     3 at once, then one every 100 ms
 *          +--------------------- time
 *
 * `refill: interval` brings all tokens of a period at once, when the period ends. Periods are counted from the call that
 * found the bucket full; in any interval t at most burst + count * (t / period, rounded up) pass.
 *
 *   tokens |\       |\      |       limit: 4/s   burst: 4   refill: interval
 *          | \__    | \_    |       4 at once, then nothing until a second after the first of them
 *          |    \___|   \___|
 *          +---------------------- time
 *
 * `refill: aligned` does the same at whole multiples of the period by the clock, full hours for one of an hour: all buckets are refilled
 * at once, and what a caller leaves over is kept, up to the burst. In any interval at most burst + count * (ends of periods in it) pass.
 *
 *   tokens |\__         |\          limit: 4/h   burst: 6   refill: aligned
 *          |   \     |\ | \         4 more at each full hour, up to 6
 *          |    \____| \|
 *          +---------|---|------ time
 *                  09:00 10:00
 *
 * `start: empty` gives a new caller no tokens; they come from the moment of the first call on, which is refused and remembered.
 *
 * When a rule changes, the debt stays and the new numbers count from there: no change refills a bucket.
 */
export const tokenBucket: Algorithm = {
  name: 'token-bucket',
  limit: 'rate',
  options: ({ z }) => ({
    burst: z.int().min(1).max(1e9).optional().describe('tokens the bucket holds; default: the count of the limit'),
    start: z.enum(['full', 'empty']).optional().describe('what a new caller finds; default: full'),
    refill: z
      .enum(['continuous', 'interval', 'aligned'])
      .optional()
      .describe(
        'whether tokens come one by one, or all at once when a period ends, of the caller or of the clock; default: continuous',
      ),
  }),
  meter(limit: Limit, options: TokenBucketOptions, waitOptions?: WaitOptions): Meter {
    const capacity = options.burst ?? limit.count
    if (limit.count === 0 && capacity > 0)
      throw new InvalidLimitError('limit', 'of 0 never refills; leave burst out to refuse all')
    const timeoutUs = maxWaitUsOf(waitOptions)
    return bucketMeter(limit, {
      capacity,
      largest: capacity,
      ahead: Math.ceil((timeoutUs * limit.count) / (limit.periodMs * 1000)),
      timeoutUs,
      startsEmpty: options.start === 'empty',
      refill: options.refill ?? 'continuous',
    })
  },
  part(limit: Limit, options: TokenBucketOptions, part: Part): Terms | undefined {
    const capacity = options.burst ?? limit.count
    const burst = deal(capacity, part)
    // what comes at once is dealt out as it is, or the parts of several periods would come together
    if (options.refill === 'interval' || options.refill === 'aligned') {
      const count = deal(limit.count, part)
      return burst === 0 || count === 0 ? undefined : { limit: { ...limit, count }, options: { ...options, burst } }
    }
    return burst === 0 ? undefined : { limit: partOfRate(limit, burst, capacity), options: { ...options, burst } }
  },
}
