import type { CompiledRule } from '../rules/compile.ts'

/** A call that waits for a rule. */
export interface QueuedWaiter {
  readonly isGone: boolean
  /** Leaves the queue of a rule, refused, so that a call of another caller has a place. */
  giveWay(rule: CompiledRule): void
}

interface CallerCalls {
  count: number
  /** From the oldest to the newest; those that have left are removed later. */
  calls: QueuedWaiter[]
}

const SMALLEST_SWEEP = 16

/** The calls that wait for one rule in this process, by caller: which caller has most of them is known at once. */
export class CallersInQueue {
  readonly #callers = new Map<string, CallerCalls>()
  /** The keys of the callers with so many calls. */
  readonly #keys: Set<string>[] = []

  countOf(key: string): number {
    return this.#callers.get(key)?.count ?? 0
  }

  /** The most calls that one caller has. */
  get most(): number {
    return Math.max(0, this.#keys.length - 1)
  }

  add(key: string, call: QueuedWaiter): void {
    const caller = this.#callers.get(key) ?? { count: 0, calls: [] }
    this.#callers.set(key, caller)
    if (caller.calls.length >= SMALLEST_SWEEP && caller.calls.length > 2 * caller.count) {
      caller.calls = caller.calls.filter(({ isGone }) => !isGone)
    }
    caller.calls.push(call)
    this.#move(key, caller, caller.count + 1)
  }

  /** One call of a caller has left; it says itself which. */
  remove(key: string): void {
    const caller = this.#callers.get(key)
    if (caller) this.#move(key, caller, caller.count - 1)
  }

  /** The newest call of a caller with most calls. */
  newestOfMost(): QueuedWaiter | undefined {
    const [key] = this.#keys.at(-1) ?? []
    const calls = key === undefined ? undefined : this.#callers.get(key)?.calls
    while (calls?.at(-1)?.isGone) calls.pop()
    return calls?.at(-1)
  }

  #move(key: string, caller: CallerCalls, count: number): void {
    this.#keys[caller.count]?.delete(key)
    caller.count = count
    if (count === 0) this.#callers.delete(key)
    else {
      // counts rise one by one
      if (this.#keys.length <= count) this.#keys[count] = new Set()
      this.#keys[count]!.add(key)
    }
    while (this.#keys.length > 0 && !this.#keys.at(-1)?.size) this.#keys.pop()
  }
}
