import { performance } from 'node:perf_hooks'
import { setTimeout as pause } from 'node:timers/promises'

/** What a recovery asks of the store. */
export interface Patient {
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

const PROBE_MS = 200
const RECONNECT_MS = 1000
/** So long after the first answer, all who can reach the store have been answered; nobody waits longer for the others. */
const MOST_REJOIN_MS = 1500
const REJOIN_STEP_MS = 20

/**
 * Brings a process back to a store that could not be asked: single probes with jitter; then all wait for each other, tell
 * the store what it missed, and wait again. Who came back sooner would find room that others have used.
 */
export class Recovery {
  readonly #patient: Patient
  #stopping = new AbortController()
  #isRunning = false

  constructor(patient: Patient) {
    this.#patient = patient
  }

  begin(): void {
    if (this.#isRunning) return
    this.#isRunning = true
    this.#stopping = new AbortController()
    void this.#run(performance.now()).catch(() => {
      // closed while it paused
    })
  }

  stop(): void {
    this.#stopping.abort()
  }

  async #run(since: number): Promise<void> {
    let connectedAt = since
    for (;;) {
      await this.#pause(PROBE_MS * (0.5 + Math.random()))
      try {
        await this.#patient.probe()
        await this.#rejoin()
        break
      } catch (error) {
        this.#stopping.signal.throwIfAborted()
        this.#patient.failed(error)
        if (performance.now() - connectedAt < RECONNECT_MS) continue
        connectedAt = performance.now()
        this.#patient.reconnect()
      }
    }
    this.#isRunning = false
    this.#patient.recovered()
  }

  async #rejoin(): Promise<void> {
    const answeredAt = performance.now()
    const isOver = (isComplete: boolean): boolean => isComplete || performance.now() - answeredAt >= MOST_REJOIN_MS
    // what is told at one moment is not half forgotten when the rest is told
    while (!isOver(await this.#patient.gather(performance.now() - answeredAt))) await this.#pause(REJOIN_STEP_MS)
    while (!isOver(await this.#patient.rejoin(performance.now() - answeredAt))) await this.#pause(REJOIN_STEP_MS)
  }

  async #pause(ms: number): Promise<void> {
    await pause(ms, undefined, { signal: this.#stopping.signal, ref: false })
  }
}
