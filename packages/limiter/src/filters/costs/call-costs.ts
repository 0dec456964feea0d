import { unreadableBody } from '../../costs/call-body.ts'
import { isMeasured } from '../../costs/is-measured.ts'
import type { CheckOptions } from '../../decision/check-options.ts'
import type { RuleState } from '../../decision/rule-state.ts'
import type { Verdict } from '../../verdict.ts'
import type { Filter } from '../filter.ts'
import { report } from '../report.ts'
import type { RequestCall } from '../request-call.ts'
import { CostSettling } from './cost-settling.ts'
import { announcedBytes } from './peek-body.ts'

/** The costs of one request at one filter, by the rules that read them from bodies. */
export class CallCosts<Request, Reply> {
  readonly #filter: Filter<Request, Reply>
  readonly #request: Request
  readonly #reply: Reply
  readonly #call: RequestCall<Request>
  #settling: CostSettling | undefined

  constructor(filter: Filter<Request, Reply>, request: Request, reply: Reply, call: RequestCall<Request>) {
    this.#filter = filter
    this.#request = request
    this.#reply = reply
    this.#call = call
  }

  /** Reads what rules need of the request's body; a promise only if that has not come yet. */
  readBody(options: CheckOptions): Promise<void> | undefined {
    if (!this.#rules(options).some(({ rule }) => rule.measured?.readsBody)) return undefined
    const unread = unreadableBody(announcedBytes(this.#call.headers ?? {}))
    this.#call.body = unread
    try {
      const body = this.#filter.framework.body?.(this.#request, this.#reply) ?? unread
      if (!(body instanceof Promise)) {
        this.#call.body = body
        return undefined
      }
      return body.then(
        one => {
          this.#call.body = one
        },
        error => this.#report(error),
      )
    } catch (error) {
      this.#report(error)
      return undefined
    }
  }

  /** Follows the answer to a call that may pass; true if its end matters. */
  settle(verdict: Verdict, options: CheckOptions): boolean {
    const states = this.#rules(options).filter(({ rule }) => rule.settles)
    if (states.length === 0) return false
    const { framework } = this.#filter
    const { cost } = options
    this.#settling = new CostSettling({
      call: this.#call,
      verdict,
      states,
      cost: typeof cost === 'number' ? cost : 1,
      onSettled: costs => framework.reportCosts?.(this.#request, costs),
    })
    framework.observe?.(this.#request, this.#reply, this.#settling)
    return true
  }

  /** Ends the answer: settles the costs, then calls `onSettled`, at once unless the answer has to be decoded first. */
  end(status: number | undefined, onSettled: () => void): void {
    try {
      const settled = this.#settling?.end(status)
      if (settled !== undefined) {
        void settled.catch(error => this.#report(error)).then(onSettled)
        return
      }
    } catch (error) {
      this.#report(error)
    }
    onSettled()
  }

  #rules(options: CheckOptions): RuleState[] {
    const { decider } = this.#filter.trust
    return decider?.meets(this.#call, options).filter(({ rule }) => isMeasured(rule)) ?? []
  }

  #report(error: unknown): void {
    report(error, this.#request, this.#filter, 'settlement')
  }
}
