import type { ShareClaim, ShareGrant } from './shares.ts'

/** Who counts together, as the store knows it. */
export interface Membership {
  /** Changes when the store has lost what it knew. */
  readonly era: string
  /** How many processes have been heard of lately, and the place of this one among them. */
  readonly size: number
  readonly rank: number
  /** How many of them have been heard of within the time asked about; and of these, how many are back. */
  readonly heard: number
  readonly back: number
}

/** What a process says of itself, and asks of the others. */
export interface SignOfLife {
  /** Whether the store knows all that this process has counted. */
  readonly isBack: boolean
  readonly withinMs: number
  /** Whoever has not been heard of for so long is gone. */
  readonly memberMs: number
}

/** Where the processes that count together are known to each other. */
export interface MembershipRegistry {
  /** The era, without a sign of life; undefined if no process has registered in it yet. */
  era?(): Promise<string | undefined>
  register(sign: SignOfLife): Promise<Membership>
  /**
   * Claims a share of every limit, for the time when the store cannot be asked; undefined if a later claim came first. A
   * roll without it grants every process that registers its share.
   */
  share?(claim: ShareClaim): Promise<ShareGrant | undefined>
  /** Says that it goes. */
  leave(): Promise<void>
}

/** For a process that judges no calls: it learns how many others there are, and takes no part. */
export function observerRegistry(count: () => Promise<number>): MembershipRegistry {
  return {
    async register() {
      const size = Math.max(1, await count())
      return { era: '', size, rank: size, heard: size, back: size }
    },
    leave: async () => {},
  }
}
