import { AsyncResource } from 'node:async_hooks'
import { EventEmitter } from 'node:events'
import { DianaError } from '../errors.ts'
import { JobHeap, precedes } from './job-heap.ts'

/** The options of one job. */
export interface ScheduleOptions {
  /** Jobs of a higher priority begin first; those of one priority begin in the order in which they arrived. Default: 0. */
  readonly priority?: number | undefined
  /** The number of permits that the job takes; default: 1. */
  readonly weight?: number | undefined
  /** Takes the job out of the queue; one that has begun gets the signal as its argument. */
  readonly signal?: AbortSignal | undefined
}

/** The argument of a job. */
export interface JobContext {
  readonly signal: AbortSignal | undefined
}

/** The events of a queue of jobs. */
export interface JobEvents {
  /** A job has to wait. */
  queued: []
  /** A job begins. */
  started: []
  /** A job has ended. */
  done: []
  /** A job has thrown or rejected; its own promise rejects, too. */
  failed: [error: unknown]
  /** No job waits any more; some may still run. */
  empty: []
  /** No job waits or runs any more. */
  idle: []
}

/** A job that a gate has let begin. */
export interface Started {
  end(failed: boolean): void
  /** Takes back what was charged: the job has left in the meantime. Without it, the job ends as failed. */
  cancel?(): void
}

/**
 * The answer of a gate: the job begins, or the number of milliseconds after which the gate is asked again; earlier if a job ends.
 * `Infinity`: only if a job ends, or by `reconsider`.
 */
export type Passage = Started | number

/** Decides when jobs may begin. It keeps no queue: it is asked for the first job in order, and what it refuses costs nothing. */
export interface Gate {
  /** Throws, or rejects, if this job can never begin. */
  take(weight: number, signal: AbortSignal | undefined): Passage | Promise<Passage>
  /** The most answers that may be awaited at the same time, 1 or more. */
  readonly width: number
}

/** A job whose end changes nothing. */
export const freely: Started = { end: () => {} }

/** Timers cannot be set for longer. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

/** A job that waits. It is a resource of its own, so that it runs with the caller's AsyncLocalStorage. */
export class Job extends AsyncResource {
  readonly work: (context: JobContext) => unknown
  readonly priority: number
  readonly turn: number
  /** Most jobs have neither: a field less for each job that waits. */
  readonly #rest: Pick<ScheduleOptions, 'weight' | 'signal'> | undefined
  readonly resolve: (result: unknown) => void
  /** Its place in the heap; -1 if it is not there. */
  place = -1

  constructor(
    work: (context: JobContext) => unknown,
    { priority = 0, weight = 1, signal }: ScheduleOptions,
    turn: number,
    resolve: (result: unknown) => void,
  ) {
    super('DianaJob', { requireManualDestroy: true })
    this.work = work
    this.priority = priority
    this.turn = turn
    this.#rest = weight === 1 && signal === undefined ? undefined : { weight, signal }
    this.resolve = resolve
  }

  get weight(): number {
    return this.#rest?.weight ?? 1
  }

  get signal(): AbortSignal | undefined {
    return this.#rest?.signal
  }

  /** Rejects by `resolve`: a function less for each job that waits. */
  reject(error: unknown): void {
    this.resolve(Promise.reject(error))
  }
}

/** A question to the gate whose answer is awaited. */
interface Ask {
  /** Undefined if the job has left: another one begins in its place. */
  job: Job | undefined
  readonly weight: number
}

const NO_OPTIONS: ScheduleOptions = {}
const NO_SIGNAL: JobContext = { signal: undefined }

/**
 * Jobs in order of priority and then of arrival. Only the first one is offered to the gate, so a job of a higher priority overtakes all
 * that wait, a job that is aborted has taken nothing, and the gate may change its limits at any time.
 */
