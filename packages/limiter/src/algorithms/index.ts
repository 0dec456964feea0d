import { type AdaptiveOptions, adaptive } from './adaptive.ts'
import type { Algorithm } from './algorithm.ts'
import { concurrency } from './concurrency.ts'
import { type FixedWindowOptions, fixedWindow } from './fixed-window.ts'
import { type LeakyBucketOptions, leakyBucket } from './leaky-bucket.ts'
import { slidingLog } from './sliding-log.ts'
import { type SlidingWindowOptions, slidingWindow } from './sliding-window.ts'
import { type TokenBucketOptions, tokenBucket } from './token-bucket.ts'
import { type WarmUpOptions, warmUp } from './warm-up.ts'

/**
 * Every algorithm Diana brings; the first is the default of a rule that names none. It is the only list: the schema, the checks of
 * `rateLimit`, the dashboard and the tests read it. Pure, so that a bundler leaves out what a program does not use.
 */
export const algorithms: readonly Algorithm[] = /* @__PURE__ */ Object.values({
  'sliding-window': slidingWindow,
  'fixed-window': fixedWindow,
  'sliding-log': slidingLog,
  'token-bucket': tokenBucket,
  'leaky-bucket': leakyBucket,
  'warm-up': warmUp,
  concurrency,
  adaptive,
} satisfies Record<AlgorithmName, Algorithm>)

/**
 * The options of each algorithm in a rule that is given in code. For an algorithm of your own, add them here:
 *
 *     declare module 'diana-limiter' {
 *       interface AlgorithmOptions { 'my-algorithm': { readonly size?: number } }
 *     }
 */
export interface AlgorithmOptions {
  'sliding-window': SlidingWindowOptions
  'fixed-window': FixedWindowOptions
  'sliding-log': object
  'token-bucket': TokenBucketOptions
  'leaky-bucket': LeakyBucketOptions
  'warm-up': WarmUpOptions
  concurrency: object
  adaptive: AdaptiveOptions
}

/** The name of an algorithm. */
export type AlgorithmName = keyof AlgorithmOptions

/** An algorithm with its options; left out, the first of the list. */
export type AlgorithmChoice =
  | { [Name in AlgorithmName]: { readonly algorithm: Name } & AlgorithmOptions[Name] }[AlgorithmName]
  | ({ readonly algorithm?: undefined } & DefaultOptions & { readonly [Name in OtherOptionName]?: undefined })

/** A limit per calendar period needs no algorithm: `fixed-window` counts it. */
type DefaultOptions = AlgorithmOptions['sliding-window'] & Pick<AlgorithmOptions['fixed-window'], 'zone' | 'anchor'>

/** Options that need an algorithm to be named. */
type OtherOptionName = Exclude<
  { [Name in AlgorithmName]: keyof AlgorithmOptions[Name] }[AlgorithmName],
  keyof DefaultOptions
>
