// node front.mjs KIND: a service with a pool of 20 places, 50 ms each (400 answers a second), and what stands in front of it. Prints the port;
// with an adaptive rule, it reports the limit that was found five times a second.
import { createServer } from 'node:http'
import underPressure from '@fastify/under-pressure'
import fastify from 'fastify'
import { createGateway } from '../../packages/gateway/dist/gateway.js'
import { createLimiter } from '../../packages/limiter/dist/index.js'

const PLACES = 20
const SERVICE_MS = 50
let busy = 0
const waiting = []

function work() {
  while (busy < PLACES && waiting.length > 0) {
    busy++
    const done = waiting.shift()
    setTimeout(() => {
      busy--
      done()
      work()
    }, SERVICE_MS)
  }
}

const serve = () => {
  const { promise, resolve } = Promise.withResolvers?.() ?? withResolvers()
  waiting.push(resolve)
  work()
  return promise
}

function withResolvers() {
  let resolve
  const promise = new Promise(settle => {
    resolve = settle
  })
  return { promise, resolve }
}

const service = createServer(async (_request, response) => {
  await serve()
  response.end('done')
})

const listening = server => new Promise(resolve => server.listen(0, '127.0.0.1', () => resolve(server.address().port)))

async function gateway(rules, more = {}) {
  const limiter = await createLimiter({ rules, ...more })
  const port = await listening(service)
  const app = await createGateway({ limiter, upstream: `http://127.0.0.1:${port}` })
  await app.listen({ port: 0, host: '127.0.0.1' })
  setInterval(() => {
    const estimate = limiter.status().rules[0]?.estimate
    if (estimate) process.send?.({ at: Date.now(), limit: estimate.limit })
  }, 200).unref()
  return app.server.address().port
}

const priority = [{ match: { path: '/pay' }, level: 'critical' }]
const kinds = {
  bare: () => gateway([]),
  'fixed limit of 20': () => gateway([{ id: 'backend', algorithm: 'concurrency', limit: PLACES }]),
  'fixed limit of 200': () => gateway([{ id: 'backend', algorithm: 'concurrency', limit: 200 }]),
  'diana adaptive': () => gateway([{ id: 'backend', algorithm: 'adaptive', limit: 2000 }], { priority }),
  'under-pressure': async () => {
    const app = fastify()
    await app.register(underPressure, { maxEventLoopDelay: 100, maxEventLoopUtilization: 0.98, retryAfter: 1 })
    app.get('/*', async () => {
      await serve()
      return 'done'
    })
    await app.listen({ port: 0, host: '127.0.0.1' })
    return app.server.address().port
  },
}

const port = await kinds[process.argv[2]]()
process.send?.({ port })
