import type { Call } from '../call.ts'
import type { CheckOptions } from '../limiter.ts'
import { countedPath } from '../path.ts'
import type { Verdict } from '../verdict.ts'
import { rateLimitHeaders, refusal } from './answer.ts'
import type { Filter } from './filter.ts'
import type { Watcher } from './framework.ts'
import { queryOf, resolvedPath } from './spelled-path.ts'
import { warnAboutProxies } from './trust.ts'
import { warnOnce } from './warn-once.ts'

/**
 * One request on its way past Diana: the call that she judges, and what becomes of it. What no rule asks is never worked
 * out, and the response is watched only where the call waits or holds something.
 */
export class Visit<Request, Reply> implements Call, CheckOptions, Watcher {
  readonly filter: Filter<Request, Reply>
  attributes: Call['attributes']
  cost: number | undefined
  readonly #request: Request
  readonly #reply: Reply
  #path: string | undefined
  #resolvedPath: string | undefined
  #ip: string | undefined
  #knowsIp = false
  #controller: AbortController | undefined
  #verdict: Verdict | undefined
  #isWatched = false
  #isOver = false

  constructor(filter: Filter<Request, Reply>, request: Request, reply: Reply) {
    this.filter = filter
    this.#request = request
    this.#reply = reply
    this.attributes = undefined
    this.cost = undefined
  }

  get verdict(): Verdict | undefined {
    return this.#verdict
  }

  get method(): string {
    return this.filter.framework.method(this.#request)
  }

  get headers(): Call['headers'] {
    return this.filter.framework.headers(this.#request)
  }

  get path(): string {
    return this.#path ?? this.#readPath()
  }

  get resolvedPath(): string | undefined {
    if (this.#path === undefined) this.#readPath()
    return this.#resolvedPath
  }

  get anyCase(): boolean {
    const { options, framework } = this.filter
    return options.caseSensitive === undefined ? framework.anyCase(this.#request) : !options.caseSensitive
  }

  get resource(): string {
    const { options, framework } = this.filter
    const template = options.resource === 'path' ? undefined : framework.template(this.#request)
    // what a wildcard serves is many things
    if (template !== undefined && !template.includes('*')) return template
    const path = countedPath(this.resolvedPath ?? this.path)
    return this.anyCase ? path.toLowerCase() : path
  }

  get query(): string | undefined {
    return queryOf(this.filter.framework.target(this.#request))
  }

  get host(): string | undefined {
    const headers = this.headers
    // HTTP/2 has no Host
    const host = headers?.host ?? headers?.[':authority']
    return typeof host === 'string' ? host : host?.[0]
  }

  get ip(): string | undefined {
    if (!this.#knowsIp) {
      const { limiter, framework } = this.filter
      const headers = this.headers
      warnAboutProxies(limiter, headers)
      this.#ip = limiter.addressOf(framework.peer(this.#request), headers?.['x-forwarded-for'])
      this.#knowsIp = true
    }
    return this.#ip
  }

  /** Ends a wait when the caller leaves. The limiter asks for it only where there is one. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController()
    this.#watch()
    return this.#controller.signal
  }

  /** Whether the request goes on; where it does not, it has been answered. A promise only where the limiter gives one. */
  judge(): boolean | Promise<boolean> {
    const { limiter, options } = this.filter
    let verdict: Verdict | Promise<Verdict>
    try {
      // what the application is asked, it is asked before the judge, who must not be asked in between
      if (options.attributes !== undefined) this.attributes = options.attributes(this.#request)
      if (options.cost !== undefined) this.cost = costOf(options.cost, this.#request)
      verdict = limiter.decide(this, this)
    } catch (error) {
      return this.#passDespite(error)
    }
    return verdict instanceof Promise ? this.#wait(verdict) : this.#answer(verdict)
  }

  ended(_status: number | undefined): void {
    this.#isOver = true
    this.#controller?.abort()
    this.#verdict?.release()
  }

  #readPath(): string {
    const path = this.filter.framework.path(this.#request)
    this.#path = path
    this.#resolvedPath = resolvedPath(path)
    return path
  }

  async #wait(pending: Promise<Verdict>): Promise<boolean> {
    let verdict: Verdict
    try {
      verdict = await pending
    } catch (error) {
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
      for (const [name, value] of rateLimitHeaders(verdict, Date.now())) framework.setHeader(this.#reply, name, value)
      return true
    } catch (error) {
      return this.#passDespite(error)
    }
  }

  #hold(verdict: Verdict): void {
    this.#watch()
    if (this.#isOver) verdict.release()
  }

  #watch(): void {
    if (this.#isWatched) return
    this.#isWatched = true
    this.filter.framework.watch(this.#request, this.#reply, this)
  }

  /** Diana never breaks the service that she guards. */
  #passDespite(error: unknown): true {
    const { options, framework } = this.filter
    try {
      if (options.onError) options.onError(error, this.#request)
      else framework.tell(this.#request, error)
    } catch (failure) {
      warnOnce('DIANA_FAILED', String(failure))
    }
    return true
  }
}

function costOf<Request>(cost: number | ((request: Request) => number), request: Request): number {
  return typeof cost === 'function' ? cost(request) : cost
}
