// The service behind the proxies, and the proxies that are Node programs.

import { createServer } from 'node:http'
import httpProxy from '@fastify/http-proxy'
import fastify from 'fastify'
import { fourRules, oneRule, order } from './frameworks/limits.mjs'

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
  '@fastify/http-proxy, no limits': async ({ upstream }) => {
    const app = fastify()
    await app.register(httpProxy, { upstream })
    await app.ready()
    return app.server
  },
  'diana gateway, one rule': async ({ upstream }) => gateway(await oneRule(), upstream),
  'diana gateway, four rules': async ({ upstream }) => gateway(await fourRules(), upstream),
}
