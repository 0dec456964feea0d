import type { EventEmitter } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { burstCurve, type Curve, emptied, Smooth, warmUpCurve } from '../algorithms/smooth.ts'
import { type Clock, inMicroseconds, steadyMicroseconds } from '../common/clock.ts'
import { parseDuration } from '../common/duration.ts'
import { prefixFault } from '../common/redis-url.ts'
import { DianaError } from '../errors.ts'
import { freely, type Gate, type JobEvents, JobQueue, type ScheduleOptions, type Started } from '../jobs/job-queue.ts'
import type { RedisTarget } from '../stores/redis/connection/client.ts'
import { FleetPace } from './shared-pace.ts'

/** `warmUp` and `maxBurst` are durations such as `4s`. */
export interface RateLimiterOptions {
  /** The time from a cold start until the rate is reached; an unused limiter cools down again. */
  readonly warmUp?: string | undefined
  /** The factor by which a cold limiter starts slower than its rate; default 3. */
  readonly coldFactor?: number | undefined
  /** For how long unused permits are saved; default `1s`. Not with `warmUp`, whose saved permits are slow. */
  readonly maxBurst?: string | undefined
  /** Shares the rate with every process that uses the same name and Redis; default: this process alone. */
  readonly store?:
    | { readonly redis: RedisTarget; readonly timeout?: string | undefined; readonly prefix?: string | undefined }
    | undefined
  /** The most jobs of `schedule` that run at the same time in this process; default: as many as the rate lets begin. */
  readonly concurrency?: number | undefined
  /** Under which name the rate is shared. */
  readonly name?: string | undefined
  readonly clock?: Clock | undefined
}

/** The most jobs for which Redis is asked at the same time. */
const MOST_ASKED = 16
/** A job that begins later than its moment does not make the next one late, up to here. */
const MOST_LATE_US = 50_000

interface Waiter {
  moment: number
  readonly price: number
  timer: NodeJS.Timeout | undefined
  readonly pass: () => void
}

/**
 * Paces jobs, after Guava's RateLimiter: `acquire(n)` resolves when the permits are there. A request never waits for
 * its own size, only for what was taken before it, so that a large one starts at once and the next one pays.
 */
export class RateLimiter {
  readonly #now: () => number
  readonly #curveAt: (rate: number) => Curve
  readonly #state: Float64Array
  readonly #waiters: Waiter[] = []
  readonly #fleet: FleetPace | undefined
  readonly #jobs: JobQueue
  readonly #concurrency: number
  #rate: number
  #smooth: Smooth
  /** The moment at which the job that waits first is due; 0 if none waits. */
  #dueAt = 0

  private constructor(
    rate: number,
    curveAt: (rate: number) => Curve,
    state: Float64Array,
    now: () => number,
    fleet: FleetPace | undefined,
    concurrency: number,
  ) {
    this.#concurrency = concurrency
    this.#jobs = new JobQueue(this.#gate())
    this.limit = this.#jobs.limit
    this.#fleet = fleet
    this.#now = now
    this.#curveAt = curveAt
    this.#state = state
    this.#rate = rate
    this.#smooth = new Smooth(curveAt(rate), Number.POSITIVE_INFINITY)
  }

  static create(permitsPerSecond: number, options: RateLimiterOptions = {}): RateLimiter {
    const { warmUp, coldFactor = 3, maxBurst, concurrency = Number.POSITIVE_INFINITY } = options
    const now = options.clock ? inMicroseconds(options.clock) : steadyMicroseconds
    assertConcurrency(concurrency)
    const isUnpaced = permitsPerSecond === Number.POSITIVE_INFINITY && concurrency !== permitsPerSecond
    if (isUnpaced && !options.store) {
      const curveAt = (): Curve => burstCurve(1, 0)
      return new RateLimiter(permitsPerSecond, curveAt, new Float64Array(3), now, undefined, concurrency)
    }
    assertRate(permitsPerSecond)
    if (warmUp === undefined) {
      const burstMs = milliseconds('maxBurst', maxBurst ?? '1s')
      const curveAt = (rate: number): Curve => burstCurve(1_000_000 / rate, burstMs)
      const state = emptied(curveAt(permitsPerSecond), now())
      const fleet = fleetPace(permitsPerSecond, curveAt, now, options)
      return new RateLimiter(permitsPerSecond, curveAt, state, now, fleet, concurrency)
    }
    if (maxBurst !== undefined) throw new DianaError('BAD_CALL', 'maxBurst and warmUp exclude each other; keep one')
    if (!(coldFactor > 1)) throw new DianaError('BAD_CALL', `coldFactor must be above 1, not ${coldFactor}`)
    const warmUpUs = milliseconds('warmUp', warmUp) * 1000
    const curveAt = (rate: number): Curve => warmUpCurve(1_000_000 / rate, warmUpUs, coldFactor)
    const fleet = fleetPace(permitsPerSecond, curveAt, now, options)
    return new RateLimiter(permitsPerSecond, curveAt, new Float64Array(3), now, fleet, concurrency)
  }

