import type { Call } from '../call.ts'
import type { CheckOptions } from '../check-options.ts'
import type { Verdict } from '../verdict.ts'
import { refusal, tellLimits } from './answer.ts'
import type { Filter } from './filter.ts'
import type { Watcher } from './framework.ts'
import { RequestCall } from './request-call.ts'
import { warnOnce } from './warn-once.ts'

/** One request on its way past Diana. It is watched until it ends only where it waits or its end matters. */
export class Visit<Request, Reply> implements CheckOptions, Watcher {
  readonly filter: Filter<Request, Reply>
  readonly rule: readonly string[] | undefined
  readonly only: boolean
  cost: number | undefined
  readonly #request: Request
  readonly #reply: Reply
  #controller: AbortController | undefined
  #verdict: Verdict | undefined
  #isWatched = false
  #stopReading: (() => void) | undefined
  #isOver = false

  constructor(filter: Filter<Request, Reply>, request: Request, reply: Reply, only: boolean) {
    this.filter = filter
    this.rule = filter.rules.length === 0 ? undefined : filter.rules
    this.only = only
    this.cost = undefined
    this.#request = request
    this.#reply = reply
  }

  get verdict(): Verdict | undefined {
    return this.#verdict
  }

  /** Ends a wait when the caller leaves. The limiter asks for it only where there is one. */
  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController()
      const { framework } = this.filter
      this.#stopReading = framework.watchLeaving?.(this.#request, this.#reply, () => this.ended(undefined))
    }
    this.#watch()
    return this.#controller.signal
  }

  /** Whether the request goes on; where it does not, it has been answered. A promise only where the limiter gives one. */
  judge(): boolean | Promise<boolean> {
    const { limiter, options } = this.filter
    const call = new RequestCall<Request>(this.filter, this.#request)
    let verdict: Verdict | Promise<Verdict>
    try {
      // what the application is asked, it is asked before the judge, who must not be asked in between
      if (options.attributes !== undefined) call.attributes = this.#ask(options.attributes)
      if (options.cost !== undefined) this.cost = this.#costBy(options.cost, call)
      verdict = limiter.decide(call, this)
    } catch (error) {
      return this.#passDespite(error)
    }
    return verdict instanceof Promise ? this.#wait(verdict) : this.#answer(verdict)
  }

  ended(status: number | undefined): void {
    this.#isOver = true
    this.#controller?.abort()
    this.#verdict?.end({ status })
  }

  async #wait(pending: Promise<Verdict>): Promise<boolean> {
    let verdict: Verdict
    try {
      verdict = await pending
      this.#stopReading?.()
    } catch (error) {
      this.#stopReading?.()
      if (!this.#isOver) return this.#passDespite(error)
      this.filter.framework.abandon(this.#reply)
      return false
    }
    return this.#answer(verdict)
  }

  #answer(verdict: Verdict): boolean {
    const { framework } = this.filter
    this.#verdict = verdict
    try {
      if (!verdict.allowed) {
        framework.refuse(this.#request, this.#reply, refusal(verdict, Date.now()))
        return false
      }
      if (verdict.holds) this.#hold(verdict)
      tellLimits(verdict, framework, this.#reply, Date.now)
      return true
    } catch (error) {
      return this.#passDespite(error)
    }
  }

  #hold(verdict: Verdict): void {
    this.#watch()
    if (this.#isOver) verdict.end()
  }

  #watch(): void {
    if (this.#isWatched) return
    this.#isWatched = true
    this.filter.framework.watch(this.#request, this.#reply, this)
  }

  /** A caller who makes the application throw must not go uncounted for it. */
  #ask(attributes: (request: Request) => Call['attributes']): Call['attributes'] {
    try {
      return attributes(this.#request)
    } catch (error) {
      this.#tell(error)
      return undefined
    }
  }

  #costBy(cost: number | ((call: Call, request: Request) => number), call: Call): number {
    if (typeof cost === 'number') return cost
    try {
      const told = cost(call, this.#request)
      return Number.isSafeInteger(told) && told >= 0 ? told : 1
    } catch (error) {
      this.#tell(error)
      return 1
    }
  }

  /** Diana never breaks the service that she guards. */
  #passDespite(error: unknown): true {
    this.#tell(error)
    return true
  }

  #tell(error: unknown): void {
    const { options, framework } = this.filter
    try {
      if (options.onError) options.onError(error, this.#request)
      else framework.tell(this.#request, error)
    } catch (failure) {
      warnOnce('DIANA_FAILED', String(failure))
    }
  }
}
