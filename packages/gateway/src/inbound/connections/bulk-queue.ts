import { attempt } from 'diana-limiter/gateway'

/** Continues a transfer that has waited for its turn. */
type Continue = () => void

/** The bytes that a transfer may move before it has to wait for its next turn: about what one read of a socket returns. */
export const bulkBytes = 65_536

const minPerTurn = 2
const maxPerTurn = 16
/** The longest turn while transfers wait. */
const turnMs = 3

/**
 * Lets large transfers move a bounded amount of bytes in each turn of the event loop, all of them together. Node accepts one new
 * connection and reads each socket once per turn, so the length of a turn is what every other caller waits for: hundreds of
 * transfers that each move what they can would make one turn last hundreds of milliseconds.
 */
export class BulkQueue {
  #waiting: Continue[] = []
  #isScheduled = false
  /** The number of transfers that continue in a turn, as the length of the turns allows. */
  #perTurn = maxPerTurn
  #ranAt = Number.NEGATIVE_INFINITY

  join(goOn: Continue): void {
    this.#waiting.push(goOn)
    this.#schedule()
  }

  /** Resolves when it is the caller's turn. */
  turn(): Promise<void> {
    return new Promise(resolve => this.join(resolve))
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => this.#run())
  }

  #run(): void {
    this.#isScheduled = false
    const now = performance.now()
    const tookMs = now - this.#ranAt
    this.#ranAt = now
    if (tookMs > turnMs) this.#perTurn = Math.max(minPerTurn, this.#perTurn >> 1)
    else if (this.#perTurn < maxPerTurn) this.#perTurn++
    // those that join meanwhile come in a later turn
    const waiting = Math.min(this.#waiting.length, this.#perTurn)
    let done = 0
    do attempt('large transfers', this.#waiting[done++]!)
    while (done < waiting && performance.now() < now + turnMs)
    this.#waiting.splice(0, done)
    if (this.#waiting.length > 0) this.#schedule()
  }
}
