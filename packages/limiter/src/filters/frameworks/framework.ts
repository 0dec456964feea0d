import type { Refusal } from '../../answers/answer.ts'
import type { HeaderLine } from '../../answers/headers.ts'
import type { Call, CallBody } from '../../call.ts'
import type { AnswerObserver, SettledCost } from '../costs/cost-settling.ts'

/** The proxies that a framework believes: as addresses from the peer to the caller, or as a test of one address, `hop` proxies away. */
export interface FrameworkProxies {
  readonly trusted?: readonly string[] | undefined
  readonly isTrusted?: ((address: string, hop: number) => boolean) | undefined
  /** The setting as a whole, for warnings. */
  readonly believes: 'nobody' | 'some' | 'everyone'
}

/** Is called when a response is over. */
export interface Watcher {
  /**
   * Is called when the response has ended; `status` is undefined if the caller left before all of it was sent. `by` is `gateway` if
   * something in front of the service has answered in its place; left out, the service has.
   */
  ended(status: number | undefined, by?: 'service' | 'gateway'): void
}

/** The functions that read the requests of one framework, and answer them. */
export interface Framework<Request, Reply> {
  /** Returns the object that identifies the request in every filter that gets it, of any framework. */
  identity(request: Request): object
  method(request: Request): string
  headers(request: Request): Call['headers']
  /** Returns the raw target as the router behind the filter gets it, in any form of HTTP. */
  target(request: Request): string
  /** Returns the path that routers have cut from the target, since they are mounted on it; left out, none is. */
  base?(request: Request): string
  /** Returns the raw target as it arrived, if a middleware before the filter may have rewritten it; left out, none can. */
  originalTarget?(request: Request): string
  /** Returns the address at the other end of the connection. */
  peer(request: Request): string | undefined
  /** Returns the verified client certificate of the connection; left out if connections have none. */
  clientCertificate?(request: Request): Call['clientCertificate']
  /** Returns the whole path in the one spelling that the framework's router would take it for. */
  path(request: Request): string
  /** Returns the template of the route that serves the request, if it is known already. */
  template(request: Request): string | undefined
  /** True if paths are matched without regard to case. */
  caseInsensitive(request: Request): boolean
  isAnswered(reply: Reply): boolean
  setHeader(reply: Reply, name: string, value: string): void
  refuse(request: Request, reply: Reply, refusal: Refusal): void
  /** Answers by a response of the application, with these headers besides; left out, the framework has no such responses. */
  respond?(request: Request, reply: Reply, response: Response, headers: readonly HeaderLine[]): void
  /** Returns a function that says whether the application has answered since; left out, `isAnswered` does. */
  followAnswer?(reply: Reply): () => boolean
  /** Reads the framework's own setting of the proxies that are believed; left out, it has none. */
  proxies?(request: Request): FrameworkProxies | undefined
  /** Calls the watcher once, when the response is over or the caller has left; at once if they left before. */
  watch(request: Request, reply: Reply, watcher: Watcher): void
  /**
   * Reports that the caller has closed their half of a connection that is not read while its caller waits. Returns a function that
   * stops this once the wait is over.
   */
  watchLeaving?(request: Request, reply: Reply, left: () => void): (() => void) | undefined
  /** Notes that the caller left while they waited, so no answer is needed. */
  abandon(reply: Reply): void
  /** Returns what is known of the request's body, for costs that are read from it; left out, bodies are not read. */
  body?(request: Request, reply: Reply): CallBody | Promise<CallBody>
  /** Shows the answer to an observer while it is sent; left out, answers are not read. */
  observe?(request: Request, reply: Reply, observer: AnswerObserver): void
  /** Reports what a call has cost. */
  reportCosts?(request: Request, costs: readonly SettledCost[]): void
  /** Reports to the application what failed on a call; `what` says what became of the call. */
  reportError(request: Request, error: unknown, what: string): void
}
