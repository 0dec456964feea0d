import { headerWriters } from '../answers/headers.ts'
import { joinVerdicts } from '../answers/joined-verdict.ts'
import { writeTokenHeaders } from '../answers/token-headers.ts'
import type { Call } from '../call.ts'
import { isThenable, valueNow } from '../common/promises.ts'
import { warnOnce } from '../common/warn-once.ts'
import type { CheckOptions } from '../decision/check-options.ts'
import { engineOf } from '../engine/engine-of.ts'
import type { Outcome, Verdict } from '../verdict.ts'
import { CallCosts } from './costs/call-costs.ts'
import { current } from './current-request.ts'
import type { Filter } from './filter.ts'
import type { Framework, Watcher } from './frameworks/framework.ts'
import { readAttributes } from './given-attributes.ts'
import { inTime } from './in-time.ts'
import type { FoundValues, RequestFunctions } from './one-line/request-functions.ts'
import { type Asked, areMatchingDecided, chargedBy, coveringFilter, lastVerdict, type PastRun } from './past-runs.ts'
import { type Next, refuse, refuseUnjudged, refuseUnready } from './refuse.ts'
import { type Failure, report } from './report.ts'
import { RequestCall } from './request-call.ts'

interface Decided {
  [runs]?: readonly PastRun[] | PastRun
}

const runs: unique symbol = Symbol('diana.runs')

/**
 * Decides a request that has come to a filter; true if it may continue. A request that a filter of the same limiter and rules
 * has decided before continues unchanged. With `forwardErrors`, it throws a LimitedError, or rejects with one. `next` is what the
 * framework gives its handlers, for `onRefused`.
 */
export function admit<Request, Reply>(
  filter: Filter<Request, Reply>,
  request: Request,
  reply: Reply,
  next?: Next,
): boolean | Promise<boolean> {
  // before anything is awaited, so that it holds for all that the request starts
  if (current.tracker !== undefined) current.tracker.enter(filter.framework.identity(request))
  if (filter.passesPreflights === true && isPreflight(filter.framework, request)) return true
  if (filter.pending !== undefined) return admitLater(filter, filter.pending, request, reply, next)
  const { skip } = filter.options
  if (skip === undefined) return begin(filter, request, reply, next)
  const skipped = isSkipped(filter, skip, request)
  if (typeof skipped === 'boolean') return skipped || begin(filter, request, reply, next)
  return skipped.then(isDone => isDone || begin(filter, request, reply, next))
}

function begin<Request, Reply>(
  filter: Filter<Request, Reply>,
  request: Request,
  reply: Reply,
  next: Next | undefined,
): boolean | Promise<boolean> {
  const { framework } = filter
  const decided = placeFor(framework.identity(request))
  const past = decided[runs]
  if (past !== undefined) return admitAgain(filter, request, reply, next, decided, pastRuns(past))
  if (framework.isAnswered(reply)) return passLate()
  const run = new FilterRun(filter, request, reply, next, filter.only)
  decided[runs] = run
  return run.decide()
}

/** Admits a request once there is a limiter; if none can be made, the request is refused and the error is reported. */
async function admitLater<Request, Reply>(
  filter: Filter<Request, Reply>,
  pending: Promise<void>,
  request: Request,
  reply: Reply,
  next: Next | undefined,
): Promise<boolean> {
  filter.onEarlyRequest?.()
  try {
    await pending
  } catch (error) {
    const { framework, options } = filter
    if (options.skip !== undefined && (await isSkipped(filter, options.skip, request))) return true
    return framework.isAnswered(reply) ? passLate() : refuseUnready(filter, request, reply, error)
  }
  return admit(filter, request, reply, next)
}

