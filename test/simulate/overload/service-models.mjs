// Services in virtual time. A service takes calls and ends each of them after a time that depends on how busy it is; `capacity` is
// how many it can answer in a second, `unloadedMs` how long a call takes while nothing waits.

/** A random number with a mean of 1 and the given coefficient of variation (a log-normal distribution). */
export function logNormal(random, variation) {
  if (variation === 0) return 1
  const sigma = Math.sqrt(Math.log(1 + variation ** 2))
  const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
  return Math.exp(sigma * normal - sigma ** 2 / 2)
}

/** Calls wait for one of `workers`, first come, first served. `pausedUntil` holds all work, as a garbage collection does. */
export class PoolService {
  constructor(time, random, { workers, serviceMs, variation = 0.1, failing = 0 }) {
    Object.assign(this, { time, random, workers, serviceMs, variation, failing, busy: 0, waiting: [], pausedUntil: 0 })
  }

  get capacity() {
    return (this.workers / this.serviceMs) * 1000
  }

  get unloadedMs() {
    return this.serviceMs
  }

  call(done) {
    this.waiting.push(done)
    this.#work()
  }

  pause(ms) {
    this.pausedUntil = this.time.now + ms
    this.time.at(this.pausedUntil, () => this.#work())
  }

  change(settings) {
    Object.assign(this, settings)
    this.#work()
  }

  #work() {
    while (this.busy < this.workers && this.waiting.length > 0 && this.time.now >= this.pausedUntil) {
      const done = this.waiting.shift()
      this.busy++
      const ms = this.serviceMs * logNormal(this.random, this.variation)
      const finish = () => {
        // what was under way when the service paused ends after the pause
        if (this.time.now < this.pausedUntil) return this.time.at(this.pausedUntil, finish)
        this.busy--
        done(this.failing > 0 && this.random() < this.failing ? 500 : 200)
        return this.#work()
      }
      this.time.after(ms, finish)
    }
  }
}

/** All calls share `cores` evenly after `ioMs` of waiting for something else, as in a process that computes. */
export class CpuService {
  constructor(time, random, { cores, cpuMs, ioMs = 0, variation = 0.1 }) {
    Object.assign(this, { time, random, cores, cpuMs, ioMs, variation, jobs: [], clock: 0, workedAt: 0, turn: 0 })
    this.pausedUntil = 0
  }

  get capacity() {
    return (this.cores / this.cpuMs) * 1000
  }

  get unloadedMs() {
    return this.cpuMs + this.ioMs
  }

  call(done) {
    const start = () => {
      this.#work()
      const end = this.clock + this.cpuMs * logNormal(this.random, this.variation)
      const at = this.jobs.findIndex(job => job.end > end)
      this.jobs.splice(at < 0 ? this.jobs.length : at, 0, { end, done })
      this.#plan()
    }
    if (this.ioMs === 0) start()
    else this.time.after(this.ioMs * logNormal(this.random, this.variation), start)
  }

  pause(ms) {
    this.#work()
    this.pausedUntil = this.time.now + ms
    this.#plan()
  }

  change(settings) {
    this.#work()
    Object.assign(this, settings)
    this.#plan()
  }

  /** How much work each job gets done in a millisecond. */
  get #speed() {
    return this.jobs.length === 0 ? 0 : Math.min(1, this.cores / this.jobs.length)
  }

  #work() {
    const from = Math.max(this.workedAt, this.pausedUntil)
    if (this.time.now > from) this.clock += (this.time.now - from) * this.#speed
    this.workedAt = this.time.now
  }

  #plan() {
    const turn = ++this.turn
    if (this.jobs.length === 0) return
    const ms = (this.jobs[0].end - this.clock) / this.#speed
    this.time.at(Math.max(this.time.now, this.pausedUntil) + ms, () => {
      if (turn !== this.turn) return
      this.#work()
      while (this.jobs.length > 0 && this.jobs[0].end <= this.clock + 1e-9) this.jobs.shift().done(200)
      this.#plan()
    })
  }
}

/** Calls need a worker for all their time, most of which a dependency takes that has a pool of its own. */
export class DependentService {
  constructor(time, random, { workers, ownMs, dependency }) {
    this.dependency = dependency
    this.own = new PoolService(time, random, { workers: Number.POSITIVE_INFINITY, serviceMs: ownMs })
    Object.assign(this, { workers, ownMs, busy: 0, waiting: [] })
  }

  get capacity() {
    return Math.min(this.dependency.capacity, (this.workers / this.unloadedMs) * 1000)
  }

  get unloadedMs() {
    return this.ownMs + this.dependency.unloadedMs
  }

  call(done) {
    this.waiting.push(done)
    this.#work()
  }

  pause(ms) {
    this.dependency.pause(ms)
  }

  change(settings) {
    this.dependency.change(settings)
  }

  #work() {
    while (this.busy < this.workers && this.waiting.length > 0) {
      const done = this.waiting.shift()
      this.busy++
      this.own.call(() =>
        this.dependency.call(status => {
          this.busy--
          done(status)
          this.#work()
        }),
      )
    }
  }
}
