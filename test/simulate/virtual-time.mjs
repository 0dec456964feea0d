// Time that passes from event to event: nothing waits for the clock of the machine, and a seed gives the same run again.

export class VirtualTime {
  #now = 0
  #count = 0
  /** A binary heap of { at, order, run }, the earliest first. */
  #heap = []

  get now() {
    return this.#now
  }

  at(moment, run) {
    const heap = this.#heap
    let i = heap.push({ at: Math.max(moment, this.#now), order: this.#count++, run }) - 1
    for (let parent = (i - 1) >> 1; i > 0 && isBefore(heap[i], heap[parent]); parent = (i - 1) >> 1) {
      ;[heap[i], heap[parent]] = [heap[parent], heap[i]]
      i = parent
    }
  }

  after(ms, run) {
    this.at(this.#now + ms, run)
  }

  /** Rejects if the signal aborts it. */
  pause(ms, signal) {
    return new Promise((resolve, reject) => {
      this.after(ms, () => (signal?.aborted ? reject(signal.reason) : resolve()))
    })
  }

  /** The answer, or an error after `ms`. */
  within(answer, ms) {
    return new Promise((resolve, reject) => {
      this.after(ms, () => reject(new Error(`no answer within ${ms} ms`)))
      answer.then(resolve, reject)
    })
  }

  /** Lets time pass until nothing is left to happen, `isOver` says so, or `until` is reached. */
  async run(until, isOver) {
    while (this.#heap.length > 0 && this.#heap[0].at <= until && !isOver()) {
      this.#now = this.#heap[0].at
      while (this.#heap.length > 0 && this.#heap[0].at === this.#now) this.#take().run()
      // everything that was waiting for these events goes on before time does
      await new Promise(setImmediate)
    }
  }

  /** The same for events that wait for no promise. */
  runSync(until) {
    while (this.#heap.length > 0 && this.#heap[0].at <= until) {
      this.#now = this.#heap[0].at
      this.#take().run()
    }
  }

  #take() {
    const heap = this.#heap
    const first = heap[0]
    const last = heap.pop()
    if (heap.length === 0) return first
    heap[0] = last
    for (let i = 0; ; ) {
      const [left, right] = [2 * i + 1, 2 * i + 2]
      let least = i
      if (left < heap.length && isBefore(heap[left], heap[least])) least = left
      if (right < heap.length && isBefore(heap[right], heap[least])) least = right
      if (least === i) return first
      ;[heap[i], heap[least]] = [heap[least], heap[i]]
      i = least
    }
  }
}

function isBefore(a, b) {
  return a.at < b.at || (a.at === b.at && a.order < b.order)
}
