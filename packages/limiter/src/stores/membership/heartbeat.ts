import { performance } from 'node:perf_hooks'
import { setTimeout as pause } from 'node:timers/promises'
import { within } from '../failover/deadline.ts'
import { classifyError, type StoreError } from '../failover/store-error.ts'
import type { Fleet } from './fleet.ts'

export interface HeartbeatOptions {
  readonly timeoutMs: number
  /** Nobody says that he is there while the store cannot be asked. */
  readonly isPaused: () => boolean
  /** Whether the connection is being opened and has not failed. */
  readonly isOpening?: (() => boolean) | undefined
  readonly onTrouble: (trouble: StoreError) => void
  /** The store has forgotten what it knew. */
  readonly onForgotten: () => void
}

/** A connection that is only being opened is open within this time; it is tried in steps. */
const START_MS = 400
const START_STEP_MS = 20
/** One that has not failed either gets more time: on a busy machine it takes long. */
const MOST_START_MS = 3000
/** Who does not answer a heartbeat for so long does not answer calls. */
const LEAST_TIMEOUT_MS = 500

/** Says now and then that this process is there, and so learns soon when the store is not. */
export class Heartbeat {
  readonly #fleet: Fleet
  readonly #options: HeartbeatOptions
  #timer: NodeJS.Timeout | undefined
  #isOver = false

  constructor(fleet: Fleet, options: HeartbeatOptions) {
    this.#fleet = fleet
    this.#options = options
  }

  /** Joins the fleet; resolves soon, also where the store cannot be asked, which is then an outage like any other. */
  async start(): Promise<void> {
    // steps, not time: a process that gets no processor for a while has not tried
    let steps = 0
    let trouble = await this.#attend(START_MS)
    while (trouble && !this.#isOver && steps < this.#mostSteps(trouble)) {
      await pause(START_STEP_MS)
      steps++
      trouble = await this.#attend(START_MS)
    }
    if (trouble) this.#options.onTrouble(trouble)
    this.#beatLater()
  }

  async beat(): Promise<void> {
    if (this.#options.isPaused()) return
    const trouble = await this.#attend(Math.max(LEAST_TIMEOUT_MS, this.#options.timeoutMs))
    if (trouble && trouble.kind !== 'bug') this.#options.onTrouble(trouble)
  }

  stop(): void {
    this.#isOver = true
    clearTimeout(this.#timer)
  }

  #mostSteps({ isSilent }: StoreError): number {
    // an attempt that was not answered has taken all of that time
    if (isSilent) return 0
    return (this.#options.isOpening?.() ? MOST_START_MS : START_MS) / START_STEP_MS
  }

  async #attend(ms: number): Promise<StoreError | undefined> {
    const membership = this.#fleet.register(performance.now()).then(hasForgotten => {
      if (hasForgotten) this.#options.onForgotten()
    })
    return await within(membership, ms).then(() => undefined, classifyError)
  }

  #beatLater(): void {
    if (this.#isOver) return
    this.#timer = setTimeout(async () => {
      await this.beat()
      this.#beatLater()
    }, this.#fleet.beatMs).unref()
  }
}
