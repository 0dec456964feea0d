import type { Context } from 'hono'
import type { Call } from '../../call.ts'
import { clientCertificateOf } from '../../http/client-certificate.ts'
import type { AnswerObserver } from '../costs/cost-settling.ts'
import { observeNode } from '../costs/observe-node.ts'
import { peekFetchBody } from '../costs/peek-fetch-body.ts'
import type { Framework, Watcher } from './framework.ts'
import { bodyOf, type NodeRequest, type NodeResponse, node } from './node.ts'
import { spelledPath } from './spelled-path.ts'

/** How the servers under Hono describe a connection: those of Node, Bun and Deno. */
interface Server {
  readonly incoming?: NodeRequest
  readonly outgoing?: NodeResponse
  readonly requestIP?: (request: Request) => { readonly address: string } | null
  readonly remoteAddr?: { readonly hostname?: string }
  readonly server?: Server
}

/** Hono 4, on any server that speaks fetch. */
export const honoFramework: Framework<Context, Context> = {
  identity: context => serverOf(context).incoming ?? context.req.raw,
  method: context => context.req.method,
  headers: context => serverOf(context).incoming?.headers ?? recordOf(context.req.raw),
  target: context => serverOf(context).incoming?.url ?? context.req.url,
  peer: context => {
    const server = serverOf(context)
    if (server.incoming !== undefined) return server.incoming.socket.remoteAddress
    return server.requestIP?.(context.req.raw)?.address ?? server.remoteAddr?.hostname
  },
  clientCertificate: context => clientCertificateOf(serverOf(context).incoming?.socket),
  path: context => spelledPath(context.req.path),
  // all that will serve the request is known from the start, and what answers it comes last
  template: context => context.req.matchedRoutes.at(-1)?.path,
  caseInsensitive: () => false,
  isAnswered: context => context.finalized,
  setHeader: (context, name, value) => {
    const { outgoing } = serverOf(context)
    // Hono drops headers of `context.header` if a handler returns its own response
    if (outgoing !== undefined) outgoing.setHeader(name, value)
    else context.res.headers.set(name, value)
  },
  refuse: (_request, context, { status, headers, body }) => {
    context.res = new Response(bodiless.includes(status) ? null : body, { status })
    // in Hono, headers that were set before, such as those of another filter, win over those of a new response
    for (const [name, value] of headers) context.res.headers.set(name, value)
  },
  body: context => {
    const { incoming, outgoing } = serverOf(context)
    if (incoming !== undefined && outgoing !== undefined) return bodyOf(incoming, undefined, outgoing)
    return peekFetchBody(context.req.raw)
  },
  observe: (_request, context, observer) => {
    const { outgoing } = serverOf(context)
    if (outgoing !== undefined) observeNode(outgoing, observer)
    else observers.set(context, observer)
  },
  watch: (_request, context, watcher) => {
    const { incoming, outgoing } = serverOf(context)
    if (incoming !== undefined && outgoing !== undefined) {
      node.watch(incoming, outgoing, watcher)
      return
    }
    const { signal } = context.req.raw
    if (signal.aborted) watcher.ended(undefined)
    else signal.addEventListener('abort', () => watcher.ended(undefined), { once: true })
    followed.set(context, watcher)
  },
  abandon: context => {
    context.res = new Response(null, { status: 499 })
  },
  reportError: node.reportError,
}

/** Statuses whose answers have no body; a Response with one cannot be made. */
const bodiless: readonly number[] = [204, 205, 304]

const followed = new WeakMap<Context, Watcher>()
const observers = new WeakMap<Context, AnswerObserver>()
const records = new WeakMap<Request, Call['headers'] & object>()

/** Whether a watcher waits for the end of the response, and the server does not report it. */
export function isFollowed(context: Context): boolean {
  return followed.has(context)
}

/** Notifies the watcher of a request when the last byte of its answer was sent, or it was canceled. */
export async function outlive(context: Context, answered: Promise<void>): Promise<void> {
  const watcher = followed.get(context)!
  let status = 500
  try {
    await answered
    status = context.res.status
  } catch (error) {
    watcher.ended(status)
    throw error
  }
  const { res: response } = context
  const observer = observers.get(context)
  observer?.begin(status, name => response.headers.get(name) ?? undefined)
  if (response.body === null) {
    watcher.ended(status)
    return
  }
  // Hono would keep the headers of the old response besides
  context.res = undefined
  context.res = new Response(tellingOfItsEnd(response.body, status, watcher, observer), response)
}

function tellingOfItsEnd(
  body: ReadableStream<Uint8Array>,
  status: number,
  watcher: Watcher,
  observer: AnswerObserver | undefined,
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
        watcher.ended(undefined)
        controller.error(error)
      }
    },
    cancel(reason) {
      watcher.ended(undefined)
      return reader.cancel(reason)
    },
  })
}

function serverOf({ env }: Context): Server {
  const server = env as Server | undefined
  return server?.server ?? server ?? {}
}

function recordOf(request: Request): Call['headers'] & object {
  const known = records.get(request)
  if (known !== undefined) return known
  const record = Object.fromEntries(request.headers)
  records.set(request, record)
  return record
}
