import type { Part } from '../algorithms/algorithm.ts'
import type { Attendance, Roll } from './roll.ts'

/** A fleet that has become smaller is believed after so long: after an outage not all are back at once. */
const SHRINK_MS = 5000
const LEAST_BEAT_MS = 1000
const BEAT_MS_EACH = 10
/** Whoever is not heard of for so many beats is gone. */
const MEMBER_BEATS = 5

/**
 * Knows how many processes count together, and remembers it while the store cannot be asked. Before the store has told,
 * the number is the one assumed, and nobody gets what cannot be dealt out evenly. Moments are milliseconds.
 */
export class Fleet {
  readonly #roll: Roll
  readonly #onChange: (part: Part) => void
  #part: Part
  #era: string | undefined
  #smallerSince: number | undefined

  constructor(roll: Roll, options: { readonly assumed: number; readonly onChange: (part: Part) => void }) {
    const { assumed, onChange } = options
    this.#roll = roll
    this.#onChange = onChange
    this.#part = { rank: assumed === 1 ? 0 : assumed, size: assumed }
  }

  get part(): Part {
    return this.#part
  }

  /** Whether the store has told yet. */
  get isKnown(): boolean {
    return this.#era !== undefined
  }

  /** So often a process says that it is there: all of them together not too often for the store. */
  get beatMs(): number {
    return Math.max(LEAST_BEAT_MS, this.#part.size * BEAT_MS_EACH)
  }

  /** Says that this process is there, and learns who else is; tells whether the store has forgotten what it knew. */
  async attend(now: number): Promise<boolean> {
    const attendance = await this.#attend(true, 0)
    const hasForgotten = this.isKnown && attendance.era !== this.#era
    this.#believe(attendance, now)
    this.#era = attendance.era
    return hasForgotten
  }

  /**
   * Says that this process has something to tell the store; tells whether all others have been heard of within `withinMs`,
   * and whether the store has forgotten what it knew.
   */
  async knock(withinMs: number): Promise<{ era: string; isComplete: boolean; hasForgotten: boolean }> {
    const { era, heard } = await this.#attend(false, withinMs)
    return { era, isComplete: heard >= this.#part.size, hasForgotten: this.isKnown && era !== this.#era }
  }

  /** Says that this process is back; tells whether all others have said so within `withinMs`. */
  async return(era: string, withinMs: number): Promise<boolean> {
    const { back } = await this.#attend(true, withinMs)
    if (this.isKnown) this.#era = era
    return back >= this.#part.size
  }

  async leave(): Promise<void> {
    await this.#roll.leave()
  }

  async #attend(isBack: boolean, withinMs: number): Promise<Attendance> {
    return await this.#roll.attend({ isBack, withinMs: Math.ceil(withinMs), memberMs: this.beatMs * MEMBER_BEATS })
  }

  #believe({ size, rank }: Attendance, now: number): void {
    if (this.isKnown && size < this.#part.size) {
      this.#smallerSince ??= now
      if (now - this.#smallerSince < SHRINK_MS) return
    }
    this.#smallerSince = undefined
    if (size === this.#part.size && rank === this.#part.rank) return
    this.#part = { rank, size }
    this.#onChange(this.#part)
  }
}
