// A simulated Redis with one thread: it knows the members of the fleet as the script does, and is away until a moment.

/** What one heartbeat, and one key that is caught up with, take of the thread; measured on a real Redis, and rounded up. */
const ATTEND_MS = 0.04
const CATCH_UP_MS = 0.05
/** TCP sends again what was lost, first after so long. */
const RETRANSMIT_MS = 200

export class SimulatedStore {
  #time
  #random
  #network
  #members = new Map()
  #busyUntil = 0
  /** Milliseconds of the thread by the second. */
  busyMs = new Map()
  commands = 0
  backAt

  constructor(time, random, { latencyMs, loss, backAt }) {
    this.#time = time
    this.#random = random
    this.#network = { latencyMs, loss }
    this.backAt = backAt
  }

  /** Works on `run` for a caller, and answers over the network; while it is away, nothing is answered. */
  ask(costMs, run) {
    return new Promise(resolve => {
      this.#time.after(this.#travelMs(), () => {
        if (this.#time.now < this.backAt) return
        const startsAt = Math.max(this.#time.now, this.#busyUntil)
        this.#busyUntil = startsAt + costMs
        this.commands++
        const second = Math.floor(startsAt / 1000)
        this.busyMs.set(second, (this.busyMs.get(second) ?? 0) + costMs)
        this.#time.at(this.#busyUntil, () => {
          const answer = run(this.#time.now)
          this.#time.after(this.#travelMs(), () => resolve(answer))
        })
      })
    })
  }

  catchUp() {
    return this.ask(CATCH_UP_MS, () => undefined)
  }

  /** The members as one process asks about them: what `RedisRegistry` does. */
  registryOf(id) {
    return {
      register: ({ isBack, withinMs, memberMs }) =>
        this.ask(ATTEND_MS, now => this.#register(id, now, isBack, withinMs, memberMs)),
      leave: async () => {},
    }
  }

  #register(id, now, isBack, withinMs, memberMs) {
    this.#members.set(id, { at: now, isBack })
    let [rank, heard, back] = [0, 0, 0]
    for (const [other, member] of this.#members) {
      if (now - member.at > memberMs) {
        this.#members.delete(other)
        continue
      }
      if (other < id) rank++
      if (now - member.at > withinMs) continue
      heard++
      if (member.isBack) back++
    }
    return { era: 'one', size: this.#members.size, rank, heard, back }
  }

  #travelMs() {
    const { latencyMs, loss } = this.#network
    let ms = latencyMs * (0.5 + this.#random())
    for (let wait = RETRANSMIT_MS; this.#random() < loss; wait *= 2) ms += wait
    return ms
  }
}
