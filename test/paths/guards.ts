import { type Agent, createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import fastify from 'fastify'
import { createGateway } from '../../packages/gateway/src/gateway.ts'
import { diana as expressFilter } from '../../packages/limiter/src/filters/express.ts'
import { diana as fastifyFilter } from '../../packages/limiter/src/filters/fastify.ts'
import { diana as httpFilter } from '../../packages/limiter/src/filters/http.ts'
import type { Limiter } from '../../packages/limiter/src/limiter.ts'
import { listen } from '../helpers/filters/listen.ts'

/** Diana in one of its forms, in front of a service that gets the target as it arrives. */
export interface Guard {
  readonly port: number
  close(): Promise<unknown>
}

export type StartGuard = (limiter: Limiter, servicePort: number, agent: Agent) => Promise<Guard>

export const guards: Readonly<Record<string, StartGuard>> = {
  gateway: async (limiter, servicePort) => {
    // its types are those of the build, and these tests run on the sources
    const gateway = await createGateway({ limiter: limiter as never, upstream: `http://127.0.0.1:${servicePort}` })
    await gateway.listen({ port: 0, host: '127.0.0.1' })
    return {
      port: (gateway.server.address() as AddressInfo).port,
      close: () => {
        gateway.server.closeAllConnections()
        return gateway.close()
      },
    }
  },
  'Express filter': (limiter, servicePort, agent) => {
    const app = express().use(expressFilter(limiter))
    return listen(createServer(app.use((incoming, response) => relay(incoming, response, servicePort, agent))))
  },
  'Fastify filter': async (limiter, servicePort, agent) => {
    const app = fastify({ forceCloseConnections: true })
    app.register(fastifyFilter(limiter, { caseSensitive: false }))
    app.get('/*', (incoming, reply) => {
      for (const [name, value] of Object.entries(reply.getHeaders())) reply.raw.setHeader(name, String(value))
      reply.hijack()
      relay(incoming.raw, reply.raw, servicePort, agent)
    })
    await app.listen({ port: 0, host: '127.0.0.1' })
    return { port: (app.server.address() as AddressInfo).port, close: () => app.close() }
  },
  'node:http filter': (limiter, servicePort, agent) => {
    const listener = httpFilter(limiter, (incoming: IncomingMessage, response: ServerResponse) =>
      relay(incoming, response, servicePort, agent),
    )
    return listen(createServer(listener))
  },
}

/** Sends a call on with its target untouched, and the answer back. */
function relay(incoming: IncomingMessage, response: ServerResponse, port: number, agent: Agent): void {
  try {
    const outgoing = request({ port, host: '127.0.0.1', agent, path: incoming.url ?? '/' }, answer => {
      response.statusCode = answer.statusCode ?? 502
      answer.pipe(response)
    })
    outgoing.on('error', () => response.writeHead(502).end())
    outgoing.end()
  } catch {
    // Node sends no target with such characters
    response.writeHead(404).end()
  }
}
