import { z } from 'zod'
import type { Algorithm, Limit, Meter, Part, Patience, Terms } from './algorithm.ts'
import { longestWaitUs, Misfit } from './algorithm.ts'
import { bucketMeter } from './bucket.ts'
import { deal, partOfRate } from './part.ts'

/*
 * Token bucket (the same thing as GCRA, seen from the other side): a bucket holds `burst` tokens, the limit refills it,
 * and a call takes as many as it costs. In any interval t at most burst + rate * t pass.
 *
 *   tokens |\        /|   /|
 *          | \_    /  |  / |     limit: 10/s   burst: 3
 *          |   \__/   |_/  |     3 at once, then one every 100 ms
 *          +--------------------- time
 *
 * When a rule changes, the debt stays and the new numbers count from there: no change refills a bucket.
 */
export const tokenBucket: Algorithm = {
  name: 'token-bucket',
  limit: 'rate',
  options: {
    burst: z.int().min(1).max(1e9).optional().describe('tokens the bucket holds; default: the count of the limit'),
    start: z.enum(['full', 'empty']).optional().describe('what a new caller finds; default: full'),
  },
  meter(limit: Limit, options: { burst?: number; start?: 'full' | 'empty' }, patience?: Patience): Meter {
    const capacity = options.burst ?? limit.count
    if (limit.count === 0 && capacity > 0)
      throw new Misfit('limit', 'of 0 never refills; leave burst out to refuse all')
    const timeoutUs = longestWaitUs(patience)
    return bucketMeter(limit, {
      capacity,
      largest: capacity,
      ahead: Math.ceil((timeoutUs * limit.count) / (limit.periodMs * 1000)),
      timeoutUs,
      startsEmpty: options.start === 'empty',
    })
  },
  part(limit: Limit, options: { burst?: number }, part: Part): Terms | undefined {
    const capacity = options.burst ?? limit.count
    const burst = deal(capacity, part)
    return burst === 0 ? undefined : { limit: partOfRate(limit, burst, capacity), options: { ...options, burst } }
  },
}
