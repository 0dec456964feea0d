import type { Context } from 'hono'
import { clientCertificateOf } from '../../http/client-certificate.ts'
import type { AnswerObserver } from '../costs/cost-settling.ts'
import { observeNode } from '../costs/observe-node.ts'
import { bodiless, bodyOfFetch, type FetchServer, headersOf, peerOf, reportingItsEnd, statusOf } from './fetch.ts'
import type { Framework, Watcher } from './framework.ts'
import { node } from './node.ts'
import { spelledPath } from './spelled-path.ts'

/** Hono 4, on any server that speaks fetch. */
export const honoFramework: Framework<Context, Context> = {
  identity: context => serverOf(context).incoming ?? context.req.raw,
  method: context => context.req.method,
  headers: context => serverOf(context).incoming?.headers ?? headersOf(context.req.raw),
  target: context => context.req.url,
  originalTarget: context => serverOf(context).incoming?.url ?? context.req.url,
  peer: context => peerOf(context.req.raw, serverOf(context)),
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
  respond: (_request, context, response, headers) => {
    context.res = response
    for (const [name, value] of headers) if (!response.headers.has(name)) context.res.headers.set(name, value)
  },
  body: context => bodyOfFetch(context.req.raw, serverOf(context)),
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

const followed = new WeakMap<Context, Watcher>()
const observers = new WeakMap<Context, AnswerObserver>()

/** True if a watcher waits for the end of the response, and the server does not report it. */
export function isFollowed(context: Context): boolean {
  return followed.has(context)
}

/** Notifies the watcher of a request when the last byte of its answer was sent, or it was canceled. */
export async function outlive(context: Context, answered: Promise<void>): Promise<void> {
  const watcher = followed.get(context)!
  try {
    await answered
  } catch (error) {
    watcher.ended(500)
    throw error
  }
  const { res: response } = context
  const status = statusOf(response)
  const observer = observers.get(context)
  observer?.begin(response.status, name => response.headers.get(name) ?? undefined)
  if (response.body === null) {
    watcher.ended(status)
    return
  }
  // Hono would keep the headers of the old response besides
  context.res = undefined
  context.res = new Response(reportingItsEnd(response.body, status, watcher, observer), response)
}

function serverOf({ env }: Context): FetchServer {
  const server = env as FetchServer | undefined
  return server?.server ?? server ?? {}
}
