import type { Algorithm, Limit, Meter, WaitOptions } from './algorithm.ts'
import { InvalidLimitError, maxWaitUsOf } from './algorithm.ts'
import { Smooth, warmUpCurve } from './smooth.ts'

export interface WarmUpOptions {
  /** How long a cold service takes to reach the limit, such as `30s`. */
  readonly warmUp: string
  /** How many times slower it starts; default 3. */
  readonly coldFactor?: number | undefined
}

/*
 * Warm-up, as Guava's SmoothWarmingUp counts: a service that has been idle gets calls at a third of its rate
 * (`coldFactor`), and the full rate once it has worked for `warmUp`. See smooth.ts for the curve.
 *
 *   rate |            ________          limit: 100/s   warmUp: 10s
 *        |        __/
 *        | ____ /                       idle again, it cools down as slowly as it warmed up
 *        +---------------------- time
 *
 * A call of any cost passes as soon as the one before it is paid for. A changed rule keeps what is owed and spent.
 */
export const warmUp: Algorithm = {
  name: 'warm-up',
  limit: 'rate',
  options: ({ z, duration }) => ({
    warmUp: duration.optional().describe('how long a cold service takes to reach the limit; required'),
    coldFactor: z.number().gt(1).max(100).optional().describe('how many times slower it starts; default: 3'),
  }),
  meter(limit: Limit, options: { warmUp?: number; coldFactor?: number }, waitOptions?: WaitOptions): Meter {
    if (options.warmUp === undefined)
      throw new InvalidLimitError('warmUp', 'is missing; say how long warming up takes: warmUp: 10s')
    if (limit.count === 0)
      throw new InvalidLimitError('limit', 'of 0 has no rate to reach; use algorithm: fixed-window to refuse all')
    const stableUs = (limit.periodMs * 1000) / limit.count
    const curve = warmUpCurve(stableUs, options.warmUp * 1000, options.coldFactor ?? 3)
    return new Smooth(curve, maxWaitUsOf(waitOptions), limit.periodMs * 1000)
  },
  // a pace has no permits to deal out: every process keeps a part of it
  part: (limit, options, { size }) => ({ limit: { ...limit, periodMs: limit.periodMs * size }, options }),
}
