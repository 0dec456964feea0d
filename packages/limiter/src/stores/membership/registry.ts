import type { ShareClaim, ShareGrant } from './shares.ts'

/** The processes that count together, as the store knows them. */
export interface Membership {
  /** Changes when the store has lost what it knew. */
  readonly era: string
  /** How many processes have been heard of lately, and the rank of this one among them. */
  readonly size: number
  readonly rank: number
  /** How many of them have been heard of within the time asked about; and of these, how many are back. */
  readonly heard: number
  readonly back: number
}

/** The heartbeat of a process, and what it asks about the others. */
export interface SignOfLife {
  /** Whether the store knows all that this process has counted. */
  readonly isBack: boolean
  readonly withinMs: number
  /** A process without a heartbeat for so long is gone. */
  readonly memberMs: number
}

/** The registry of the processes that count together. */
export interface MembershipRegistry {
  /** The era, without a sign of life; undefined if no process has registered in it yet. */
  era?(): Promise<string | undefined>
  register(sign: SignOfLife): Promise<Membership>
  /**
   * Claims a share of every limit, for the time when the store cannot be asked; undefined if a later claim came first. A
   * registry without it grants every process that registers its share.
   */
  share?(claim: ShareClaim): Promise<ShareGrant | undefined>
  /** Removes this process from the registry. */
  leave(): Promise<void>
}

/** For a process that decides no calls: it reads the number of members, and is none itself. */
export function observerRegistry(count: () => Promise<number>): MembershipRegistry {
  return {
    async register() {
      const size = Math.max(1, await count())
      return { era: '', size, rank: size, heard: size, back: size }
    },
    leave: async () => {},
  }
}
