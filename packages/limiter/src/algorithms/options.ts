/**
 * The options of each algorithm in a rule that is given in code; its names are the list that other lists of algorithms are checked
 * against. For an algorithm of your own, add them here:
 *
 *     declare module 'diana-limiter' {
 *       interface AlgorithmOptions { 'my-algorithm': { readonly size?: number } }
 *     }
 */
export interface AlgorithmOptions {
  'sliding-window': {
    /** How finely the window is cut; default 10. */
    readonly segments?: number | undefined
  }
  'fixed-window': {
    /** Where windows begin; default `clock`. */
    readonly align?: 'clock' | 'first-call' | undefined
    /** The time zone of calendar periods, such as `Europe/Berlin`; default `UTC`. */
    readonly zone?: string | undefined
    /** Where calendar periods begin: a day of the month, a weekday, or a month and a day such as `04-06`. */
    readonly anchor?: number | string | undefined
  }
  'sliding-log': object
  'token-bucket': {
    /** The tokens that the bucket holds; default the count of the limit. */
    readonly burst?: number | undefined
    /** What a new caller finds; default `full`. */
    readonly start?: 'full' | 'empty' | undefined
    /** Whether tokens come one by one, or all at once when a period ends; default `continuous`. */
    readonly refill?: 'continuous' | 'interval' | undefined
  }
  'leaky-bucket': {
    /** The calls that find room beyond the one under way; default 0. */
    readonly burst?: number | undefined
    /** The number of calls of the burst that pass at once when waiting; default 0. */
    readonly delay?: number | undefined
  }
  'warm-up': {
    /** How long a cold service takes to reach the limit, such as `30s`. */
    readonly warmUp: string
    /** How many times slower it starts; default 3. */
    readonly coldFactor?: number | undefined
  }
  concurrency: object
  adaptive: {
    /** The least that is admitted at one time, whatever is measured; default 2. */
    readonly min?: number | undefined
  }
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
