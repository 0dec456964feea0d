import { parseDuration } from '../common/duration.ts'
import { DianaError } from '../errors.ts'
import { type Gate, JobQueue, type Passage, type Started } from '../jobs/job-queue.ts'
import { RateLimiter } from '../pacing/rate-limiter.ts'
import type { RedisTarget } from '../stores/redis/connection/client.ts'
import { Quota } from './quota.ts'
import { readLimits, readRetryAfter } from './read-limits.ts'

/** Durations are texts such as `30s`. */
export interface ClientOptions {
  /** Sends requests; default: the global `fetch`. */
  readonly fetch?: typeof globalThis.fetch | undefined
  /** Names what is limited together, for a request; default: the origin of its URL. */
  readonly by?: ((url: URL, init: RequestInit | undefined) => string) | undefined
  /** The most calls under way for one origin; default: 100. */
  readonly concurrency?: number | undefined
  /** For how long a call may wait and be repeated, unless it says otherwise itself; default: as long as it takes. */
  readonly deadline?: string | undefined
  /** The number of times that a call is repeated which the server has refused; default: 3. */
  readonly retries?: number | undefined
  /** Repeated calls for each call that was made, over time; default: 0.1. */
  readonly retryBudget?: number | undefined
  /** No server makes a call wait for longer at a time; default: `1h`. */
  readonly maxWait?: string | undefined
  /** Shares the pace with every process that uses the same name and Redis. */
  readonly store?:
    | { readonly redis: RedisTarget; readonly timeout?: string | undefined; readonly prefix?: string | undefined }
    | undefined
  /** Under which name the pace is shared; the origin is added to it. */
  readonly name?: string | undefined
  /** Milliseconds since 1970, for tests. */
  readonly clock?: (() => number) | undefined
  /** A number from 0 to 1, for tests. */
  readonly random?: (() => number) | undefined
}

/** The options of one call, beside the options of `fetch`. */
export interface PacedInit extends RequestInit {
  /** Calls of a higher priority are sent first; default: 0. */
  readonly priority?: number | undefined
  readonly deadline?: string | undefined
}

/** A limit of a server, as far as it is known. */
export interface KnownLimit {
  readonly name: string
  readonly limit: number
  readonly remaining: number
  readonly resetMs: number | undefined
}

/** A `fetch` that keeps to the limits of servers. */
export interface PacedFetch {
  (input: string | URL | Request, init?: PacedInit): Promise<Response>
  /** Returns what is known of the limits of a URL. */
  limits(url: string | URL): KnownLimit[]
  /** Resolves when no call waits or is under way. */
  drain(): Promise<void>
  /** Rejects the calls that wait, and leaves Redis. */
  close(): Promise<void>
}

const REFUSALS: ReadonlySet<number> = new Set([429, 503])
/** More origins than that are not reported apart. */
const MOST_SCOPES = 1000
const LONGEST_TIMER_MS = 2 ** 31 - 1
const FIRST_BACKOFF_MS = 1000
const LONGEST_BACKOFF_MS = 60_000
/** Repeated calls that are always allowed, however few calls were made. */
const LEAST_RETRIES = 3
/** The pace of a fleet that knows nothing of a server yet, in calls per second. */
const FIRST_RATE = 10

interface Settings {
  readonly fetch: typeof globalThis.fetch
  readonly by: NonNullable<ClientOptions['by']>
  readonly concurrency: number
  readonly deadlineMs: number
  readonly retries: number
  readonly retryBudget: number
  readonly maxWaitMs: number
  readonly store: ClientOptions['store']
  readonly name: string
  readonly now: () => number
  readonly random: () => number
}

