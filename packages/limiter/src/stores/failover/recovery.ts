import { setTimeout as pause } from 'node:timers/promises'
import { attempt } from '../../common/background.ts'

/** What a recovery asks of the store. */
export interface RecoveryTarget {
  /** How many processes count together, as this one knows it. */
  fleetSize(): number
  /** Asks the store once, in a way that shows whether it counts; throws where it does not. */
  probe(): Promise<void>
  /** Says that this process is there again, and whether all others have said so within the last `withinMs`. */
  gather(withinMs: number): Promise<boolean>
  /** Tells the store what it missed, and says whether all others have told it within the last `withinMs`. */
  rejoin(withinMs: number): Promise<boolean>
  /** The way to the store may be dead without anybody having said so. */
  reconnect(): void
  /** The store cannot be asked yet, or not any more. */
  failed(error: unknown): void
  /** From now on only the store is asked. */
  recovered(): void
}

/** Time and chance, which a simulation replaces. */
export interface RecoveryTimers {
  /** Milliseconds that never step. */
  now(): number
  /** Rejects if the signal aborts it. */
  pause(ms: number, signal: AbortSignal): Promise<void>
  /** From 0 to 1. */
  random(): number
}

/** The name under which its errors are counted. */
const PLACE = 'the return to the store'
const PROBE_MS = 200
const RECONNECT_MS = 1000
/** So long after the first answer, all who can reach the store have been answered; nobody waits longer for the others. */
const MOST_REJOIN_MS = 1500
const LEAST_STEP_MS = 20
/** All processes together ask the store 2,000 times a second at most, however many there are. */
const STEP_MS_EACH = 0.5
/** Between its first answer and its return, a process asks at least so often. */
const LEAST_STEPS = 5

const realTimers: RecoveryTimers = {
  now: () => performance.now(),
  pause: (ms, signal) => pause(ms, undefined, { signal, ref: false }),
  random: () => Math.random(),
}

/**
 * Brings a process back to a store that could not be asked: single probes with jitter; then all wait for each other, tell
 * the store what it missed, and wait again. Who came back sooner would find room that others have used.
 */
export class Recovery {
  readonly #patient: RecoveryTarget
  readonly #timers: RecoveryTimers
  #stopping = new AbortController()
  #isRunning = false
  #endPause = (): void => {}

  constructor(patient: RecoveryTarget, timers: RecoveryTimers = realTimers) {
    this.#patient = patient
    this.#timers = timers
  }

  begin(): void {
    if (this.#isRunning) return
    this.#isRunning = true
    this.#stopping = new AbortController()
    void this.#run().catch(() => {
      // closed while it paused
    })
  }

  /** Probes at once: there is a new connection. */
  wake(): void {
    this.#endPause()
  }

  stop(): void {
    this.#stopping.abort()
  }

  get #stepMs(): number {
    return Math.max(LEAST_STEP_MS, this.#patient.fleetSize() * STEP_MS_EACH)
  }

  async #run(): Promise<void> {
    let connectedAt = this.#timers.now()
    for (;;) {
      await this.#pauseUntilWoken(Math.max(PROBE_MS, this.#stepMs))
      try {
        await this.#patient.probe()
        await this.#rejoin()
        break
      } catch (error) {
        this.#stopping.signal.throwIfAborted()
        attempt(PLACE, () => this.#patient.failed(error))
        if (this.#timers.now() - connectedAt < RECONNECT_MS) continue
        connectedAt = this.#timers.now()
        attempt(PLACE, () => this.#patient.reconnect())
      }
    }
    this.#isRunning = false
    attempt(PLACE, () => this.#patient.recovered())
  }

  async #rejoin(): Promise<void> {
    const answeredAt = this.#timers.now()
    const passedMs = (): number => this.#timers.now() - answeredAt
    const mostMs = Math.max(MOST_REJOIN_MS, this.#stepMs * LEAST_STEPS)
    const isOver = (isComplete: boolean): boolean => isComplete || passedMs() >= mostMs
    // what is told at one moment is not half forgotten when the rest is told
    while (!isOver(await this.#tryTwice(() => this.#patient.gather(passedMs())))) await this.#pause(this.#stepMs)
    while (!isOver(await this.#tryTwice(() => this.#patient.rejoin(passedMs())))) await this.#pause(this.#stepMs)
  }

  /** One late answer is no outage; a process that begins again would come back after all others. */
  async #tryTwice(ask: () => Promise<boolean>): Promise<boolean> {
    return await ask().catch(async () => {
      await this.#pause(this.#stepMs)
      return await ask()
    })
  }

  async #pauseUntilWoken(ms: number): Promise<void> {
    const woken = new Promise<void>(resolve => {
      this.#endPause = resolve
    })
    await Promise.race([this.#pause(ms), woken])
    this.#stopping.signal.throwIfAborted()
  }

  /** Pauses for half to one and a half times as long, so that processes do not ask at the same moment. */
  async #pause(ms: number): Promise<void> {
    await this.#timers.pause(ms * (0.5 + this.#timers.random()), this.#stopping.signal)
  }
}
