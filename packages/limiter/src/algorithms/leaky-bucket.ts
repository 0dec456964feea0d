import type { Algorithm, Limit, Meter, Part, Terms, WaitOptions } from './algorithm.ts'
import { InvalidLimitError } from './algorithm.ts'
import { bucketMeter } from './bucket.ts'
import { deal, partOfRate } from './part.ts'

export interface LeakyBucketOptions {
  /** The calls that find room beyond the one under way; default 0. */
  readonly burst?: number | undefined
  /** The number of calls of the burst that pass at once when waiting; default 0. */
  readonly delay?: number | undefined
}

/*
 * Leaky bucket, as nginx's limit_req counts: calls drip out at the limit's rate, and `burst` more than the one under
 * way find room above it.
 *
 *     in   | | ||| |            whenFull: refuse           one at a time, burst more at once (nginx: nodelay)
 *          v v vvv v            whenFull: wait             burst more, each delayed until its drip
 *        |  o o o o |           whenFull: wait, delay: n   the first n of them at once, the rest delayed
 *        |__________|
 *             |  rate
 *             v
 *
 * So `burst: 5` lets six come at one moment: one passes, five are the burst. A changed rule keeps what is in the bucket.
 */
export const leakyBucket: Algorithm = {
  name: 'leaky-bucket',
  limit: 'rate',
  options: ({ z }) => ({
    burst: z.int().min(0).max(1e9).optional().describe('calls that find room beyond the one under way; default: 0'),
    delay: z.int().min(0).max(1e9).optional().describe('how many of the burst pass at once when waiting; default: 0'),
  }),
  meter(limit: Limit, options: LeakyBucketOptions, waitOptions?: WaitOptions): Meter {
    const { burst = 0, delay = 0 } = options
    const room = { largest: burst + 1, startsEmpty: false, refill: 'continuous' as const }
    if (!waitOptions) {
      if (options.delay !== undefined) throw new InvalidLimitError('delay', 'paces calls that wait; add whenFull: wait')
      return bucketMeter(limit, { ...room, capacity: burst + 1, ahead: 0, timeoutUs: 0 })
    }
    if (options.burst === undefined)
      throw new InvalidLimitError('burst', 'is missing: say how many may wait, as in burst: 20')
    if (delay > burst) throw new InvalidLimitError('delay', `must not be above burst (${burst})`)
    const timeoutUs = waitOptions.timeoutUs ?? Number.POSITIVE_INFINITY
    return bucketMeter(limit, { ...room, capacity: delay + 1, ahead: burst - delay, timeoutUs })
  },
  part(limit: Limit, options: LeakyBucketOptions, part: Part): Terms | undefined {
    const { burst, delay } = options
    const room = deal((burst ?? 0) + 1, part)
    if (room === 0) return undefined
    const own = partOfRate(limit, room, (burst ?? 0) + 1)
    const paced = delay === undefined ? {} : { delay: Math.min(room, Math.max(1, deal(delay + 1, part))) - 1 }
    return { limit: own, options: { ...(burst === undefined ? {} : { burst: room - 1 }), ...paced } }
  },
}
