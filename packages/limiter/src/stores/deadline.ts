import { performance } from 'node:perf_hooks'

/** Somebody who waits for an answer. */
export interface Waiter {
  /** Set by whoever has got it. */
  isAnswered: boolean
  late(): void
}

interface Due {
  readonly waiter: Waiter
  readonly at: number
}

/**
 * Tells everybody who has waited for `ms` that it is too late, by one timer for all of them. Whose answer has come while
 * this process was busy is not late: answers that have arrived are read first.
 */
export class Deadline {
  readonly #ms: number
  #queue: Due[] = []
  #timer: NodeJS.Timeout | undefined

  constructor(ms: number) {
    this.#ms = ms
  }

  add(waiter: Waiter): void {
    this.#queue.push({ waiter, at: performance.now() + this.#ms })
    this.#timer ??= this.#arm(this.#ms)
  }

  #arm(ms: number): NodeJS.Timeout {
    // timers come before answers in a turn of the event loop, and this after both
    return setTimeout(() => setImmediate(() => this.#look()), ms)
  }

  #look(): void {
    const now = performance.now()
    const queue = this.#queue
    let next = 0
    while (next < queue.length && (queue[next]!.waiter.isAnswered || queue[next]!.at <= now)) next++
    this.#queue = queue.slice(next)
    const first = this.#queue[0]
    this.#timer = first && this.#arm(Math.max(1, Math.ceil(first.at - now)))
    for (let i = 0; i < next; i++) {
      const { waiter } = queue[i]!
      if (!waiter.isAnswered) waiter.late()
    }
  }
}

/** Nobody has answered in time. */
export class TooLate extends Error {
  constructor(ms: number) {
    super(`no answer within ${ms} ms`)
  }
}

/** The same for one answer. */
export async function within<T>(answer: Promise<T>, ms: number): Promise<T> {
  return await new Promise((resolve, reject) => {
    const tooLate = () => setImmediate(() => reject(new TooLate(ms)))
    const timer = setTimeout(tooLate, ms)
    void answer.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}
