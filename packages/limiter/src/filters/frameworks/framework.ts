import type { Call } from '../../call.ts'
import type { Refusal } from '../answers/answer.ts'

/** Who wants to know that a response is over. */
export interface Watcher {
  /** `status` is what the caller was told; undefined when he left before all of it was. */
  ended(status: number | undefined): void
}

/** How Diana meets one framework: what she asks of its requests, and how she answers them. */
export interface Framework<Request, Reply> {
  /** What stands for the request in every filter that sees it, of whichever framework. */
  identity(request: Request): object
  method(request: Request): string
  headers(request: Request): Call['headers']
  /** The target as it came, in any form that HTTP knows. */
  target(request: Request): string
  /** The address at the other end of the connection. */
  peer(request: Request): string | undefined
  /** The verified client certificate of the connection; left out where connections have none. */
  clientCertificate?(request: Request): Call['clientCertificate']
  /** The path in the one spelling that the framework's router would take it for. */
  path(request: Request): string
  /** The template of the route that serves the request, where that is known already. */
  template(request: Request): string | undefined
  /** Whether letters of either case in a path lead to the same place. */
  caseInsensitive(request: Request): boolean
  isAnswered(reply: Reply): boolean
  setHeader(reply: Reply, name: string, value: string): void
  refuse(request: Request, reply: Reply, refusal: Refusal): void
  /** Tells the watcher once, when the response is over or the caller has left; at once where he left before. */
  watch(request: Request, reply: Reply, watcher: Watcher): void
  /**
   * For a connection that nobody reads while its caller waits: reports that the caller has closed their half of it. Returns
   * what stops this, once the wait is over.
   */
  watchLeaving?(request: Request, reply: Reply, left: () => void): (() => void) | undefined
  /** The caller left while he waited, so nothing is to be answered. */
  abandon(reply: Reply): void
  /** Where the application is told that Diana failed. */
  tell(request: Request, error: unknown): void
}
