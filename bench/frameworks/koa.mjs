import { createServer } from 'node:http'
import Koa from 'koa'
import ratelimit from 'koa-ratelimit'
import { diana } from '../../packages/limiter/dist/filters/koa.js'
import { fourKeys, fourRules, MINUTE, oneRule, order, PLENTY } from './limits.mjs'

function serve(...middlewares) {
  const app = new Koa()
  for (const middleware of middlewares) app.use(middleware)
  app.use(context => {
    context.body = order
  })
  return createServer(app.callback())
}

const header = (context, name) => context.headers[name]
const peer = id => ratelimit({ driver: 'memory', db: new Map(), duration: MINUTE, max: PLENTY, id })

export const subjects = {
  bare: () => serve(),
  'diana, one rule': async () => serve(diana(await oneRule())),
  'diana, four rules': async () => serve(diana(await fourRules())),
  'koa-ratelimit': () => serve(peer(context => header(context, 'x-account-id'))),
  'koa-ratelimit, four of them': () => serve(...fourKeys(header, context => context.path).map(peer)),
}