  /** Permits per second; of a shared rate, as far as this process has heard. */
  get rate(): number {
    return this.#fleet?.rate ?? this.#rate
  }

  /**
   * Takes effect for the permits asked for from now on; what was taken is still paid for at the old rate. A shared rate changes
   * for all processes.
   */
  setRate(permitsPerSecond: number): void {
    assertRate(permitsPerSecond)
    if (this.#fleet) {
      this.#fleet.rate = permitsPerSecond
      return
    }
    const next = new Smooth(this.#curveAt(permitsPerSecond), Number.POSITIVE_INFINITY)
    const old = this.#state.slice()
    this.#state.fill(0)
    next.inherit(old, this.#smooth.scale, this.#state, 0, this.#now())
    this.#rate = permitsPerSecond
    this.#smooth = next
    this.#dueAt = 0
    this.#jobs.reconsider()
  }

  /** Runs a job when its permits are there; the jobs that wait begin by priority, and then as they arrived. */
  schedule<T>(
    work: (context: { readonly signal: AbortSignal | undefined }) => T,
    options?: ScheduleOptions,
  ): Promise<Awaited<T>> {
    return this.#jobs.schedule(work, options)
  }

  /** Runs a job as `schedule` does, without options, for one permit; it may be passed on by itself. */
  readonly limit: JobQueue['limit']

  /** Resolves when no job of `schedule` waits or runs. */
  drain(): Promise<void> {
    return this.#jobs.drain()
  }

  /** The jobs of `schedule`, with their numbers, events and what else can be done to them. */
  get jobs(): JobQueue {
    return this.#jobs
  }

  /** The events of jobs; see `JobEvents`. */
  get events(): EventEmitter<JobEvents> {
    return this.#jobs.events
  }

  /** Returns how many calls for one permit would pass at once. */
  async availablePermits(): Promise<number> {
    return this.#fleet ? await this.#fleet.available() : this.#smooth.passesAtOnce(this.#state, 0, this.#now())
  }

  /** Rejects the jobs that have not begun, and leaves Redis. */
  async close(): Promise<void> {
    this.#jobs.close(new DianaError('CLOSED', 'the RateLimiter was closed before this job began; await drain() first'))
    await this.#fleet?.close()
  }

  /** Takes `permits`, resolves when they are there, to the milliseconds waited; rejects when the signal comes first. */
  async acquire(permits = 1, options: { signal?: AbortSignal | undefined } = {}): Promise<number> {
    assertPermits(permits)
    options.signal?.throwIfAborted()
    if (!this.#fleet) return await this.#take(permits, options.signal)
    return (await waitFor(this.#fleet, permits, Number.POSITIVE_INFINITY, options.signal)) ?? 0
  }

  /** Takes `permits` if they are there within `timeout` (a duration, or milliseconds; default 0), else nothing. */
  async tryAcquire(
    permits = 1,
    options: { timeout?: string | number | undefined; signal?: AbortSignal | undefined } = {},
  ): Promise<boolean> {
    assertPermits(permits)
    options.signal?.throwIfAborted()
    const { timeout = 0 } = options
    const timeoutMs = typeof timeout === 'number' ? timeout : milliseconds('timeout', timeout)
    if (!(timeoutMs >= 0)) throw new DianaError('BAD_CALL', `timeout must be 0 or more milliseconds, not ${timeoutMs}`)
    if (this.#fleet) return (await waitFor(this.#fleet, permits, timeoutMs * 1000, options.signal)) !== undefined
    const isPaced = this.#rate !== Number.POSITIVE_INFINITY
    if (isPaced && this.#smooth.delay(this.#state, 0, this.#now()) > timeoutMs * 1000) return false
    await this.#take(permits, options.signal)
    return true
  }

  /** Lets jobs begin at this rate. Those that wait have taken no permits, so `acquire` may come before them. */
  #gate(): Gate {
    let running = 0
    const started: Started = {
      end: () => {
        running--
      },
    }
    const isBounded = this.#concurrency !== Number.POSITIVE_INFINITY
    let width = 1
    return {
      get width() {
        return width
      },
      take: (weight, signal) => {
        if (isBounded && running >= this.#concurrency) return Number.POSITIVE_INFINITY
        if (this.#fleet) {
          running++
          return reserveFor(this.#fleet, weight, signal).then(
            waitedUs => {
              width = waitedUs > 0 ? 1 : Math.min(MOST_ASKED, width * 2)
              return started
            },
            error => {
              running--
              throw error
            },
          )
        }
        const waitMs = this.#takeForJob(weight)
        if (waitMs > 0) return waitMs
        if (!isBounded) return freely
        running++
        return started
      },
    }
  }

  /** Returns the milliseconds that a job has to wait; 0 if its permits are taken. */
  #takeForJob(permits: number): number {
    if (this.#rate === Number.POSITIVE_INFINITY) return 0
    const now = this.#now()
    // a timer that was late does not slow down the pace
    const at = this.#dueAt === 0 ? now : Math.min(now, Math.max(this.#dueAt, now - MOST_LATE_US))
    const delay = this.#smooth.delay(this.#state, 0, at)
    if (delay > 0 && at + delay > now) {
      this.#dueAt = at + delay
      return Math.ceil((this.#dueAt - now) / 1000)
    }
    this.#smooth.take(this.#state, 0, at + delay, permits, 0)
    this.#dueAt = this.#jobs.waiting > 0 ? at + delay : 0
    return 0
  }

  async #take(permits: number, signal?: AbortSignal): Promise<number> {
    if (this.#rate === Number.POSITIVE_INFINITY) return 0
    const now = this.#now()
    const delay = this.#smooth.delay(this.#state, 0, now)
    this.#smooth.take(this.#state, 0, now, permits, delay)
    if (delay === 0) return 0
    const price = this.#smooth.delay(this.#state, 0, now) - delay
    return await this.#wait(now, delay, price, signal)
  }

  #wait(now: number, delay: number, price: number, signal?: AbortSignal): Promise<number> {
    return new Promise((resolve, reject) => {
      const abandon = (): void => {
        this.#leave(waiter)
        this.#moveUp(waiter)
        reject(signal?.reason)
      }
      const pass = (): void => {
        this.#leave(waiter)
        signal?.removeEventListener('abort', abandon)
        resolve((waiter.moment - now) / 1000)
      }
      const waiter: Waiter = { moment: now + delay, price, timer: undefined, pass }
      this.#waiters.push(waiter)
      signal?.addEventListener('abort', abandon, { once: true })
      arm(waiter, now)
    })
  }

  #leave(waiter: Waiter): void {
    clearTimeout(waiter.timer)
    this.#waiters.splice(this.#waiters.indexOf(waiter), 1)
  }

  /** Calls behind one that gave up pass earlier by its cost. */
  #moveUp(gone: Waiter): void {
    const now = this.#now()
    this.#smooth.repay(this.#state, 0, now, gone.price)
    for (const waiter of this.#waiters) {
      if (waiter.moment <= gone.moment) continue
      waiter.moment -= gone.price
      arm(waiter, now)
    }
  }
}

/** Waits for permits that the fleet shares and returns for how many milliseconds; undefined if they come too late. */
async function waitFor(
  fleet: FleetPace,
  permits: number,
  maxWaitUs: number,
  signal?: AbortSignal,
): Promise<number | undefined> {
  const reserved = await fleet.take(permits, maxWaitUs, signal)
  if (!reserved) return undefined
  try {
    const ms = Math.ceil(reserved.waitUs / 1000)
    signal?.throwIfAborted()
    if (ms > 0) await pause(ms, undefined, { signal })
  } catch {
    reserved.giveBack()
    signal?.throwIfAborted()
  }
  return (reserved.waitedUs + reserved.waitUs) / 1000
}

/** Waits until a job's permits are there; resolves to how long that took, in microseconds. */
async function reserveFor(fleet: FleetPace, permits: number, signal: AbortSignal | undefined): Promise<number> {
  return ((await waitFor(fleet, permits, Number.POSITIVE_INFINITY, signal)) ?? 0) * 1000
}

function fleetPace(
  rate: number,
  curveAt: (rate: number) => Curve,
  now: () => number,
  { store, name }: RateLimiterOptions,
): FleetPace | undefined {
  if (!store) return undefined
  if (!name) throw new DianaError('BAD_CALL', 'a rate that processes share needs a name: say { store, name: "mail" }')
  const fault = store.prefix === undefined ? undefined : prefixFault(store.prefix)
  if (fault) throw new DianaError('BAD_CALL', `store.prefix ${fault}`)
  const timeoutMs = milliseconds('store.timeout', store.timeout ?? '400ms')
  return new FleetPace(rate, { redis: store.redis, prefix: store.prefix, name, timeoutMs, curveAt, now })
}

function arm(waiter: Waiter, now: number): void {
  clearTimeout(waiter.timer)
  waiter.timer = setTimeout(waiter.pass, Math.ceil((waiter.moment - now) / 1000))
}

function assertRate(permitsPerSecond: number): void {
  if (!(permitsPerSecond > 0 && Number.isFinite(permitsPerSecond))) {
    throw new DianaError('BAD_CALL', `permits per second must be a number above 0, not ${permitsPerSecond}`)
  }
}

function assertConcurrency(concurrency: number): void {
  if (concurrency === Number.POSITIVE_INFINITY || (Number.isSafeInteger(concurrency) && concurrency >= 1)) return
  throw new DianaError('BAD_CALL', `concurrency must be a whole number of 1 or more, not ${concurrency}`)
}

function assertPermits(permits: number): void {
  if (!Number.isSafeInteger(permits) || permits < 1) {
    throw new DianaError('BAD_CALL', `permits must be a whole number of 1 or more, not ${permits}`)
  }
}

function milliseconds(name: string, text: string): number {
  const ms = parseDuration(text)
  if (ms === undefined)
    throw new DianaError('BAD_CALL', `${name} must be a duration such as 500ms or 4s, not "${text}"`)
  return ms
}
