/** Continues a transfer that has waited for its turn. */
type Continue = () => void

/** What a transfer may move before it has to wait for its next turn: about what one read of a socket returns. */
export const bulkBytes = 65_536

const transfersPerTurn = 16
const turnMs = 1

/**
 * Lets large transfers move a bounded amount of bytes in each turn of the event loop, all of them together. Node accepts one new
 * connection and reads each socket once per turn, so the length of a turn is what every other caller waits for: hundreds of
 * transfers that each move what they can would make one turn last hundreds of milliseconds.
 */
export class BulkQueue {
  #waiting: Continue[] = []
  #isScheduled = false

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
    const until = performance.now() + turnMs
    // those that join meanwhile come in a later turn
    const waiting = Math.min(this.#waiting.length, transfersPerTurn)
    let done = 0
    do this.#waiting[done++]!()
    while (done < waiting && performance.now() < until)
    this.#waiting.splice(0, done)
    if (this.#waiting.length > 0) this.#schedule()
  }
}
