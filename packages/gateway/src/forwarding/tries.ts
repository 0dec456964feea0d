import type { CallRequest } from '../http/call.ts'
import type { Trust } from '../http/trust.ts'
import type { Affinity } from '../services/balancing/affinity.ts'
import type { Route } from '../services/routes/route.ts'
import type { Upstream } from '../services/upstream.ts'

const none: readonly Upstream[] = []

/** Methods that mean the same once or twice (RFC 9110, section 9.2.2). */
const repeatable: readonly string[] = ['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE']

/** How a call may be tried again. */
export interface Again {
  /** Whether the call has a body, which cannot be sent twice. */
  readonly hasBody: boolean
  /** Whether the service has said that it did not begin with the call. */
  readonly isUnprocessed: boolean
  /** Whether at the same address if there is no other. */
  readonly mayStay: boolean
}

/** Where one call goes: the address that has it, those that failed it, and where it may be tried again. */
export class Tries {
  readonly #request: CallRequest
  readonly #route: Route
  readonly #affinity: Affinity | undefined
  #upstream: Upstream
  #failed: readonly Upstream[] = none
  #isSent = false
  #wasSent = false
  #isRepeated = false

  constructor(request: CallRequest, route: Route, trust: Trust) {
    this.#request = request
    this.#route = route
    this.#affinity = route.affinityOf(request, trust)
    this.#upstream = route.first(performance.now(), this.#affinity)
  }

  get upstream(): Upstream {
    return this.#upstream
  }

  get isFirst(): boolean {
    return this.#failed.length === 0
  }

  /** Whether any address may have got a part of the call. */
  get wasSent(): boolean {
    return this.#wasSent
  }

  /** The address has a connection for the call; what is sent from now on may reach the service. */
  send(): void {
    this.#isSent = true
    this.#wasSent = true
  }

  /** Where the call may be tried again, after it failed at the address that had it. */
  again({ hasBody, isUnprocessed, mayStay }: Again): Upstream | undefined {
    const isUnsent = !this.#isSent
    const isRepeatable = !hasBody && (isUnprocessed || repeatable.includes(this.#request.method))
    if (!isUnsent && (this.#isRepeated || !isRepeatable)) return undefined
    const tried = [...this.#failed, this.#upstream]
    const next = this.#route.again(performance.now(), {
      ...{ tried, isUnsent, mayStay: mayStay && !isUnsent },
      affinity: this.#affinity,
    })
    if (next !== undefined) this.#isRepeated ||= this.#isSent
    return next
  }

  /** The call has failed at the address that had it, and goes to another. */
  move(next: Upstream): void {
    this.#failed = [...this.#failed, this.#upstream]
    this.#upstream = next
    this.#isSent = false
  }

  /** The call has waited in vain for a connection: goes to an address that has one by now, if there is one. */
  moveToRoom(): boolean {
    const other = this.#wasSent ? undefined : this.#route.elsewhere(performance.now(), this.#upstream)
    if (other === undefined) return false
    this.#upstream = other
    return true
  }

  /** The cookie that binds the caller to the address that has answered, if one is due. */
  cookie(): string | undefined {
    return this.#affinity && this.#route.cookieFor(this.#affinity, this.#upstream, this.#request)
  }
}
