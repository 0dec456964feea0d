/** Something that is to be woken at a moment; `wakeAt` is infinite if it is not. */
export interface Sleeper {
  wakeAt: number
}

interface Entry {
  readonly moment: number
  /** The order among those with one moment: the lower turn comes first. */
  readonly turn: number
  readonly sleeper: Sleeper
}

const SMALLEST_SWEEP = 64

/** Sleepers by the moment at which each is to be woken. An entry counts only while its sleeper still has the moment of the entry. */
export class WakeHeap<Item extends Sleeper> {
  #entries: Entry[] = []
  #sweepAt = SMALLEST_SWEEP

  /** Wakes a sleeper at its `wakeAt`. */
  push(sleeper: Item, turn: number): void {
    if (this.#entries.length >= this.#sweepAt) this.#sweep()
    const entry = { moment: sleeper.wakeAt, turn, sleeper }
    let at = this.#entries.push(entry) - 1
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (!isBefore(entry, this.#entries[parent]!)) break
      this.#entries[at] = this.#entries[parent]!
      at = parent
    }
    this.#entries[at] = entry
  }

  /** Returns the sleeper that is woken next. */
  first(): Item | undefined {
    while (this.#entries.length > 0) {
      const { moment, sleeper } = this.#entries[0]!
      if (sleeper.wakeAt === moment) return sleeper as Item
      this.#removeFirst()
    }
    return undefined
  }

  #removeFirst(): void {
    const last = this.#entries.pop()!
    const { length } = this.#entries
    if (length === 0) return
    let at = 0
    for (let child = 1; child < length; child = 2 * at + 1) {
      if (child + 1 < length && isBefore(this.#entries[child + 1]!, this.#entries[child]!)) child++
      if (!isBefore(this.#entries[child]!, last)) break
      this.#entries[at] = this.#entries[child]!
      at = child
    }
    this.#entries[at] = last
  }

  /** Removes entries that count no more, so that calls which leave before their moment take no memory. */
  #sweep(): void {
    this.#entries = this.#entries.filter(({ moment, sleeper }) => sleeper.wakeAt === moment)
    // a sorted list is a heap
    this.#entries.sort((a, b) => (isBefore(a, b) ? -1 : 1))
    this.#sweepAt = Math.max(SMALLEST_SWEEP, this.#entries.length * 2)
  }
}

function isBefore(a: Entry, b: Entry): boolean {
  return a.moment < b.moment || (a.moment === b.moment && a.turn < b.turn)
}
