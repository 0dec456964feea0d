import { createAdaptorServer } from '@hono/node-server'
import { Hono } from 'hono'
import { rateLimiter } from 'hono-rate-limiter'
import { diana } from '../../packages/limiter/dist/filters/hono.js'
import { fourKeys, fourRules, MINUTE, oneRule, order, PLENTY } from './limits.mjs'

function serve(...middlewares) {
  const app = new Hono()
  for (const middleware of middlewares) app.use(middleware)
  app.get('/orders', context => context.json(order))
  return createAdaptorServer(app)
}

const header = (context, name) => context.req.header(name)
const peer = keyGenerator => {
  return rateLimiter({ windowMs: MINUTE, limit: PLENTY, standardHeaders: 'draft-6', keyGenerator })
}

export const subjects = {
  bare: () => serve(),
  'diana, one rule': async () => serve(diana(await oneRule())),
  'diana, four rules': async () => serve(diana(await fourRules())),
  'hono-rate-limiter': () => serve(peer(context => header(context, 'x-account-id'))),
  'hono-rate-limiter, four of them': () => serve(...fourKeys(header, context => context.req.path).map(peer)),
}