/** Makes a `fetch` that keeps to what servers say of their limits, and repeats what they refuse, within bounds. */
export function createClient(options: ClientOptions = {}): PacedFetch {
  const settings = settingsOf(options)
  const origins = new Map<string, Origin>()
  const originOf = (url: URL, init: RequestInit | undefined): Origin => {
    const name = origins.size < MOST_SCOPES ? settings.by(url, init) : ''
    let origin = origins.get(name)
    if (origin === undefined) {
      origin = new Origin(name, settings)
      origins.set(name, origin)
    }
    return origin
  }
  const paced = async (input: string | URL | Request, init: PacedInit = {}): Promise<Response> => {
    const { priority, deadline, ...rest } = init
    const url = new URL(input instanceof Request ? input.url : input)
    const deadlineMs = deadline === undefined ? settings.deadlineMs : milliseconds('deadline', deadline)
    return await originOf(url, init).call(input, rest, { url, priority, deadlineMs })
  }
  return Object.assign(paced, {
    limits: (url: string | URL) => originOf(new URL(url), undefined).limits(new URL(url)),
    drain: async () => {
      await Promise.all([...origins.values()].map(origin => origin.drain()))
    },
    close: async () => {
      await Promise.all([...origins.values()].map(origin => origin.close()))
    },
  })
}

interface CallPlan {
  readonly url: URL
  readonly priority: number | undefined
  readonly deadlineMs: number
}

/** The calls that are limited together: the limits that its answers report, and a queue for each part of it that has the same ones. */
class Origin {
  readonly #settings: Settings
  readonly #name: string
  readonly #quotas = new Map<string, Quota>()
  /** By the first segment of the path: servers limit their parts apart, and report a limit where it counts. */
  readonly #parts = new Map<string, Part>()
  #calls = 0
  #retries = 0

  constructor(name: string, settings: Settings) {
    this.#name = name
    this.#settings = settings
  }

