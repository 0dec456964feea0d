import { performance } from 'node:perf_hooks'
import { setTimeout as pause } from 'node:timers/promises'
import { within } from './deadline.ts'
import type { Fleet } from './fleet.ts'
import { type Trouble, troubleOf } from './trouble.ts'

export interface HeartbeatOptions {
  readonly timeoutMs: number
  /** Nobody says that he is there while the store cannot be asked. */
  readonly isPaused: () => boolean
  readonly onTrouble: (trouble: Trouble) => void
  /** The store has forgotten what it knew. */
  readonly onForgotten: () => void
}

/** A way that is only being opened is open within this time; it is asked whether it is in steps. */
const START_MS = 400
const START_STEP_MS = 20
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
    const until = performance.now() + START_MS
    let trouble = await this.#attend(START_MS)
    while (trouble && performance.now() + START_STEP_MS < until) {
      await pause(START_STEP_MS)
      trouble = await this.#attend(Math.max(1, until - performance.now()))
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

  async #attend(ms: number): Promise<Trouble | undefined> {
    const attending = this.#fleet.attend(performance.now()).then(hasForgotten => {
      if (hasForgotten) this.#options.onForgotten()
    })
    return await within(attending, ms).then(() => undefined, troubleOf)
  }

  #beatLater(): void {
    if (this.#isOver) return
    this.#timer = setTimeout(async () => {
      await this.beat()
      this.#beatLater()
    }, this.#fleet.beatMs).unref()
  }
}
