import { setTimeout as pause } from 'node:timers/promises'
import { attempt } from '../../common/background.ts'
import { reportFault } from '../../common/faults.ts'
import { within } from '../../common/within.ts'
import type { Fleet } from './fleet.ts'

/** Why the store did not answer a heartbeat. */
export interface Failure {
  /** The store did not answer at all: another attempt takes as long. */
  readonly isSilent: boolean
  /** `bug` if the store answered, and the answer made no sense. */
  readonly kind: string
}

export interface HeartbeatOptions<Trouble extends Failure> {
  /** What an error of the store means. */
  readonly classify: (error: unknown) => Trouble
  readonly timeoutMs: number
  /** No heartbeat is sent while the store cannot be asked. */
  readonly isPaused: () => boolean
  /** Whether a store that could not be asked may only be slow: the connection was not refused. */
  readonly mayAnswer?: ((trouble: Trouble) => boolean) | undefined
  /** How many calls the store has answered so far. */
  readonly answers?: (() => number) | undefined
  readonly onTrouble: (trouble: Trouble) => void
  /** The store has forgotten what it knew. */
  readonly onForgotten: () => void
}

/** A store that refuses is tried for so long, in steps: it may have been started together with this process. */
const START_MS = 400
const START_STEP_MS = 20
/**
 * One that has not answered yet gets more time: on a busy machine connections and answers take long, and a process that does not
 * know the others would take a share that is theirs.
 */
const MOST_START_MS = 3000
/** An attempt that took longer counts as this: the process was stalled, or the connection is replaced. */
const LONGEST_ATTEMPT_MS = 500
/** A store that does not answer a heartbeat for so long does not answer calls. */
const LEAST_TIMEOUT_MS = 500

/** Sends heartbeats of this process, and so detects an outage of the store early. */
export class Heartbeat<Trouble extends Failure = Failure> {
  readonly #fleet: Fleet
  readonly #options: HeartbeatOptions<Trouble>
  #timer: NodeJS.Timeout | undefined
  #isOver = false

  constructor(fleet: Fleet, options: HeartbeatOptions<Trouble>) {
    this.#fleet = fleet
    this.#options = options
  }

  /** Joins the fleet; resolves soon, also if the store cannot be asked, which is then an outage like any other. */
  async start(): Promise<void> {
    const { mayAnswer, onTrouble } = this.#options
    const mostMs = mayAnswer ? MOST_START_MS : START_MS
    let triedMs = 0
    for (;;) {
      const since = performance.now()
      const patienceMs = Math.max(START_MS, mostMs - triedMs)
      const trouble = await this.#register(patienceMs)
      if (!trouble) break
      // what was tried counts, not time: a process that gets no processor for a while has not tried
      const attemptMs = trouble.isSilent ? patienceMs : Math.min(performance.now() - since, LONGEST_ATTEMPT_MS)
      triedMs += attemptMs + START_STEP_MS
      if (this.#isOver || triedMs > (mayAnswer?.(trouble) ? mostMs : START_MS)) {
        attempt('heartbeats', () => onTrouble(trouble))
        break
      }
      await pause(START_STEP_MS)
    }
    this.#beatLater()
  }

  async beat(): Promise<void> {
    if (this.#options.isPaused()) return
    const { answers = () => 0, timeoutMs, onTrouble } = this.#options
    const answersBefore = answers()
    const trouble = await this.#register(Math.max(LEAST_TIMEOUT_MS, timeoutMs))
    if (!trouble || trouble.kind === 'bug') return
    // a store that answers calls is slow, not silent
    if (trouble.isSilent && answers() > answersBefore) return
    onTrouble(trouble)
  }

  stop(): void {
    this.#isOver = true
    clearTimeout(this.#timer)
  }

  async #register(ms: number): Promise<Trouble | undefined> {
    const membership = this.#fleet.register(performance.now()).then(hasForgotten => {
      if (hasForgotten) this.#options.onForgotten()
    })
    return await within(membership, ms).then(() => undefined, this.#options.classify)
  }

  #beatLater(): void {
    if (this.#isOver) return
    this.#timer = setTimeout(async () => {
      await this.beat().catch(error => reportFault('heartbeats', error))
      this.#beatLater()
    }, this.#fleet.beatMs).unref()
  }
}
