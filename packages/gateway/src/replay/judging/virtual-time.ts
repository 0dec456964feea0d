import type { Timers } from 'diana-limiter/gateway'

interface Event {
  readonly at: number
  readonly turn: number
  run: (() => void) | undefined
}

/** Time that moves with the calls of a log: what is due between two of them happens at its moment, in order. */
export class VirtualTime implements Timers {
  /** Microseconds since 1970. */
  now = 0
  readonly #heap: Event[] = []
  #turns = 0

  set(run: () => void, ms: number): NodeJS.Timeout {
    return this.at(this.now + Math.max(1, Math.ceil(ms)) * 1000, run) as unknown as NodeJS.Timeout
  }

  clear(timer: NodeJS.Timeout | undefined): void {
    if (timer !== undefined) (timer as unknown as Event).run = undefined
  }

  soon(run: () => void): void {
    this.at(this.now, run)
  }

  /** Runs something at a moment; those of one moment by their turn. */
  at(at: number, run: () => void, turn: number = this.#turns++): Event {
    const event: Event = { at: Math.max(at, this.now), turn, run }
    push(this.#heap, event)
    return event
  }

  /** Runs the next thing that is due before a call of this moment and turn; false if there is none. */
  step(until: number, turn: number): boolean {
    for (;;) {
      const first = this.#heap[0]
      if (first === undefined || first.at > until || (first.at === until && first.turn > turn)) {
        if (until > this.now && until !== Number.POSITIVE_INFINITY) this.now = until
        return false
      }
      pop(this.#heap)
      if (first.run === undefined) continue
      this.now = Math.max(this.now, first.at)
      first.run()
      return true
    }
  }
}

export function isBefore(a: { at: number; turn: number }, b: { at: number; turn: number }): boolean {
  return a.at < b.at || (a.at === b.at && a.turn < b.turn)
}

/** Adds to a heap whose first one comes first. */
export function push<Item extends { at: number; turn: number }>(heap: Item[], item: Item): void {
  let at = heap.length
  heap.push(item)
  while (at > 0) {
    const parent = (at - 1) >> 1
    if (!isBefore(item, heap[parent]!)) break
    heap[at] = heap[parent]!
    at = parent
  }
  heap[at] = item
}

/** Takes the first one out. */
export function pop<Item extends { at: number; turn: number }>(heap: Item[]): Item | undefined {
  const first = heap[0]
  const last = heap.pop()
  if (last === undefined || heap.length === 0) return first
  let at = 0
  for (;;) {
    let child = 2 * at + 1
    if (child >= heap.length) break
    if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child++
    if (!isBefore(heap[child]!, last)) break
    heap[at] = heap[child]!
    at = child
  }
  heap[at] = last
  return first
}
