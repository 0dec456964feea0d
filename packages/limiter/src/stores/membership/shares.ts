/** What a process asks for: to be a member, and to take a share of every limit while the store cannot be asked. */
export interface ShareClaim {
  /** Grows with every claim of a process: a claim that arrives after a later one is ignored. */
  readonly sequence: number
  /** The seat and the size this process takes its share by; a size of 0: it takes none. */
  readonly seat: number
  readonly size: number
  /** The size it asks for is at least this. */
  readonly leastSize: number
  /** Whether it asks for a larger share than it takes. */
  readonly mayGrow: boolean
  /** A member that is silent for so long is gone. */
  readonly memberMs: number
}

/** The answer: by which seat and size this process may take its share. */
export interface ShareGrant {
  readonly seat: number
  /** How many members there are, or the least size asked for. */
  readonly size: number
  /** Whether it may take that share now; if not, it may go on with a smaller one only. */
  readonly isGranted: boolean
}

interface Member {
  at: number
  sequence: number
  seat: number
  /** 0: takes no share. */
  size: number
}

/** A book of shares as it is stored. */
export interface WrittenShares {
  readonly members: readonly (readonly [id: string, at: number, sequence: number, seat: number, size: number])[]
  readonly heardAt?: number | undefined
  readonly resumedAt?: number | undefined
}

/** If no process was heard of for this part of the time after which members are gone, all of them were cut off. */
export const SILENT_PART = 3

/**
 * Deals out the shares of a limit so that they never add up to more than the limit, whichever processes come, go or miss
 * an answer.
 *
 * Every member has a seat of its own, and takes the share `deal(count, { rank: seat, size })`, which shrinks as seat or size
 * grow. The book records for each member a share at least as large as the one it takes: a larger share is recorded before
 * the process hears of it, a smaller one when the process says that it takes no more. Of n members,
 * one is granted a share by size n or more only if all others are recorded with a size of n or more. Since all have
 * different seats, the shares then add up to no more than the limit. So a process that joins takes nothing until all others have made room for it.
 */
export class ShareBook {
  readonly #members = new Map<string, Member>()
  #heardAt: number | undefined
  #resumedAt = 0

  /** `known` is a book that was written down. */
  constructor({ members = [], heardAt, resumedAt = 0 }: Partial<WrittenShares> = {}) {
    for (const [id, at, sequence, seat, size] of members) this.#members.set(id, { at, sequence, seat, size })
    this.#heardAt = heardAt
    this.#resumedAt = resumedAt
  }

  toJSON(): WrittenShares {
    const members = Array.from(this.#members, ([id, { at, sequence, seat, size }]) => {
      return [id, at, sequence, seat, size] as const
    })
    return { members, heardAt: this.#heardAt, resumedAt: this.#resumedAt }
  }

  /** How many members there are. */
  get size(): number {
    return this.#members.size
  }

  /** Records what a process takes and grants what it may take; undefined if a later claim of it came first. */
  claim(id: string, claim: ShareClaim, now: number): ShareGrant | undefined {
    const { sequence, seat, leastSize, mayGrow, memberMs } = claim
    this.#forgetSilent(memberMs, now)
    const known = this.#members.get(id)
    if (known && sequence <= known.sequence) return undefined
    const member = known ?? { at: now, sequence, seat: this.#freeSeat(claim), size: 0 }
    this.#members.set(id, member)
    member.at = now
    member.sequence = sequence
    // a process that has not heard of its seat yet may have been granted more than it says
    if (claim.size === 0 || member.size === 0 || member.seat === seat) member.size = claim.size
    else member.size = Math.min(member.size, claim.size)
    const size = Math.max(leastSize, this.#members.size)
    const isGranted = mayGrow && this.#leastSizeBeside(id) >= this.#members.size
    if (isGranted) {
      // a smaller share is recorded when the process says that it takes no more
      member.size = member.size === 0 ? size : Math.min(member.size, size)
      if (member.seat >= size) member.seat = Math.min(member.seat, this.#lowestFreeSeat())
    }
    return { seat: member.seat, size, isGranted }
  }

  leave(id: string): void {
    this.#members.delete(id)
  }

  #forgetSilent(memberMs: number, now: number): void {
    const heardAt = this.#heardAt ?? now
    // no process could be heard of, or the clock was set
    if (now < heardAt || now - heardAt > memberMs / SILENT_PART) this.#resumedAt = now
    this.#heardAt = now
    for (const [id, member] of this.#members) {
      member.at = Math.min(member.at, now)
      if (now - Math.max(member.at, this.#resumedAt) > memberMs) this.#members.delete(id)
    }
  }

  #freeSeat({ seat, size }: ShareClaim): number {
    const isTaken = [...this.#members.values()].some(member => member.seat === seat)
    return size > 0 && !isTaken ? seat : this.#lowestFreeSeat()
  }

  #lowestFreeSeat(): number {
    const taken = new Set(Array.from(this.#members.values(), ({ seat }) => seat))
    let seat = 0
    while (taken.has(seat)) seat++
    return seat
  }

  #leastSizeBeside(id: string): number {
    let least = Number.POSITIVE_INFINITY
    for (const [other, { size }] of this.#members) if (other !== id && size > 0) least = Math.min(least, size)
    return least
  }
}
