import type { Part } from '../../algorithms/algorithm.ts'
import type { Membership, MembershipRegistry } from './registry.ts'
import type { ShareClaim, ShareGrant } from './shares.ts'

/** A fleet that has become smaller is believed after so long: after an outage not all are back at once. */
const SHRINK_MS = 5000
const LEAST_BEAT_MS = 1000
const BEAT_MS_EACH = 10
/** A process without a share asks for one more often, and so does one that has just started, since others start with it. */
const LEAST_JOIN_BEAT_MS = 200
const JOIN_BEAT_MS_EACH = 2
const YOUNG_BEATS = 10
/** A member without a heartbeat for so many intervals is gone. */
const MEMBER_BEATS = 5

type PartListener = (part: Part, before: Part) => void

/**
 * The number of processes that count together, which is kept while the store cannot be asked; and whether this process may
 * take its share then. Before the store has answered, the number is assumed, and no process gets what cannot be dealt
 * out evenly. Moments are milliseconds.
 */
export class Fleet {
  readonly #registry: MembershipRegistry
  readonly #assumed: number
  readonly #onChange: PartListener
  #part: Part
  /** Whether the store has granted this process its part. */
  #isGranted = false
  #isAlone = false
  #era: string | undefined
  #smallerSince: number | undefined
  #sequence = 0

  constructor(registry: MembershipRegistry, options: { readonly assumed: number; readonly onChange: PartListener }) {
    const { assumed, onChange } = options
    this.#registry = registry
    this.#assumed = assumed
    this.#onChange = onChange
    this.#part = { rank: assumed === 1 ? 0 : assumed, size: assumed }
  }

  get part(): Part {
    return this.#part
  }

  /** Whether this process may take its part; one that has just joined may not until all others have made room. */
  get hasShare(): boolean {
    return this.#isGranted || !this.isKnown
  }

  /** Whether no other process was heard of, not even of those that start at the same time. */
  get isAlone(): boolean {
    return this.#isAlone || !this.isKnown
  }

  /** Whether the store has answered yet. */
  get isKnown(): boolean {
    return this.#era !== undefined
  }

  /** The interval of heartbeats: it grows with the fleet, so that the store gets a bounded number of them. */
  get beatMs(): number {
    const { size } = this.#part
    const isSettled = this.hasShare && this.#sequence >= YOUNG_BEATS
    return isSettled ? regularBeatMs(size) : Math.max(LEAST_JOIN_BEAT_MS, size * JOIN_BEAT_MS_EACH)
  }

  /**
   * Sends a heartbeat, and gets the other members and the share of this process; returns whether the store has lost what
   * it knew.
   */
  async register(now: number): Promise<boolean> {
    const membership = this.#register(true, 0)
    const [{ era }, isLess] = await Promise.all([membership, this.#claim(membership, now)])
    const hasForgotten = this.isKnown && era !== this.#era
    this.#era = era
    // others wait until the store knows that this process takes less
    if (isLess) void this.#claim(membership, now).catch(() => {})
    return hasForgotten
  }

  /**
   * Registers that this process has a backlog for the store; returns whether all others have been heard of within `withinMs`,
   * and whether the store has forgotten what it knew.
   */
  async probeMembers(withinMs: number): Promise<{ era: string; isComplete: boolean; hasForgotten: boolean }> {
    const { era, size, heard } = await this.#register(false, withinMs)
    return { era, isComplete: this.#isComplete(heard, size), hasForgotten: this.isKnown && era !== this.#era }
  }

  /**
   * The present life of the store, and whether it has forgotten what it knew; asked without a heartbeat, which would register this
   * process.
   */
  async readEra(): Promise<{ era: string | undefined; hasForgotten: boolean }> {
    const era = this.isKnown ? await this.#registry.era?.() : undefined
    return { era, hasForgotten: era !== undefined && era !== this.#era }
  }

  /** Registers that this process is back; returns whether all others have done so within `withinMs`. */
  async return(era: string, withinMs: number): Promise<boolean> {
    const { size, back } = await this.#register(true, withinMs)
    if (this.isKnown) this.#era = era
    return this.#isComplete(back, size)
  }

  async leave(): Promise<void> {
    await this.#registry.leave()
  }

  /** Whether so many are all: those that this process knows of, and those that the store knows of, who may have joined since. */
  #isComplete(count: number, size: number): boolean {
    return count >= Math.max(this.#part.size, size)
  }

  async #register(isBack: boolean, withinMs: number): Promise<Membership> {
    return await this.#registry.register({ isBack, withinMs: Math.ceil(withinMs), memberMs: this.#memberMs })
  }

  get #memberMs(): number {
    return regularBeatMs(this.#part.size) * MEMBER_BEATS
  }

  /** Claims a share and takes what is granted; returns whether this is less than before. */
  async #claim(membership: Promise<Membership>, now: number): Promise<boolean> {
    const takes = this.#isGranted
    const sequence = ++this.#sequence
    const claim: ShareClaim = {
      sequence,
      seat: this.#part.rank,
      size: takes ? this.#part.size : 0,
      leastSize: takes ? 1 : this.#assumed,
      mayGrow: !takes || (this.#smallerSince !== undefined && now - this.#smallerSince >= SHRINK_MS),
      memberMs: this.#memberMs,
    }
    const grant = this.#registry.share ? await this.#registry.share(claim) : this.#grantBy(await membership, claim)
    // an answer that a later claim has overtaken says nothing of what is recorded
    if (!grant || sequence !== this.#sequence) return false
    return this.#take(grant, now)
  }

  #take({ seat, size, isGranted }: ShareGrant, now: number): boolean {
    const before = this.#part
    const takes = this.#isGranted
    const isOld = (takes && before.size === 1) || !this.#registry.share
    this.#isAlone = size === 1 && isOld
    if (takes && !isGranted) {
      const isSmaller = size < before.size || (size > 1 && seat >= size)
      this.#smallerSince = isSmaller ? (this.#smallerSince ?? now) : undefined
      this.#use({ rank: seat, size: Math.max(size, before.size) })
    } else {
      this.#isGranted = isGranted
      this.#smallerSince = undefined
      this.#use({ rank: seat, size })
    }
    return takes && (this.#part.size > before.size || this.#part.rank !== before.rank)
  }

  /** The size from a registry without shares is applied at once if it has grown, and later if it has become smaller. */
  #grantBy({ rank, size }: Membership, { mayGrow }: ShareClaim): ShareGrant {
    const isSmaller = size < this.#part.size
    return { seat: isSmaller && !mayGrow ? this.#part.rank : rank, size, isGranted: mayGrow }
  }

  #use(part: Part): void {
    const before = this.#part
    if (part.size === before.size && part.rank === before.rank) return
    this.#part = part
    this.#onChange(part, before)
  }
}

function regularBeatMs(size: number): number {
  return Math.max(LEAST_BEAT_MS, size * BEAT_MS_EACH)
}
