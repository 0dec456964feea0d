// Serves each framework behind one limit whose limiter cannot be made, in a process that something keeps alive, and prints the statuses.
import { createServer } from 'node:http'
import { register } from 'node:module'
import { getRequestListener } from '@hono/node-server'
import { rateLimit as onExpress } from 'diana-limiter/express'
import { rateLimit as onFastify } from 'diana-limiter/fastify'
import { rateLimit as onFetch } from 'diana-limiter/fetch'
import { rateLimit as onHono } from 'diana-limiter/hono'
import { rateLimit as onHttp } from 'diana-limiter/http'
import { rateLimit as onKoa } from 'diana-limiter/koa'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'

const CALLS = 6
const missing = `export const resolve = (name, context, next) => {
  if (name === 'ioredis') throw Object.assign(new Error('Cannot find package ioredis'), { code: 'ERR_MODULE_NOT_FOUND' })
  return next(name, context)
}`
register(`data:text/javascript,${encodeURIComponent(missing)}`)

let uncaught = 0
process.on('uncaughtException', () => uncaught++)

/** Options that are right where they are given, and whose limiter cannot be made. */
const cases = {
  'a number that the algorithm cannot count': { limit: '2/m', algorithm: 'leaky-bucket', whenFull: 'wait' },
  'ioredis that is not installed': { limit: '2/m', store: 'redis://127.0.0.1:1' },
  'a file with a key that has vanished': { limit: '2/m', jwt: { key: 'file:/nowhere/key.pem' }, by: 'jwt:sub' },
}

const served = 'served'
const servers = {
  'node:http': options => createServer(onHttp(options, (_request, response) => response.end(served))),
  'a middleware of Connect': options => {
    const own = onHttp(options)
    return createServer((request, response) => own(request, response, () => response.end(served)))
  },
  Express: options => createServer(express().use(onExpress(options), (_request, response) => response.send(served))),
  Fastify: async options => {
    const app = fastify()
    app.register(onFastify(options))
    app.get('/', async () => served)
    await app.ready()
    return app.server
  },
  Koa: options => {
    const app = new Koa().use(onKoa(options)).use(context => {
      context.body = served
    })
    return createServer(app.callback())
  },
  Hono: options =>
    createServer(getRequestListener(new Hono().use(onHono(options)).get('/', one => one.text(served)).fetch)),
  fetch: options => createServer(getRequestListener(onFetch(options).wrap(() => new Response(served)))),
}

const results = []
for (const [reason, options] of Object.entries(cases)) {
  for (const [name, create] of Object.entries(servers)) {
    let reported = 0
    const server = await create({ id: name.replace(/\W/g, ''), ...options, onError: () => reported++ })
    await new Promise(resolve => server.listen(0, '127.0.0.1', resolve))
    const statuses = []
    for (let call = 0; call < CALLS; call++) {
      const response = await fetch(`http://127.0.0.1:${server.address().port}/`)
      statuses.push(response.status)
      await response.text()
    }
    server.closeAllConnections()
    server.close()
    results.push({ reason, name, statuses, reported })
  }
}
const silent = onExpress(cases['ioredis that is not installed'])
const server = createServer(express().use(silent, (_request, response) => response.send(served))).listen(0, '127.0.0.1')
await new Promise(resolve => server.once('listening', resolve))
const { headers } = await fetch(`http://127.0.0.1:${server.address().port}/`)
console.log(JSON.stringify({ results, uncaught, retryAfter: headers.get('retry-after') }))
process.exit()
