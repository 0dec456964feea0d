/** A rule of a walk, as it is written in a rule file. */
export interface WalkRule {
  readonly id: string
  readonly by: 'account'
  readonly algorithm: string
  /** The limit of each plan; for a rule without plans those of `default` alone, one for each level. */
  readonly limits: Readonly<Record<string, readonly WalkLimit[]>>
  readonly burst?: number | undefined
  /** The way in which costs are settled; undefined if they are not. Calls that are not settled in time are refunded. */
  readonly overrun: 'debt' | 'clip' | undefined
  readonly hasCredit: boolean
  readonly blocks: boolean
  readonly lease: 'auto' | 'off'
}

/** A number of calls in a time. */
export interface WalkLimit {
  readonly count: number
  readonly periodMs: number
}

/** True if the limit of a rule depends on the caller. */
export function hasPlans({ limits }: WalkRule): boolean {
  return Object.keys(limits).length > 1
}
