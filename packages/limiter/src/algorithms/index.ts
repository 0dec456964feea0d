import { adaptive } from './adaptive.ts'
import type { Algorithm } from './algorithm.ts'
import { concurrency } from './concurrency.ts'
import { fixedWindow } from './fixed-window.ts'
import { leakyBucket } from './leaky-bucket.ts'
import type { AlgorithmName } from './options.ts'
import { slidingLog } from './sliding-log.ts'
import { slidingWindow } from './sliding-window.ts'
import { tokenBucket } from './token-bucket.ts'
import { warmUp } from './warm-up.ts'

/** Every algorithm Diana brings; the first is the default of a rule that names none. */
export const algorithms: readonly Algorithm[] = Object.values({
  'sliding-window': slidingWindow,
  'fixed-window': fixedWindow,
  'sliding-log': slidingLog,
  'token-bucket': tokenBucket,
  'leaky-bucket': leakyBucket,
  'warm-up': warmUp,
  concurrency,
  adaptive,
} satisfies Record<AlgorithmName, Algorithm>)
