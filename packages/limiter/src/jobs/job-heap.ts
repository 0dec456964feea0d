/** An element that a heap sorts. */
export interface Ranked {
  readonly priority: number
  /** The order of arrival: those of one priority are sorted by it. */
  readonly turn: number
  /** Its place in the heap; -1 if it is not there. */
  place: number
}

/** Jobs by priority, and within a priority by turn: a binary heap in which each job knows its place, so that any can be removed. */
export class JobHeap<Job extends Ranked> {
  readonly #jobs: Job[] = []

  get size(): number {
    return this.#jobs.length
  }

  get first(): Job | undefined {
    return this.#jobs[0]
  }

  add(job: Job): void {
    this.#rise(job, this.#jobs.push(job) - 1)
  }

  /** Removes the first job, and returns it. */
  shift(): Job | undefined {
    const first = this.#jobs[0]
    if (first !== undefined) this.delete(first)
    return first
  }

  /** False if the job is not here. */
  delete(job: Job): boolean {
    const { place } = job
    if (place < 0 || this.#jobs[place] !== job) return false
    const last = this.#jobs.pop()!
    job.place = -1
    if (last === job) return true
    this.#rise(last, this.#sink(last, place))
    return true
  }

  #rise(job: Job, from: number): void {
    const jobs = this.#jobs
    let place = from
    while (place > 0) {
      const up = (place - 1) >> 1
      const above = jobs[up]!
      if (!precedes(job, above)) break
      jobs[place] = above
      above.place = place
      place = up
    }
    jobs[place] = job
    job.place = place
  }

  #sink(job: Job, from: number): number {
    const jobs = this.#jobs
    let place = from
    for (let down = 2 * place + 1; down < jobs.length; down = 2 * place + 1) {
      const right = down + 1
      if (right < jobs.length && precedes(jobs[right]!, jobs[down]!)) down = right
      const below = jobs[down]!
      if (!precedes(below, job)) break
      jobs[place] = below
      below.place = place
      place = down
    }
    return place
  }
}

/** True if a job begins before another one. */
export function precedes(one: Ranked, other: Ranked): boolean {
  return one.priority === other.priority ? one.turn < other.turn : one.priority > other.priority
}
