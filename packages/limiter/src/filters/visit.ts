import type { Call } from '../call.ts'
import { valueNow } from '../common/sync-function.ts'
import type { CheckOptions } from '../decision/check-options.ts'
import type { Verdict } from '../verdict.ts'
import { type Refusal, tellLimits } from './answers/answer.ts'
import { type CustomAnswer, customRefusal } from './answers/custom-answer.ts'
import { joinVerdicts } from './answers/joined-verdict.ts'
import type { Filter } from './filter.ts'
import type { Watcher } from './frameworks/framework.ts'
import { report } from './report.ts'
import { RequestCall } from './request-call.ts'

/** One request on its way past Diana. It is watched until it ends only where it waits or its end matters. */
export class FilterRun<Request, Reply> implements CheckOptions, Watcher {
  readonly filter: Filter<Request, Reply>
  readonly rule: readonly string[] | undefined
  readonly only: boolean
  cost: number | undefined
  /** The rules that filters of the same limiter have charged before on this request. */
  after: readonly string[] | undefined
  readonly #request: Request
  readonly #reply: Reply
  #controller: AbortController | undefined
  #verdict: Verdict | undefined
  /** What this filter alone said, and what those before it did. */
  #own: Verdict | undefined
  #earlier: Verdict | undefined
  #isWatched = false
  #stopReading: (() => void) | undefined
  #isOver = false

  constructor(filter: Filter<Request, Reply>, request: Request, reply: Reply, only: boolean) {
    this.filter = filter
    this.rule = filter.rules.length === 0 ? undefined : filter.rules
    this.only = only
    this.cost = undefined
    this.after = undefined
    this.#request = request
    this.#reply = reply
  }

  get verdict(): Verdict | undefined {
    return this.#verdict
  }

  /** Makes one judgement of this visit and of those to other filters before it. */
  follow(earlier: Verdict | undefined, charged: readonly string[] | undefined): void {
    this.#earlier = earlier
    this.after = charged
  }

  /** The ids of the rules that have charged the request at this filter. */
  get charged(): readonly string[] {
    return this.cost === 0 || this.#own === undefined ? [] : this.#own.decisions.map(({ rule }) => rule)
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
    this.#own?.end({ status })
  }

  async #wait(pending: Promise<Verdict>): Promise<boolean> {
    let verdict: Verdict
    try {
      verdict = await pending
      this.#stopReading?.()
    } catch (error) {
      this.#stopReading?.()
      if (!this.#isOver) return this.#passDespite(error)
      this.#earlier?.refund()
      this.filter.framework.abandon(this.#reply)
      return false
    }
    return this.#answer(verdict)
  }

  #answer(own: Verdict): boolean | Promise<boolean> {
    this.#own = own
    try {
      const verdict = joinVerdicts(this.#earlier, own)
      return verdict instanceof Promise ? verdict.then(one => this.#send(one)) : this.#send(verdict)
    } catch (error) {
      return this.#passDespite(error)
    }
  }

  #send(verdict: Verdict): boolean | Promise<boolean> {
    const { framework } = this.filter
    this.#verdict = verdict
    try {
      if (!verdict.allowed) return this.#refuse(verdict)
      if (verdict.holds) this.#hold(verdict)
      tellLimits(verdict, framework, this.#reply, Date.now)
      return true
    } catch (error) {
      return this.#passDespite(error)
    }
  }

  #refuse(verdict: Verdict): boolean | Promise<boolean> {
    const custom = this.#customAnswer(verdict)
    if (!(custom instanceof Promise)) return this.#refuseWith(verdict, custom)
    return custom.then(answer => this.#refuseWith(verdict, answer))
  }

  #refuseWith(verdict: Verdict, custom: CustomAnswer | undefined): boolean {
    this.#correctHeaders(verdict)
    this.filter.framework.refuse(this.#request, this.#reply, this.#refusal(verdict, custom))
    return false
  }

  #refusal(verdict: Verdict, custom: CustomAnswer | undefined): Refusal {
    try {
      return customRefusal(verdict, Date.now(), custom)
    } catch (error) {
      this.#tell(error)
      return customRefusal(verdict, Date.now(), undefined)
    }
  }

  /** What the application answers; if it fails, the refusal is answered as Diana does. */
  #customAnswer(verdict: Verdict): CustomAnswer | undefined | Promise<CustomAnswer | undefined> {
    const { onRefused } = this.filter.options
    const failed = (error: unknown): undefined => {
      this.#tell(error)
      return undefined
    }
    try {
      const answer = onRefused?.(verdict, this.#request)
      return answer instanceof Promise ? answer.catch(failed) : answer
    } catch (error) {
      return failed(error)
    }
  }

  /** Headers that an earlier filter has written in another style are written again, after its charges are refunded. */
  #correctHeaders({ decisions, answer }: Verdict): void {
    const written = this.#earlier?.answer
    if (written === undefined || written.headers === answer.headers) return
    tellLimits({ decisions, answer: written }, this.filter.framework, this.#reply, Date.now)
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
      return valueNow(attributes(this.#request), 'attributes')
    } catch (error) {
      this.#tell(error)
      return undefined
    }
  }

  #costBy(cost: number | ((call: Call, request: Request) => number), call: Call): number {
    if (typeof cost === 'number') return cost
    try {
      const told = valueNow(cost(call, this.#request), 'cost')
      return told !== undefined && Number.isSafeInteger(told) && told >= 0 ? told : 1
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
    report(error, this.#request, this.filter.options, this.filter.framework)
  }
}
