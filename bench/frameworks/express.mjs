import { createServer } from 'node:http'
import express from 'express'
import { rateLimit } from 'express-rate-limit'
import { diana } from '../../packages/limiter/dist/filters/express.js'
import { fourKeys, fourRules, headersWith, MINUTE, oneRule, order, PLENTY, staticHeaders } from './limits.mjs'

function serve(...middlewares) {
  const app = express()
  for (const middleware of middlewares) app.use(middleware)
  app.get('/orders', (_request, response) => response.json(order))
  return createServer(app)
}

// the settings of its README, which switch the old headers off
const peer = keyGenerator => {
  return rateLimit({ windowMs: MINUTE, limit: PLENTY, standardHeaders: 'draft-8', legacyHeaders: false, keyGenerator })
}

const header = (request, name) => request.headers[name]

export const subjects = {
  bare: () => serve(),
  'bare, two headers more': () => {
    return serve((_request, response, next) => {
      for (const [name, value] of staticHeaders) response.setHeader(name, value)
      next()
    })
  },
  'bare, two headers that change': () => {
    let left = PLENTY
    return serve((_request, response, next) => {
      for (const [name, value] of headersWith(left--)) response.setHeader(name, value)
      next()
    })
  },
  'diana, one rule': async () => serve(diana(await oneRule())),
  'diana, one rule, no headers': async () => serve(diana(await oneRule('none'))),
  'diana, four rules': async () => serve(diana(await fourRules())),
  'express-rate-limit': () => serve(peer(request => header(request, 'x-account-id'))),
  'express-rate-limit, four of them': () => serve(...fourKeys(header, request => request.path).map(peer)),
}
