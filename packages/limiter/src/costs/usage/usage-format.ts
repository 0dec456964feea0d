/** The tokens that an answer reports. */
export interface Tokens {
  /** Without those that were in a cache. */
  readonly input: number
  readonly cached: number
  readonly output: number
}

/** Reads a field of an answer by its path, such as `usage.prompt_tokens`; undefined if it is not there. */
export type FieldReader = (path: string) => number | undefined

/** The way in which an API reports what a call has used. */
export interface UsageFormat {
  readonly name: string
  /** The fields of a request that limit how much the answer may use. */
  readonly limits: readonly string[]
  /** The fields of a request that say how many answers are made; the largest counts. */
  readonly choices: readonly string[]
  /** Fields of a request that may be lists, with an answer to each item. */
  readonly lists: readonly string[]
  /** All fields of an answer that `tokens` reads. */
  readonly fields: readonly string[]
  /** Names of fields; each event of a stream that reports usage has one of them. */
  readonly hints: readonly string[]
  /** Reads the tokens; undefined if the answer reports no usage, or not yet all of it. */
  tokens(read: FieldReader): Tokens | undefined
}

/** Tokens of a total that includes the cached ones. */
export function tokensOf(input: number, cached: number, output: number): Tokens {
  const known = Math.min(Math.max(cached, 0), input)
  return { input: input - known, cached: known, output }
}
