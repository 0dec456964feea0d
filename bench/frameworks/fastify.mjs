import rateLimit from '@fastify/rate-limit'
import fastify from 'fastify'
import { diana } from '../../packages/limiter/dist/filters/fastify.js'
import { fourHeadersWith, fourRules, headersWith, MINUTE, oneRule, order, PLENTY, staticHeaders } from './limits.mjs'

async function serve(guard) {
  const app = fastify()
  await guard?.(app)
  app.get('/orders', (_request, reply) => reply.send(order))
  await app.ready()
  return app.server
}

// as in its README; a request meets one limit of it and no more, so there is no case of four
const peer = { max: PLENTY, timeWindow: MINUTE, keyGenerator: request => request.headers['x-account-id'] }

export const subjects = {
  bare: () => serve(),
  'bare, two headers more': () => {
    return serve(app => {
      app.addHook('onRequest', (_request, reply, done) => {
        for (const [name, value] of staticHeaders) reply.header(name, value)
        done()
      })
    })
  },
  'bare, two headers that change': () => {
    let left = PLENTY
    return serve(app => {
      app.addHook('onRequest', (_request, reply, done) => {
        for (const [name, value] of headersWith(left--)) reply.header(name, value)
        done()
      })
    })
  },
  'bare, headers of four limits that change': () => {
    let left = PLENTY
    return serve(app => {
      app.addHook('onRequest', (_request, reply, done) => {
        for (const [name, value] of fourHeadersWith(left--)) reply.header(name, value)
        done()
      })
    })
  },
  'diana, one rule': () => serve(async app => app.register(diana(await oneRule()))),
  'diana, one rule, no headers': () => serve(async app => app.register(diana(await oneRule('none')))),
  'diana, four rules': () => serve(async app => app.register(diana(await fourRules()))),
  '@fastify/rate-limit': () => serve(app => app.register(rateLimit, peer)),
}