export class JobQueue {
  readonly #gate: Gate
  readonly #heap = new JobHeap<Job>()
  #events: EventEmitter<JobEvents> | undefined
  #turns = 0
  #running = 0
  /** Questions to the gate, each with the job that it will let begin. */
  readonly #asks = new Set<Ask>()
  #timer: NodeJS.Timeout | undefined
  /** The gate has let a job wait, and is not asked for others. */
  #isHeld = false
  #closed: Error | undefined
  #isPumping = false
  #isPaused = false
  /** The jobs of each signal that others wait with, so that each signal has one listener. */
  #bySignal: Map<AbortSignal, Set<Job>> | undefined
  readonly #idle: (() => void)[] = []
  readonly #onKept: ((isKept: boolean) => void) | undefined
  #isKept = false

  /** `onKept` is called with true when jobs wait or are held back by `pause`, and with false when that is over. */
  constructor(gate: Gate, onKept?: (isKept: boolean) => void) {
    this.#gate = gate
    this.#onKept = onKept
  }

  /** See `JobEvents`. */
  get events(): EventEmitter<JobEvents> {
    this.#events ??= new EventEmitter<JobEvents>()
    return this.#events
  }

  /** The number of jobs that wait. */
  get waiting(): number {
    let count = this.#heap.size
    for (const { job } of this.#asks) if (job !== undefined) count++
    return count
  }

  /** The number of jobs that run. */
  get running(): number {
    return this.#running
  }

  /** Runs a job as soon as it may begin; resolves to what it returns, and rejects with its error or with the signal's reason. */
  schedule<T>(work: (context: JobContext) => T, options: ScheduleOptions = NO_OPTIONS): Promise<Awaited<T>> {
    const { weight = 1, signal } = options
    const fault = options === NO_OPTIONS ? undefined : faultOf(options)
    if (typeof work !== 'function') return Promise.reject(new DianaError('BAD_CALL', 'a job must be a function'))
    if (fault) return Promise.reject(new DianaError('BAD_CALL', fault))
    if (this.#closed) return Promise.reject(this.#closed)
    if (signal?.aborted) return Promise.reject(signal.reason)
    if (this.#heap.size > 0 || this.#asks.size > 0 || this.#isPaused) return this.#enqueue(work, options)
    let passage: Passage | Promise<Passage>
    try {
      passage = this.#gate.take(weight, signal)
    } catch (error) {
      return Promise.reject(error)
    }
    if (typeof passage === 'object' && 'end' in passage) return this.#run(work, signal, passage) as Promise<Awaited<T>>
    const promise = this.#enqueue<T>(work, options, true)
    this.#hear(passage, this.#heap.shift()!)
    return promise
  }

  /** Runs a job as `schedule` does, without options. It may be passed on by itself. */
  readonly limit = <Args extends unknown[], T>(work: (...args: Args) => T, ...args: Args): Promise<Awaited<T>> =>
    this.schedule(args.length === 0 ? (work as () => T) : () => work(...args))

  /** Resolves when no job waits or runs. */
  drain(): Promise<void> {
    if (this.#isIdle) return Promise.resolve()
    return new Promise(resolve => {
      this.#idle.push(resolve)
    })
  }

  /** Lets no job begin until `resume`; those that run go on. */
  pause(): void {
    this.#isPaused = true
    this.#clearTimer()
    this.#keep()
  }

  resume(): void {
    this.#isPaused = false
    this.#pump()
    if (this.#isIdle) this.#letGo()
  }

  /** Asks the gate again: its limits have changed, or something else has freed a place. */
  reconsider(): void {
    if (this.#heap.size > 0) this.#pump()
  }

  /** Rejects the jobs that wait, and all that come; running jobs end as usual. */
  close(error: Error): void {
    this.#closed ??= error
    this.clear(error)
  }

  /** Rejects the jobs that wait; returns how many. */
  clear(reason: unknown = new DOMException('The jobs that waited were removed', 'AbortError')): number {
    this.#clearTimer()
    let count = 0
    for (let job = this.#heap.shift(); job !== undefined; job = this.#heap.shift()) {
      this.#leave(job)
      job.reject(reason)
      count++
    }
    for (const ask of this.#asks) {
      if (ask.job === undefined) continue
      this.#leave(ask.job)
      ask.job.reject(reason)
      ask.job = undefined
      count++
    }
    if (count > 0) this.#afterLeaving()
    return count
  }

  get #isIdle(): boolean {
    return this.#running === 0 && this.waiting === 0
  }

  #keep(): void {
    if (this.#isKept) return
    this.#isKept = true
    this.#onKept?.(true)
  }

  #letGo(): void {
    if (!this.#isKept || this.#isPaused) return
    this.#isKept = false
    this.#onKept?.(false)
  }

  /** Reports to listeners. One that throws stops no job: its error is thrown on its own, as an uncaught one. */
  #emit<Name extends keyof JobEvents>(name: Name, ...args: JobEvents[Name]): void {
    if (this.#events === undefined) return
    try {
      this.#events.emit(name as 'failed', ...(args as JobEvents['failed']))
    } catch (error) {
      queueMicrotask(() => {
        throw error
      })
    }
  }

  #enqueue<T>(work: (context: JobContext) => T, options: ScheduleOptions, isOffered = false): Promise<Awaited<T>> {
    return new Promise(resolve => {
      const job = new Job(work, options, this.#turns++, resolve as (result: unknown) => void)
      this.#heap.add(job)
      this.#keep()
      if (job.signal !== undefined) this.#listen(job, job.signal)
      this.#emit('queued')
      // a job that comes first is offered: the one before it may need more permits
      if (!isOffered && job.place === 0 && this.#asks.size < this.#gate.width) this.#pump()
    })
  }

  /** Offers jobs to the gate until it lets none begin. */
  #pump(): void {
    if (this.#isPumping || this.#isPaused) return
    this.#isPumping = true
    this.#clearTimer()
    this.#isHeld = false
    try {
      while (this.#heap.size > 0 && this.#asks.size < this.#gate.width && !this.#isHeld) {
        const job = this.#heap.shift()!
        let passage: Passage | Promise<Passage>
        try {
          passage = this.#gate.take(job.weight, job.signal)
        } catch (error) {
          this.#refuse(job, error)
          continue
        }
        this.#hear(passage, job)
      }
    } finally {
      this.#isPumping = false
    }
  }

  /** Follows the gate's answer for a job that was taken out of the heap. */
  #hear(passage: Passage | Promise<Passage>, job: Job): void {
    if (typeof passage === 'number') this.#wait(passage, job)
    else if (passage instanceof Promise) this.#follow(passage, { job, weight: job.weight }, job.signal)
    else this.#start(job, passage)
  }

  #follow(passage: Promise<Passage>, ask: Ask, signal: AbortSignal | undefined): void {
    this.#asks.add(ask)
    passage.then(
      answer => {
        this.#asks.delete(ask)
        if (typeof answer !== 'number') this.#startFirst(ask, answer)
        else if (ask.job !== undefined) this.#wait(answer, ask.job)
        this.#pump()
      },
      error => {
        this.#asks.delete(ask)
        const { job } = ask
        // the gate was asked for another job, which was aborted
        if (job !== undefined && signal?.aborted && job.signal !== signal) this.#heap.add(job)
        else if (job !== undefined) this.#refuse(job, error)
        this.#pump()
      },
    )
  }

  /** Answers may come in another order than the questions, or refuse a job and let a later one begin: the first of those jobs begins. */
  #startFirst({ job: asked, weight }: Ask, started: Started): void {
    let first = asked
    let from: Ask | undefined
    for (const ask of this.#asks) {
      const { job } = ask
      if (job === undefined || ask.weight !== weight || (first !== undefined && !precedes(job, first))) continue
      first = job
      from = ask
    }
    const waiting = this.#isPaused ? undefined : this.#heap.first
    if (waiting?.weight === weight && (first === undefined || precedes(waiting, first))) {
      this.#heap.delete(waiting)
      if (asked !== undefined) this.#heap.add(asked)
      first = waiting
    } else if (from !== undefined) from.job = asked
    if (first !== undefined && !first.signal?.aborted) {
      this.#start(first, started)
      return
    }
    // it has begun for the gate, and no job will run
    if (started.cancel) started.cancel()
    else started.end(true)
    if (first !== undefined) this.#refuse(first, first.signal!.reason)
  }

  /** Puts the job back to its place, and has the gate asked again. */
  #wait(ms: number, job: Job): void {
    this.#heap.add(job)
    this.#isHeld = true
    this.#clearTimer()
    if (this.#isPaused || ms === Number.POSITIVE_INFINITY) return
    this.#timer = setTimeout(
      () => {
        this.#timer = undefined
        this.#pump()
      },
      Math.min(Math.max(0, ms), LONGEST_TIMER_MS),
    )
  }

  #clearTimer(): void {
    if (this.#timer === undefined) return
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  #start(job: Job, started: Started): void {
    this.#leave(job)
    if (this.#heap.size === 0) this.#emit('empty')
    job.resolve(job.runInAsyncScope(this.#run, this, job.work, job.signal, started))
  }

  #refuse(job: Job, error: unknown): void {
    this.#leave(job)
    job.reject(error)
    this.#afterLeaving()
  }

  /** Calls a job's function. All work after its end is done before its caller hears of it. */
  #run(work: (context: JobContext) => unknown, signal: AbortSignal | undefined, started: Started): Promise<unknown> {
    this.#running++
    this.#emit('started')
    let result: unknown
    try {
      result = work(signal === undefined ? NO_SIGNAL : { signal })
    } catch (error) {
      this.#end(started, true, error)
      return Promise.reject(error)
    }
    if (!isThenable(result)) {
      this.#end(started, false)
      return Promise.resolve(result)
    }
    return result.then(
      value => {
        this.#end(started, false)
        return value
      },
      error => {
        this.#end(started, true, error)
        throw error
      },
    ) as Promise<unknown>
  }

  #end(started: Started, failed: boolean, error?: unknown): void {
    this.#running--
    started.end(failed)
    if (failed) this.#emit('failed', error)
    else this.#emit('done')
    if (this.#heap.size > 0) this.#pump()
    else this.#afterLeaving()
  }

  #afterLeaving(): void {
    if (!this.#isIdle) return
    this.#clearTimer()
    this.#letGo()
    this.#emit('idle')
    for (const resolve of this.#idle.splice(0)) resolve()
  }

  #listen(job: Job, signal: AbortSignal): void {
    this.#bySignal ??= new Map()
    const known = this.#bySignal.get(signal)
    if (known !== undefined) {
      known.add(job)
      return
    }
    const jobs = new Set([job])
    this.#bySignal.set(signal, jobs)
    signal.addEventListener('abort', this.#abort)
  }

  #leave(job: Job): void {
    if (job.signal === undefined) return
    const jobs = this.#bySignal?.get(job.signal)
    if (jobs === undefined || !jobs.delete(job) || jobs.size > 0) return
    this.#bySignal!.delete(job.signal)
    job.signal.removeEventListener('abort', this.#abort)
  }

  /** Takes a job away for which the gate is being asked; false if it is not. */
  #withdraw(job: Job): boolean {
    for (const ask of this.#asks) {
      if (ask.job !== job) continue
      ask.job = undefined
      return true
    }
    return false
  }

  readonly #abort = (event: Event): void => {
    const signal = event.target as AbortSignal
    for (const job of [...(this.#bySignal?.get(signal) ?? [])]) {
      const wasFirst = job.place === 0
      if (!this.#heap.delete(job) && !this.#withdraw(job)) continue
      this.#refuse(job, signal.reason)
      if (wasFirst) this.#pump()
    }
  }
}

function isThenable(value: unknown): value is Promise<unknown> {
  return typeof value === 'object' && value !== null && typeof (value as Promise<unknown>).then === 'function'
}

function faultOf({ priority = 0, weight = 1, signal }: ScheduleOptions): string | undefined {
  if (typeof priority !== 'number' || Number.isNaN(priority))
    return `priority must be a number, not ${String(priority)}`
  if (!Number.isSafeInteger(weight) || weight < 1) {
    return `weight must be a whole number of 1 or more, not ${String(weight)}`
  }
  if (signal !== undefined && typeof signal?.addEventListener !== 'function') return 'signal must be an AbortSignal'
  return undefined
}
