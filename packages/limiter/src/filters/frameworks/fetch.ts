import type { HeaderLine } from '../../answers/headers.ts'
import type { Call, CallBody } from '../../call.ts'
import { clientCertificateOf } from '../../http/client-certificate.ts'
import { GrpcOutcome } from '../../http/grpc-outcome.ts'
import type { AnswerObserver } from '../costs/cost-settling.ts'
import { observeNode } from '../costs/observe-node.ts'
import { peekFetchBody } from '../costs/peek-body.ts'
import type { Framework, Watcher } from './framework.ts'
import { bodyOf, type NodeRequest, type NodeResponse, node } from './node.ts'
import { spelledPath } from './spelled-path.ts'

/** The descriptions of a connection by servers: those of Node, Bun, Deno and SvelteKit. */
export interface FetchServer {
  readonly incoming?: NodeRequest
  readonly outgoing?: NodeResponse
  readonly requestIP?: (request: Request) => { readonly address: string } | null
  readonly remoteAddr?: { readonly hostname?: string }
  readonly getClientAddress?: () => string
  /** The address at the other end of the connection. */
  readonly ip?: string | undefined
  readonly server?: FetchServer | undefined
}

/** A request, and what is known of its answer. */
export interface Exchange {
  readonly server: FetchServer
  /** The answer to a refused caller. */
  refusal: Response | undefined
  /** Headers for the answer of the handler. */
  readonly headers: Map<string, HeaderLine>
  readonly watchers: Watcher[]
  readonly observers: AnswerObserver[]
}

const exchanges = new WeakMap<Request, Exchange>()
const records = new WeakMap<Request, Call['headers'] & object>()

/** Returns the exchange of a request, which begins when the first filter sees it. */
export function beginExchange(request: Request, server: FetchServer): Exchange {
  const known = exchanges.get(request)
  if (known !== undefined) return known
  const exchange: Exchange = { server, refusal: undefined, headers: new Map(), watchers: [], observers: [] }
  exchanges.set(request, exchange)
  return exchange
}

/** Returns the exchange of a request that a filter has seen. */
export function exchangeOf(request: Request): Exchange | undefined {
  return exchanges.get(request)
}

/** The functions that read and answer `Request` and `Response`, on any server. */
export const fetchFramework: Framework<Request, Exchange> = {
  identity: request => serverOf(request).incoming ?? request,
  method: request => request.method,
  headers: request => serverOf(request).incoming?.headers ?? headersOf(request),
  // the URL as the handler sees it, without dots; the target of Node's request may have some
  target: request => request.url,
  originalTarget: request => serverOf(request).incoming?.url ?? request.url,
  peer: request => peerOf(request, serverOf(request)),
  clientCertificate: request => clientCertificateOf(serverOf(request).incoming?.socket),
  path: request => spelledPath(request.url),
  template: () => undefined,
  // the router behind it is not known
  caseInsensitive: () => true,
  isAnswered: exchange => exchange.refusal !== undefined,
  setHeader: (exchange, name, value) => {
    exchange.headers.set(name.toLowerCase(), [name, value])
  },
  refuse: (request, exchange, { status, headers, body }) => {
    const isBare = bodiless.includes(status) || request.method === 'HEAD'
    // those that an earlier filter has left for the answer would replace these
    for (const [name] of headers) exchange.headers.delete(name.toLowerCase())
    exchange.refusal = new Response(isBare ? null : body, { status, headers: new Headers([...headers] as never) })
  },
  respond: (_request, exchange, response, headers) => {
    // the headers of a redirect cannot be changed
    const copy = new Response(response.body, response)
    for (const [name, value] of headers) {
      exchange.headers.delete(name.toLowerCase())
      if (!copy.headers.has(name)) copy.headers.set(name, value)
    }
    exchange.refusal = copy
  },
  body: (request, { server }) => bodyOfFetch(request, server),
  observe: (_request, { server, observers }, observer) => {
    if (server.outgoing !== undefined) observeNode(server.outgoing, observer)
    else observers.push(observer)
  },
  watch: (request, exchange, watcher) => {
    const { incoming, outgoing } = exchange.server
    if (incoming !== undefined && outgoing !== undefined) {
      node.watch(incoming, outgoing, watcher)
      return
    }
    const { signal } = request
    if (signal.aborted) watcher.ended(undefined)
    else signal.addEventListener('abort', () => watcher.ended(undefined), { once: true })
    exchange.watchers.push(watcher)
  },
  abandon: exchange => {
    exchange.refusal = new Response(null, { status: 499 })
  },
  reportError: node.reportError,
}

const BROKEN = 500

/** Statuses whose answers have no body; a Response with one cannot be made. */
export const bodiless: readonly number[] = [204, 205, 304]

/** Returns the address at the other end of the connection, as the server under a handler gives it. */
export function peerOf(request: Request, server: FetchServer): string | undefined {
  if (server.incoming !== undefined) return server.incoming.socket.remoteAddress
  if (server.ip !== undefined) return server.ip
  return server.requestIP?.(request)?.address ?? server.remoteAddr?.hostname ?? server.getClientAddress?.()
}

/** Returns what is known of the body of a request: from the server under a handler, or from a copy of the request. */
export function bodyOfFetch(request: Request, { incoming, outgoing }: FetchServer): CallBody | Promise<CallBody> {
  if (incoming !== undefined && outgoing !== undefined) return bodyOf(incoming, undefined, outgoing)
  return peekFetchBody(request)
}

/** Returns the headers of a request as a record, which is made once. */
export function headersOf(request: Request): Call['headers'] & object {
  const known = records.get(request)
  if (known !== undefined) return known
  const record = Object.fromEntries(request.headers)
  records.set(request, record)
  return record
}

/** Returns the status by which rules judge an answer; undefined for one of gRPC that has its outcome in the body or behind it. */
export function statusOf({ status, headers }: Response): number | undefined {
  const outcome = status === 200 ? GrpcOutcome.of(name => headers.get(name) ?? undefined) : undefined
  if (outcome === undefined) return status
  return headers.has('grpc-status') ? outcome.status : undefined
}

/** Returns the same body, shown to the observer; the watcher is notified when the last byte of it was sent, or it was canceled. */
export function reportingItsEnd(
  body: ReadableStream<Uint8Array>,
  status: number | undefined,
  watcher: Watcher,
  observer?: Pick<AnswerObserver, 'add'>,
): ReadableStream {
  const reader = body.getReader()
  return new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = await reader.read()
        if (!done) {
          observer?.add(value)
          controller.enqueue(value)
          return
        }
        controller.close()
        watcher.ended(status)
      } catch (error) {
        // the handler has broken it off; a caller who leaves cancels it
        watcher.ended(BROKEN)
        controller.error(error)
      }
    },
    cancel(reason) {
      watcher.ended(undefined)
      return reader.cancel(reason)
    },
  })
}

function serverOf(request: Request): FetchServer {
  return exchanges.get(request)?.server ?? {}
}