  async call(input: string | URL | Request, init: RequestInit, plan: CallPlan): Promise<Response> {
    const { now, random, retries } = this.#settings
    const endsAt = now() + plan.deadlineMs
    const signal = init.signal ?? (input instanceof Request ? input.signal : undefined)
    const part = this.#partOf(plan.url)
    this.#calls++
    for (let attempt = 0; ; attempt++) {
      const isRepeatable = attempt < retries && isReplayable(input, init)
      const request = input instanceof Request && isRepeatable ? input.clone() : input
      const { response, retryAfterMs } = await part.send(request, init, {
        ...plan,
        endsAt,
        signal: signal ?? undefined,
      })
      if (!REFUSALS.has(response.status) || !isRepeatable || !this.#mayRetry()) return response
      // a service that is only down says nothing of when to come back
      if (response.status === 503 && retryAfterMs === undefined) return response
      const backoffMs = Math.min(LONGEST_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** attempt)
      const afterMs = retryAfterMs === undefined ? backoffMs * (0.5 + random()) : retryAfterMs
      if (now() + afterMs > endsAt) return response
      this.#retries++
      await response.body?.cancel().catch(() => {})
    }
  }

  limits(url: URL): KnownLimit[] {
    const nowMs = this.#settings.now()
    return this.#partOf(url).limits(nowMs)
  }

  async drain(): Promise<void> {
    await Promise.all([...this.#parts.values()].map(part => part.queue.drain()))
  }

  async close(): Promise<void> {
    await Promise.all([...this.#parts.values()].map(part => part.close()))
  }

  /** True while refused calls are few of all, and may be repeated: a server that refuses everything is not asked twice as often. */
  #mayRetry(): boolean {
    return this.#retries < LEAST_RETRIES + this.#settings.retryBudget * this.#calls
  }

  #partOf(url: URL): Part {
    const segment = url.pathname.split('/', 2)[1] ?? ''
    const name = this.#parts.size < MOST_SCOPES ? segment : ''
    let part = this.#parts.get(name)
    if (part === undefined) {
      part = new Part(`${this.#name} ${name}`, this.#quotas, this.#settings)
      this.#parts.set(name, part)
    }
    return part
  }
}

interface Sending extends CallPlan {
  readonly endsAt: number
  readonly signal: AbortSignal | undefined
}

interface Sent {
  readonly response: Response
  readonly retryAfterMs: number | undefined
}

/** The calls that have the same limits, in order. */
class Part implements Gate {
  readonly width = 1
  readonly queue: JobQueue
  readonly #settings: Settings
  /** Those of the whole origin by name, and those of them that answers to these calls have reported of. */
  readonly #quotas: Map<string, Quota>
  readonly #own = new Set<Quota>()
  readonly #names = new Map<Quota, string>()
  readonly #pace: RateLimiter | undefined
  #running = 0
  /** True once an answer has come: until then only one call is sent, to learn the limits. */
  #hasHeard = false
  #blockedUntil = 0
  #pacedAt = 0

  constructor(name: string, quotas: Map<string, Quota>, settings: Settings) {
    this.#quotas = quotas
    this.#settings = settings
    this.queue = new JobQueue(this)
    const { store } = settings
    if (store) {
      this.#pace = RateLimiter.create(FIRST_RATE, { store, name: `${settings.name} ${name}`, maxBurst: '50ms' })
    }
  }

  take(_weight: number, signal: AbortSignal | undefined): Passage | Promise<Passage> {
    const { now, concurrency } = this.#settings
    const nowMs = now()
    if (this.#running >= concurrency || (!this.#hasHeard && this.#running > 0)) return Number.POSITIVE_INFINITY
    let waitMs = this.#blockedUntil - nowMs
    for (const quota of this.#own) waitMs = Math.max(waitMs, quota.waitMs(nowMs))
    if (waitMs > 0) return Math.ceil(waitMs)
    if (this.#pace === undefined) return this.#begin()
    this.#running++
    return this.#pace.acquire(1, { signal }).then(
      () => {
        this.#running--
        return this.#begin()
      },
      error => {
        this.#running--
        throw error
      },
    )
  }

  async send(
    input: string | URL | Request,
    init: RequestInit,
    { priority, deadlineMs, endsAt, signal }: Sending,
  ): Promise<Sent> {
    const { fetch, now } = this.#settings
    const leftMs = endsAt - now()
    const late = new AbortController()
    const timer = Number.isFinite(deadlineMs)
      ? setTimeout(
          () => late.abort(new DianaError('LIMITED', tooLate(deadlineMs))),
          Math.min(LONGEST_TIMER_MS, Math.max(0, leftMs)),
        )
      : undefined
    const ends =
      timer === undefined ? signal : signal === undefined ? late.signal : AbortSignal.any([signal, late.signal])
    try {
      return await this.queue.schedule(
        async () => {
          const response = await fetch(input, ends === undefined ? init : { ...init, signal: ends })
          return { response, retryAfterMs: this.#hear(response) }
        },
        { priority, signal: ends },
      )
    } finally {
      clearTimeout(timer)
    }
  }

  limits(nowMs: number): KnownLimit[] {
    return [...this.#own].map(quota => {
      const { limit, remaining } = quota
      return { name: this.#names.get(quota) ?? '', limit, remaining, resetMs: quota.resetMs(nowMs) }
    })
  }

  async close(): Promise<void> {
    this.queue.close(new DianaError('CLOSED', 'the client was closed before this call was sent'))
    await this.#pace?.close()
  }

  #begin(): Started {
    const { now, random } = this.#settings
    this.#running++
    const quotas = [...this.#own]
    for (const quota of quotas) quota.sent(now(), random())
    return {
      end: () => {
        this.#running--
        this.#hasHeard = true
        for (const quota of quotas) quota.ended()
      },
    }
  }

  /** Hears of limits by an answer; returns how long the server asks to wait, if it does. */
  #hear({ status, headers }: Response): number | undefined {
    const { now, maxWaitMs, random } = this.#settings
    const nowMs = now()
    for (const reported of readLimits(headers, nowMs)) {
      const name = `${reported.name} ${reported.countsCalls ? '' : 'units'}`
      let quota = this.#quotas.get(name)
      if (quota !== undefined) quota.hear(reported, nowMs)
      else if (this.#quotas.size < MOST_SCOPES) {
        quota = new Quota(reported, nowMs, { maxWaitMs, isPacedByFleet: this.#pace !== undefined })
        this.#quotas.set(name, quota)
      } else continue
      this.#own.add(quota)
      this.#names.set(quota, reported.name)
    }
    const after = readRetryAfter(headers, nowMs)
    const afterMs = after === undefined ? undefined : Math.min(maxWaitMs, after)
    if (REFUSALS.has(status)) {
      const waitMs = afterMs ?? FIRST_BACKOFF_MS
      // those that were refused together do not come back together
      this.#blockedUntil = Math.max(this.#blockedUntil, nowMs + waitMs + random() * Math.min(waitMs * 0.1 + 50, 5000))
      if (status === 429) for (const quota of this.#own) if (quota.remaining < 1) quota.refused(waitMs, nowMs)
    }
    this.#paceFleet(nowMs)
    return afterMs
  }

  /** Gives the fleet its rate: the lowest that a limit allows. */
  #paceFleet(nowMs: number): void {
    if (this.#pace === undefined || this.#own.size === 0) return
    const perSecond = Math.min(...[...this.#own].map(quota => quota.rate(nowMs) * 1000))
    const rate = Math.min(1e6, Math.max(0.001, perSecond))
    const isOther = Math.abs(rate - this.#pace.rate) > 0.05 * this.#pace.rate
    if (!isOther || nowMs - this.#pacedAt < 100) return
    this.#pacedAt = nowMs
    this.#pace.setRate(rate)
  }
}

/** True if a call can be sent again: a body that is a stream can be sent once. */
function isReplayable(input: string | URL | Request, { body }: RequestInit): boolean {
  if (body instanceof ReadableStream || (typeof body === 'object' && body !== null && Symbol.asyncIterator in body)) {
    return false
  }
  return !(input instanceof Request) || !input.bodyUsed
}

function settingsOf(options: ClientOptions): Settings {
  const { concurrency = 100, retries = 3, retryBudget = 0.1, store, name } = options
  const fault = (message: string): DianaError => new DianaError('BAD_CALL', message)
  if (!Number.isSafeInteger(concurrency) || concurrency < 1) {
    throw fault(`concurrency must be a whole number of 1 or more, not ${concurrency}`)
  }
  if (!Number.isSafeInteger(retries) || retries < 0) {
    throw fault(`retries must be a whole number of 0 or more, not ${retries}`)
  }
  if (!(retryBudget >= 0)) throw fault(`retryBudget must be a number of 0 or more, not ${retryBudget}`)
  if (store && !name) throw fault('a pace that processes share needs a name: say { store, name: "github" }')
  return {
    fetch: options.fetch ?? ((...args) => globalThis.fetch(...args)),
    by: options.by ?? (url => url.origin),
    concurrency,
    deadlineMs: options.deadline === undefined ? Number.POSITIVE_INFINITY : milliseconds('deadline', options.deadline),
    retries,
    retryBudget,
    maxWaitMs: milliseconds('maxWait', options.maxWait ?? '1h'),
    store,
    name: name ?? '',
    now: options.clock ?? (() => performance.timeOrigin + performance.now()),
    random: options.random ?? Math.random,
  }
}

function tooLate(deadlineMs: number): string {
  return `the call could not be sent and answered within its deadline of ${deadlineMs} ms`
}

function milliseconds(name: string, text: string): number {
  const ms = parseDuration(text)
  if (ms === undefined) {
    throw new DianaError('BAD_CALL', `${name} must be a duration such as 500ms or 4s, not "${text}"`)
  }
  return ms
}
