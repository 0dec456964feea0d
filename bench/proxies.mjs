// The service behind the proxies, and the proxies that are Node programs.

import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import httpProxy from '@fastify/http-proxy'
import fastify from 'fastify'
import { createLimiter } from '../packages/limiter/dist/index.js'
import { oneRule, order, PLENTY } from './frameworks/limits.mjs'

// the one that the gateway itself uses
const { Pool } = createRequire(new URL('../packages/gateway/package.json', import.meta.url))('undici')
const hopByHop = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** The whole system, each address, each account and each path, in sliding windows. */
export const fourRulesDocument = {
  identify: { account: ['header:x-account-id'] },
  rules: [
    { id: 'whole', limit: `${PLENTY}/m` },
    { id: 'ip', by: 'ip', limit: `${PLENTY}/m` },
    { id: 'account', by: 'account', limit: `${PLENTY}/m` },
    { id: 'path', by: 'resource', limit: `${PLENTY}/m` },
  ],
}

/** The least that a proxy of these parts does: copies headers and streams bodies, over connections that are kept. */
const bareProxy = upstream => {
  const pool = new Pool(upstream)
  return createServer((request, response) => {
    const headers = {}
    for (const name in request.headers) if (!hopByHop.has(name)) headers[name] = request.headers[name]
    const hasBody =
      request.headers['content-length'] !== undefined || request.headers['transfer-encoding'] !== undefined
    const { url: path, method } = request
    pool.dispatch({ path, method, headers, body: hasBody ? request : null }, new BareAnswer(response))
  })
}

class BareAnswer {
  constructor(response) {
    this.response = response
  }

  onConnect() {}

  onHeaders(status, received, resume) {
    const headers = []
    for (let at = 0; at < received.length; at += 2) {
      const name = received[at].toString('latin1').toLowerCase()
      if (!hopByHop.has(name)) headers.push(name, received[at + 1].toString('latin1'))
    }
    this.response.writeHead(status, headers)
    this.response.on('drain', resume)
    return true
  }

  onData(chunk) {
    return this.response.write(chunk)
  }

  onComplete() {
    this.response.end()
  }

  onError() {
    this.response.destroy()
  }
}

const gateway = async (limiter, upstream) => {
  const { createGateway } = await import('../packages/gateway/dist/gateway.js')
  const app = await createGateway({ limiter, upstream })
  await app.ready()
  return app.server
}

export const subjects = {
  service: () => {
    return createServer((_request, response) => {
      response.setHeader('Content-Type', 'application/json')
      response.end(JSON.stringify(order))
    })
  },
  'bare node:http and undici': ({ upstream }) => bareProxy(upstream),
  '@fastify/http-proxy, no limits': async ({ upstream }) => {
    const app = fastify()
    await app.register(httpProxy, { upstream })
    await app.ready()
    return app.server
  },
  'diana gateway, no rules': async ({ upstream }) => gateway(await createLimiter({ rules: [] }), upstream),
  'diana gateway, one rule': async ({ upstream }) => gateway(await oneRule(), upstream),
  'diana gateway, four rules': async ({ upstream }) => gateway(await createLimiter(fourRulesDocument), upstream),
}