/** Admits a request that other filters have decided before: what matches is counted once. */
function admitAgain<Request, Reply>(
  filter: Filter<Request, Reply>,
  request: Request,
  reply: Reply,
  next: Next | undefined,
  decided: Decided,
  past: readonly PastRun[],
): boolean | Promise<boolean> {
  const asked = askedBy(filter.framework, request)
  const covering = coveringFilter(filter, past, asked)
  if (covering !== undefined) {
    // a filter around that of another framework is intended: it sees requests that the inner one does not
    if (covering.framework === (filter.framework as unknown)) warnOnce('DIANA_MOUNTED_TWICE')
    return true
  }
  if (filter.framework.isAnswered(reply)) return passLate()
  const run = new FilterRun(filter, request, reply, next, filter.only || areMatchingDecided(filter, past, asked))
  run.follow(lastVerdict(past), chargedBy(filter, past))
  decided[runs] = [...past, run]
  return run.decide()
}

function askedBy<Request>(framework: Framework<Request, never>, request: Request): Asked {
  return {
    method: framework.method(request),
    base: framework.base?.(request) ?? '',
    target: framework.target(request),
  }
}

function passLate(): true {
  warnOnce('DIANA_MOUNTED_LATE')
  return true
}

/**
 * True if a request is skipped. If the application's function fails, the request is decided: a caller must not be able to make it
 * fail and pass.
 */
function isSkipped<Request>(
  filter: Filter<Request, never>,
  skip: (request: Request) => boolean | Promise<boolean>,
  request: Request,
): boolean | Promise<boolean> {
  const failed = (error: unknown): false => {
    report(error, request, filter, 'skip')
    return false
  }
  try {
    const given: unknown = skip(request)
    if (!isThenable(given)) return given === true
    return inTime(given, 'skip').then(value => value === true, failed)
  } catch (error) {
    return failed(error)
  }
}

/** Headers by which a middleware behind the filter may take OPTIONS for another method; no browser sends one with a preflight. */
const OVERRIDES = ['x-http-method-override', 'x-http-method', 'x-method-override'] as const

/** True if a browser asks if a page may make a request of another origin. A request that could be anything else is no preflight. */
function isPreflight<Request>(framework: Framework<Request, never>, request: Request): boolean {
  if (framework.method(request) !== 'OPTIONS') return false
  const headers = framework.headers(request)
  if (!headers?.['access-control-request-method'] || !headers.origin) return false
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = headers
  if (length !== '0' || encoding !== undefined) return false
  return OVERRIDES.every(name => headers[name] === undefined) && !framework.target(request).includes('_method')
}

/** Returns the verdict on a request of any framework, by the rules of all filters that it has passed. */
export function verdictOf(request: object): Verdict | undefined {
  const past = placeFor(request)[runs]
  return past === undefined ? undefined : pastRuns(past).at(-1)?.verdict
}

/**
 * Finds the object that runs are stored on: the raw headers, an array that belongs to one request of Node. A property on the request
 * of Express itself would cost as much as all else that a filter does, since each has a hidden class of its own.
 */
function placeFor(identity: { readonly rawHeaders?: object }): Decided {
  return identity.rawHeaders ?? identity
}

function pastRuns(past: readonly PastRun[] | PastRun): readonly PastRun[] {
  return Array.isArray(past) ? past : [past as PastRun]
}

/** One request at one filter. The response is watched until it ends only if the call waits or its end matters. */
class FilterRun<Request, Reply> implements CheckOptions, PastRun, Watcher {
  readonly filter: Filter<Request, Reply>
  readonly asked: Asked
  readonly rule: readonly string[] | undefined
  readonly only: boolean
  cost: number | undefined
  /** The rules that filters of the same limiter have charged before on this request. */
  after: readonly string[] | undefined
  readonly except: readonly string[] | undefined
  readonly #request: Request
  readonly #reply: Reply
  readonly #next: Next | undefined
  #controller: AbortController | undefined
  #verdict: Verdict | undefined
  /** The verdict of this filter alone, and that of the filters before it. */
  #own: Verdict | undefined
  #earlier: Verdict | undefined
  #isWatched = false
  #stopReading: (() => void) | undefined
  #isOver = false
  /** The parts of the bodies of the request and of the answer that say its costs; undefined if no rule asks. */
  #costs: CallCosts<Request, Reply> | undefined

