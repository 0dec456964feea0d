import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createLimiter, type Limiter } from 'diana-limiter'
import { admit, createFilter, type Framework, httpFramework } from 'diana-limiter/filter'

/** What a handler of the framework gets. */
export interface Context {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** The template of the route, such as /users/:id. */
  readonly route?: string
}

const framework: Framework<Context, ServerResponse> = {
  identity: ({ request }) => request,
  method: ({ request }) => request.method ?? 'GET',
  headers: ({ request }) => request.headers,
  target: ({ request }) => request.url ?? '/',
  peer: ({ request }) => request.socket.remoteAddress,
  path: ({ request }) => httpFramework.path(request),
  template: ({ route }) => route,
  caseInsensitive: () => false,
  isAnswered: response => httpFramework.isAnswered(response),
  setHeader: (response, name, value) => void response.setHeader(name, value),
  refuse: ({ request }, response, refusal) => httpFramework.refuse(request, response, refusal),
  watch: ({ request }, response, watcher) => httpFramework.watch(request, response, watcher),
  abandon: response => void response.destroy(),
  reportError: (_context, error) => console.error(error),
}

type Handler = (context: Context) => void | Promise<void>

/** A middleware: the handler runs if the call is admitted. */
export function limited(limiter: Limiter, handler: Handler): Handler {
  const filter = createFilter(limiter, framework, {})
  return async context => {
    if (await admit(filter, context, context.response)) await handler(context)
  }
}

const limiter = await createLimiter({ rules: [{ id: 'per-address', by: 'ip', limit: '2/m' }] })
const hello = limited(limiter, ({ response }) => void response.end('hello\n'))

export const server = createServer((request, response) => hello({ request, response, route: '/hello' }))
