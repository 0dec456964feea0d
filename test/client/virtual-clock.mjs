// Time that passes only when nothing else is to be done: an hour of many clients takes seconds.

const real = { setTimeout: globalThis.setTimeout, clearTimeout: globalThis.clearTimeout }
const dateNow = Date.now

/** Replaces the timers of this process until `restore`. */
export class VirtualClock {
  now
  #heap = []
  #turns = 0

  constructor(startMs) {
    this.now = startMs
    Date.now = () => Math.floor(this.now)
    globalThis.setTimeout = (work, ms = 0, ...args) => this.#set(work, ms, args)
    globalThis.clearTimeout = timer => {
      if (timer && typeof timer === 'object' && 'work' in timer) timer.work = undefined
      else real.clearTimeout(timer)
    }
  }

  restore() {
    Object.assign(globalThis, real)
    Date.now = dateNow
  }

  pause(ms) {
    return new Promise(resolve => this.#set(resolve, ms, []))
  }

  /** Lets time pass until a moment. */
  async runUntil(endMs) {
    await settled()
    for (let first = this.#heap[0]; first && first.at <= endMs; first = this.#heap[0]) {
      this.#shift()
      if (first.work === undefined) continue
      this.now = Math.max(this.now, first.at)
      first.work(...first.args)
      await settled()
    }
    this.now = endMs
  }

  #set(work, ms, args) {
    // as timers of Node: never early, and at least a millisecond
    const timer = {
      at: this.now + Math.max(1, Number(ms) || 0),
      turn: this.#turns++,
      work,
      args,
      unref: () => timer,
      ref: () => timer,
    }
    const heap = this.#heap
    let place = heap.push(timer) - 1
    while (place > 0 && precedes(timer, heap[(place - 1) >> 1])) {
      heap[place] = heap[(place - 1) >> 1]
      place = (place - 1) >> 1
    }
    heap[place] = timer
    return timer
  }

  #shift() {
    const heap = this.#heap
    const last = heap.pop()
    if (heap.length === 0) return
    let place = 0
    for (;;) {
      let down = 2 * place + 1
      if (down + 1 < heap.length && precedes(heap[down + 1], heap[down])) down++
      if (down >= heap.length || !precedes(heap[down], last)) break
      heap[place] = heap[down]
      place = down
    }
    heap[place] = last
  }
}

function precedes(one, other) {
  return one.at === other.at ? one.turn < other.turn : one.at < other.at
}

/** Lets the promises go on that can. */
function settled() {
  return new Promise(resolve => setImmediate(resolve))
}
