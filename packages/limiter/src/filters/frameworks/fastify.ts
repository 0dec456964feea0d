import type { FastifyReply, FastifyRequest } from 'fastify'
import { clientCertificateOf } from '../../http/client-certificate.ts'
import { observeNode } from '../costs/observe-node.ts'
import type { Framework } from './framework.ts'
import { bodyOf, node } from './node.ts'
import { spelledPath } from './spelled-path.ts'

/** Header names as Fastify writes them, so that it need not convert them for every reply. */
const inLowerCase: Readonly<Record<string, string>> = { RateLimit: 'ratelimit', 'RateLimit-Policy': 'ratelimit-policy' }

/** Fastify 5. */
export const fastifyFramework: Framework<FastifyRequest, FastifyReply> = {
  identity: request => request.raw,
  method: request => request.method,
  headers: request => request.headers,
  target: request => request.url,
  originalTarget: request => request.originalUrl,
  peer: request => request.socket.remoteAddress,
  clientCertificate: request => clientCertificateOf(request.socket),
  path: request => {
    const template = request.routeOptions.url
    // however a caller spells the path of a route without parameters, it is the route's
    return template === undefined || isPattern(template) ? spelledPath(request.url) : template
  },
  template: request => request.routeOptions.url,
  caseInsensitive: ({ server: { initialConfig } }) => {
    return (initialConfig.routerOptions?.caseSensitive ?? initialConfig.caseSensitive) === false
  },
  isAnswered: reply => reply.sent,
  setHeader: (reply, name, value) => {
    reply.header(inLowerCase[name] ?? name, value)
  },
  refuse: (_request, reply, { status, headers, body }) => {
    for (const [name, value] of headers) reply.header(name, value)
    // bytes, since Fastify adds a charset to JSON text, and JSON has none
    reply.code(status).send(Buffer.from(body))
  },
  body: (request, reply) => bodyOf(request.raw, request.body, reply.raw),
  observe: (_request, reply, observer) => observeNode(reply.raw, observer),
  // `reply.sent` is true only when the hooks of an answer have run
  followAnswer: reply => {
    const { send } = reply
    let isSending = false
    reply.send = function (payload) {
      isSending = true
      reply.send = send
      return send.call(this, payload)
    }
    return () => {
      reply.send = send
      return isSending || reply.sent
    }
  },
  // with the option `trustProxy` a request has the addresses that Fastify believes, the peer first
  proxies: ({ ips }) => {
    if (ips === undefined) return { trusted: undefined, believes: 'nobody' }
    return { trusted: ips, believes: 'some' }
  },
  watch: (request, reply, watcher) => node.watch(request.raw, reply.raw, watcher),
  watchLeaving: (request, reply, left) => node.watchLeaving?.(request.raw, reply.raw, left),
  abandon: reply => {
    reply.hijack()
  },
  reportError: (request, error, what) => request.log.error({ err: error }, what),
}

function isPattern(template: string): boolean {
  return template.includes(':') || template.includes('*')
}
