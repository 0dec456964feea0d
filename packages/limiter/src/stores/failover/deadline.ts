import { attempt } from '../../common/background.ts'
import { ticksOf } from '../../common/within.ts'

/** A call that waits for an answer. */
export interface PendingAnswer {
  /** Set when the answer is there, in time or not. */
  isAnswered: boolean
  /** When it is late; the deadline writes it. */
  dueTick: number
  /** When the store was asked, in microseconds. */
  readonly askedAt: number
  /** The answer is late. */
  late(): void
  /** The answer is so late that there is no use in waiting for it. */
  giveUp(): void
}

export interface DeadlineOptions {
  /** After so long an answer is late. */
  readonly timeoutMs: number
  /** A store that has not answered anything for so long is away; an answer that is not there by then is given up. */
  readonly silentMs: number
  /** Told when the oldest call that is not answered was sent. */
  readonly onSilent: (askedAt: number) => void
}

const LEAST_LISTED = 64

function isOpen({ isAnswered }: PendingAnswer): boolean {
  return !isAnswered
}

/**
 * Reports calls whose answer is late, and a store that is silent, by one timer for all of them. Time is measured in ticks of
 * this timer: a process that was stalled, by its own work or for want of a processor, counts the stall as one tick, and reads
 * what has arrived meanwhile before it calls an answer late.
 */
export class Deadline {
  readonly #options: DeadlineOptions
  readonly #tickMs: number
  readonly #ticks: number
  readonly #silentTicks: number
  #tick = 0
  #heardTick = 0
  #waiting: PendingAnswer[] = []
  /** Those whose answer is late and still not there. */
  #overdue: PendingAnswer[] = []
  #timer: NodeJS.Timeout | undefined
  /** Answered calls are dropped when so many calls are listed, or the list would keep all calls of a tick in memory. */
  #dropAt = LEAST_LISTED

  constructor(options: DeadlineOptions) {
    this.#options = options
    this.#ticks = ticksOf(options.timeoutMs)
    this.#tickMs = options.timeoutMs / this.#ticks
    this.#silentTicks = Math.ceil(options.silentMs / this.#tickMs)
  }

  add(waiter: PendingAnswer): void {
    waiter.dueTick = this.#tick + this.#ticks
    if (this.#waiting.length >= this.#dropAt) {
      this.#waiting = this.#waiting.filter(isOpen)
      this.#dropAt = this.#waiting.length * 2 + LEAST_LISTED
    }
    this.#waiting.push(waiter)
    if (this.#timer !== undefined) return
    this.#heardTick = this.#tick
    this.#arm()
  }

  /** The store has answered something. */
  heard(): void {
    this.#heardTick = this.#tick
  }

  /** When the oldest call that is not answered was sent. */
  get waitingSince(): number | undefined {
    return this.#oldest()?.askedAt
  }

  /** There is no use in waiting for any answer. */
  giveUpAll(): void {
    const waiting = [...this.#overdue, ...this.#waiting]
    this.#overdue = []
    this.#waiting = []
    for (const waiter of waiting) if (!waiter.isAnswered) attempt('late answers', () => waiter.giveUp())
  }

  #oldest(): PendingAnswer | undefined {
    return this.#overdue.find(isOpen) ?? this.#waiting.find(isOpen)
  }

  #arm(): void {
    // in a turn of the event loop timers come first, then answers that have arrived, then this
    this.#timer = setTimeout(() => setImmediate(() => this.#look()), this.#tickMs)
  }

  #look(): void {
    this.#tick++
    const oldest = this.#oldest()
    if (oldest && this.#tick - this.#heardTick >= this.#silentTicks) {
      attempt('late answers', () => this.#options.onSilent(oldest.askedAt))
      this.giveUpAll()
    }
    const waiting = this.#waiting
    let next = 0
    while (next < waiting.length && (waiting[next]!.isAnswered || waiting[next]!.dueTick <= this.#tick)) next++
    const due = next === 0 ? [] : waiting.splice(0, next)
    this.#overdue = this.#overdue.filter(isOpen)
    for (const waiter of due) {
      if (waiter.isAnswered) continue
      this.#overdue.push(waiter)
      attempt('late answers', () => waiter.late())
    }
    const givenUp = this.#tick + this.#ticks - this.#silentTicks
    while (this.#overdue.length > 0 && this.#overdue[0]!.dueTick <= givenUp) {
      const waiter = this.#overdue.shift()!
      attempt('late answers', () => waiter.giveUp())
    }
    this.#timer = undefined
    if (this.#waiting.length > 0 || this.#overdue.length > 0) this.#arm()
  }
}
