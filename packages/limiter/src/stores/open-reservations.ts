/** What ends at a moment, unless it is settled before. */
export interface Expiring {
  readonly holdUs: number
  readonly until: number
}

/** So many are followed; of more, those that end first stay as they were charged. */
const MOST_OPEN = 100_000

/**
 * Reservations of this process that are not settled yet, in the order in which they end. Most have the same hold, so that they end in
 * the order in which they were made: a list for each hold needs no sorting.
 */
export class OpenReservations<Item extends Expiring> {
  readonly #lists = new Map<number, Set<Item>>()
  readonly #most: number
  #size = 0
  /** When the first one ends, or earlier; to compare it with the time costs nothing. */
  dueAt: number = Number.POSITIVE_INFINITY

  constructor(most: number = MOST_OPEN) {
    this.#most = most
  }

  get size(): number {
    return this.#size
  }

  /** Returns the one that is not followed any more, if there are too many. */
  add(item: Item): Item | undefined {
    const dropped = this.#size >= this.#most ? this.#dropFirst() : undefined
    let list = this.#lists.get(item.holdUs)
    if (list === undefined) {
      list = new Set()
      this.#lists.set(item.holdUs, list)
    }
    list.add(item)
    this.#size++
    if (item.until < this.dueAt) this.dueAt = item.until
    return dropped
  }

  /** Returns whether it was open. */
  delete(item: Item): boolean {
    const list = this.#lists.get(item.holdUs)
    if (!list?.delete(item)) return false
    this.#size--
    if (list.size === 0) this.#lists.delete(item.holdUs)
    return true
  }

  /** Takes out those that have ended by `now`, the first one first. */
  takeEnded(now: number): Item[] {
    if (now < this.dueAt) return []
    const ended: Item[] = []
    this.dueAt = Number.POSITIVE_INFINITY
    for (const list of [...this.#lists.values()]) {
      for (const item of list) {
        if (item.until > now) {
          if (item.until < this.dueAt) this.dueAt = item.until
          break
        }
        ended.push(item)
      }
    }
    for (const item of ended) this.delete(item)
    // of two that end together, the one with the longer hold was made first
    return ended.sort((a, b) => a.until - b.until || b.holdUs - a.holdUs)
  }

  #dropFirst(): Item | undefined {
    let first: Item | undefined
    for (const list of this.#lists.values()) {
      const [item] = list
      if (item && (first === undefined || item.until < first.until)) first = item
    }
    if (first) this.delete(first)
    return first
  }
}
