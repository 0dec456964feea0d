// The service behind the proxies, and the proxies that are Node programs.

import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import httpProxy from '@fastify/http-proxy'
import fastify from 'fastify'
import { createLimiter } from '../../packages/limiter/dist/index.js'
import { oneRule, order, PLENTY } from '../frameworks/limits.mjs'

// the one that the gateway itself uses
const { Pool } = createRequire(new URL('../../packages/gateway/package.json', import.meta.url))('undici')
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

/**
 * The least that a correct proxy of these parts does: streams bodies both ways over connections that are kept, drops headers
 * that are about one connection, says who called, and ends the call to the service if the caller leaves.
 */
const bareProxy = upstream => {
  const pool = new Pool(upstream)
  return createServer((request, response) => {
    const received = request.headers
    const named = namedIn(received.connection)
    const headers = {}
    for (const name in received) if (!hopByHop.has(name) && !named?.includes(name)) headers[name] = received[name]
    const earlier = received['x-forwarded-for']
    const address = request.socket.remoteAddress
    headers['x-forwarded-for'] = earlier === undefined ? address : `${earlier}, ${address}`
    const hasBody = received['content-length'] !== undefined || received['transfer-encoding'] !== undefined
    const { url: path, method } = request
    pool.dispatch({ path, method, headers, body: hasBody ? request : null }, new BareAnswer(response))
  })
}

/** The headers that Connection names; none for the usual values. */
function namedIn(connection) {
  if (connection === undefined || connection === 'keep-alive' || connection === 'close') return undefined
  return connection.split(',').map(name => name.trim().toLowerCase())
}

class BareAnswer {
  constructor(response) {
    this.response = response
    this.isOver = false
    this.abort = undefined
    response.on('close', () => this.onLeft())
  }

  onConnect(abort) {
    if (this.response.destroyed) abort()
    else this.abort = abort
  }

  onHeaders(status, received, resume) {
    if (status < 200) return true
    const headers = []
    let named
    for (let at = 0; at < received.length; at += 2) {
      const name = received[at].toString('latin1').toLowerCase()
      if (name === 'connection') named = namedIn(received[at + 1].toString('latin1'))
      if (!hopByHop.has(name)) headers.push(name, received[at + 1].toString('latin1'))
    }
    this.response.writeHead(status, named === undefined ? headers : without(named, headers))
    this.response.on('drain', resume)
    return true
  }

  onData(chunk) {
    return this.response.write(chunk)
  }

  onComplete() {
    this.isOver = true
    this.response.end()
  }

  onError() {
    this.isOver = true
    if (this.response.headersSent) this.response.destroy()
    else this.response.writeHead(502).end()
  }

  onLeft() {
    if (!this.isOver) this.abort?.()
  }
}

function without(names, headers) {
  return headers.filter((_, at) => !names.includes(headers[at - (at % 2)]))
}

const gateway = async (limiter, upstream) => {
  const { createGateway } = await import('../../packages/gateway/dist/gateway.js')
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