  constructor(filter: Filter<Request, Reply>, request: Request, reply: Reply, next: Next | undefined, only: boolean) {
    this.filter = filter
    this.asked = askedBy(filter.framework, request)
    this.rule = filter.rules.length === 0 ? undefined : filter.rules
    this.only = only
    this.cost = undefined
    this.after = undefined
    this.except = filter.except
    this.#request = request
    this.#reply = reply
    this.#next = next
  }

  get verdict(): Verdict | undefined {
    return this.#verdict
  }

  get charged(): readonly string[] {
    return this.cost === 0 || this.#own === undefined ? [] : this.#own.decisions.map(({ rule }) => rule)
  }

  /** Makes one verdict of this run and of those at other filters before it. */
  follow(earlier: Verdict | undefined, charged: readonly string[] | undefined): void {
    this.#earlier = earlier
    this.after = charged
  }

  /** Begins to watch the response, and returns the signal that ends a wait when the caller leaves. */
  signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController()
      const { framework } = this.filter
      this.#stopReading = framework.watchLeaving?.(this.#request, this.#reply, () => this.ended(undefined))
    }
    this.#watch()
    return this.#controller.signal
  }

  /** True if the request continues; if not, it has been answered. A promise only if the limiter returns one. */
  decide(): boolean | Promise<boolean> {
    const call = new RequestCall<Request>(this.filter, this.#request)
    if (this.filter.trust.decider?.measures !== true) return this.#find(call)
    this.#costs = new CallCosts(this.filter, this.#request, this.#reply, call)
    const body = this.#costs.readBody(this)
    return body === undefined ? this.#find(call) : this.#findAfter(body, call)
  }

  /** Decides a call whose cost depends on its body. */
  async #findAfter(body: Promise<void>, call: RequestCall<Request>): Promise<boolean> {
    this.#watch()
    await body
    return this.#isOver ? this.#abandon() : this.#find(call)
  }

  /** Asks the functions of the application that say how a call is limited, and decides it then. */
  #find(call: RequestCall<Request>): boolean | Promise<boolean> {
    const { functions } = this.filter
    if (functions === undefined) return this.#decide(call)
    try {
      const found = functions.find(this.#request, call, (error, name) => this.#report(error, name))
      if (found instanceof Promise) return this.#decideFound(found, call, functions)
      call.found = found
    } catch (error) {
      return this.#failFunction(error, functions)
    }
    return this.#decide(call)
  }

  async #decideFound(
    found: Promise<FoundValues>,
    call: RequestCall<Request>,
    functions: RequestFunctions<Request>,
  ): Promise<boolean> {
    this.#watch()
    try {
      call.found = await found
    } catch (error) {
      return this.#isOver ? this.#abandon() : this.#failFunction(error, functions)
    }
    return this.#isOver ? this.#abandon() : this.#decide(call)
  }

  /** Refuses a request whose limit is not known: a caller must not be able to make the function fail and pass. */
  #failFunction(error: unknown, { passesFailed }: RequestFunctions<Request>): boolean {
    this.#report(error, 'limit')
    engineOf(this.filter.limiter).countUnjudged(passesFailed)
    if (passesFailed) return true
    this.#earlier?.refund()
    return refuseUnjudged(this.filter, this.#request, this.#reply)
  }

  #abandon(): false {
    this.#earlier?.refund()
    this.filter.framework.abandon(this.#reply)
    return false
  }

  #decide(call: RequestCall<Request>): boolean | Promise<boolean> {
    const { limiter, options } = this.filter
    let verdict: Verdict | Promise<Verdict>
    try {
      // the application's functions run before the limiter decides, which must not be interrupted
      if (options.attributes !== undefined) call.attributes = this.#attributesBy(options.attributes)
      if (options.cost !== undefined) this.cost = this.#costBy(options.cost, call)
      verdict = limiter.decide(call, this)
    } catch (error) {
      return this.#fail(error)
    }
    return verdict instanceof Promise ? this.#wait(verdict) : this.#answer(verdict)
  }

  ended(status: number | undefined, by?: Outcome['by']): void {
    this.#isOver = true
    this.#controller?.abort()
    const end = (): void => this.#own?.end({ status, by })
    if (this.#costs === undefined) end()
    else this.#costs.end(status, end)
  }

  async #wait(pending: Promise<Verdict>): Promise<boolean> {
    let verdict: Verdict
    try {
      verdict = await pending
      this.#stopReading?.()
    } catch (error) {
      this.#stopReading?.()
      if (!this.#isOver) return this.#fail(error)
      return this.#abandon()
    }
    return this.#answer(verdict)
  }

  #answer(own: Verdict): boolean | Promise<boolean> {
    this.#own = own
    if (this.#earlier === undefined) return this.#send(own)
    let verdict: Verdict | Promise<Verdict>
    try {
      verdict = joinVerdicts(this.#earlier, own)
    } catch (error) {
      return this.#fail(error)
    }
    if (!(verdict instanceof Promise)) return this.#send(verdict)
    return verdict.then(
      one => this.#send(one),
      error => this.#fail(error),
    )
  }

  #send(verdict: Verdict): boolean | Promise<boolean> {
    this.#verdict = verdict
    try {
      if (verdict.allowed) {
        if (this.#costs?.settle(this.#own!, this) === true || verdict.holds) this.#hold(verdict)
        this.#writeHeaders(verdict)
      } else this.#correctHeaders(verdict)
    } catch (error) {
      // the verdict stands, whatever becomes of its headers
      this.#report(error, 'headers')
    }
    return verdict.allowed || refuse(this.filter, this.#request, this.#reply, verdict, this.#next)
  }

  /** Headers that an earlier filter has written in another style are written again, after its charges are refunded. */
  #correctHeaders({ decisions, answer }: Verdict): void {
    const written = this.#earlier?.answer
    if (written === undefined || written.headers === answer.headers) return
    this.#writeHeaders({ decisions, answer: written })
  }

  #writeHeaders(limits: Pick<Verdict, 'decisions' | 'answer'>): void {
    const { framework } = this.filter
    headerWriters[limits.answer.headers](limits, framework, this.#reply, Date.now)
    if (limits.answer.tokenHeaders === true) writeTokenHeaders(limits, framework, this.#reply)
  }

  #hold(verdict: Verdict): void {
    this.#watch()
    if (!this.#isOver) return
    if (this.#costs === undefined) verdict.end()
    else this.#costs.end(undefined, () => verdict.end())
  }

  #watch(): void {
    if (this.#isWatched) return
    this.#isWatched = true
    this.filter.framework.watch(this.#request, this.#reply, this)
  }

  /** Reads attributes; a call for which the application's function throws is still counted. */
  #attributesBy(attributes: (request: Request) => Call['attributes']): Call['attributes'] {
    try {
      return readAttributes(valueNow(attributes(this.#request), 'attributes'), error =>
        this.#report(error, 'attributes'),
      )
    } catch (error) {
      this.#report(error, 'attributes')
      return undefined
    }
  }

  #costBy(cost: number | ((call: Call, request: Request) => number), call: Call): number {
    if (typeof cost === 'number') return cost
    try {
      const given = valueNow(cost(call, this.#request), 'cost')
      return given !== undefined && Number.isSafeInteger(given) && given >= 0 ? given : 1
    } catch (error) {
      this.#report(error, 'cost')
      return 1
    }
  }

  /**
   * True if the call goes on after an error of Diana, which does not break the service that it protects, unless the document asks
   * for it.
   */
  #fail(error: unknown): boolean {
    this.#report(error, 'decision')
    if (engineOf(this.filter.limiter).passUnjudged()) return true
    this.#earlier?.refund()
    return refuseUnjudged(this.filter, this.#request, this.#reply)
  }

  #report(error: unknown, failure: Failure): void {
    report(error, this.#request, this.filter, failure)
  }
}
