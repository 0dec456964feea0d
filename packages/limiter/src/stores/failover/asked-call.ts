import type { KeyState } from '../memory/key-state.ts'
import type { SharedCharge } from '../shared-charge.ts'
import type { Answered, AnswerListener } from '../store.ts'
import type { PendingAnswer } from './deadline.ts'

/** What becomes of calls that the store was asked about. */
export interface AskedCallEvents {
  late(asked: AskedCall): void
  givenUp(asked: AskedCall): void
  answered(asked: AskedCall, answer: Answered): void
  failed(asked: AskedCall, error: unknown): void
}

/** A call that the store was asked about: one object for all that may happen to it, since every call has one. */
export class AskedCall implements PendingAnswer, AnswerListener {
  readonly charges: readonly SharedCharge[]
  readonly askedAt: number
  /** What was counted in this process before the call, if the call is counted there already. */
  readonly before: readonly (KeyState | undefined)[] | undefined
  readonly #events: AskedCallEvents
  readonly #resolve: (allowed: boolean) => void
  isAnswered = false
  dueTick = 0
  /** Whether the call passes, once that is decided. */
  isAdmitted: boolean | undefined = undefined

  constructor(
    events: AskedCallEvents,
    charges: readonly SharedCharge[],
    askedAt: number,
    before: readonly (KeyState | undefined)[] | undefined,
    resolve: (allowed: boolean) => void,
  ) {
    this.#events = events
    this.charges = charges
    this.askedAt = askedAt
    this.before = before
    this.#resolve = resolve
  }

  /** Lets the call pass or not. */
  decide(isAdmitted: boolean): void {
    this.isAdmitted = isAdmitted
    this.#resolve(isAdmitted)
  }

  late(): void {
    this.#events.late(this)
  }

  giveUp(): void {
    this.#events.givenUp(this)
  }

  answered(answer: Answered): void {
    this.isAnswered = true
    this.#events.answered(this, answer)
  }

  failed(error: unknown): void {
    this.isAnswered = true
    this.#events.failed(this, error)
  }
}
