/** Statistics of one process. */
export interface ProcessStats<Stats> {
  readonly pid: number
  readonly stats: Stats
}

export interface LastingStatsOptions<Stats> {
  readonly merge: (all: readonly Stats[]) => Stats
  /** Keeps what stays true when the process has ended: counters, and nothing of this moment. */
  readonly countersOf: (stats: Stats) => Stats
  /** A counter that a process only ever increases. */
  readonly progressOf: (stats: Stats) => number
  /** Keeps what is still worth keeping of ended processes, beside those that run. */
  readonly retain?: ((ended: Stats, running: readonly Stats[]) => Stats) | undefined
}

/**
 * The statistics of several processes as those of one that never restarts. A process that does not answer in time counts as it did before,
 * and what one had counted that has ended stays: otherwise the sum would decrease, which readers of counters take for a restart and then
 * count everything again.
 */
export class LastingStats<Stats> {
  readonly #options: LastingStatsOptions<Stats>
  readonly #running = new Map<number, Stats>()
  #ended: Stats | undefined

  constructor(options: LastingStatsOptions<Stats>) {
    this.#options = options
  }

  /** Takes new answers; `pids` are the processes that run, whether they answered or not. */
  update(answers: readonly ProcessStats<Stats>[], pids: readonly number[]): Stats {
    const { merge, progressOf, retain } = this.#options
    for (const { pid, stats } of answers) {
      const before = this.#running.get(pid)
      // the system gives the number of a process that has ended to another one
      if (before !== undefined && progressOf(stats) < progressOf(before)) this.#end(before)
      this.#running.set(pid, stats)
    }
    const isAsked = new Set([...pids, ...answers.map(({ pid }) => pid)])
    for (const [pid, stats] of this.#running) {
      if (isAsked.has(pid)) continue
      this.#running.delete(pid)
      this.#end(stats)
    }
    const running = [...this.#running.values()]
    if (this.#ended === undefined) return merge(running)
    if (retain && running.length > 0) this.#ended = retain(this.#ended, running)
    return merge([this.#ended, ...running])
  }

  #end(stats: Stats): void {
    const { merge, countersOf } = this.#options
    const counters = countersOf(stats)
    this.#ended = this.#ended === undefined ? counters : merge([this.#ended, counters])
  }
}
