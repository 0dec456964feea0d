import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { PassThrough } from 'node:stream'
import { createGzip } from 'node:zlib'
import { getRequestListener } from '@hono/node-server'
import { listen } from '@test/filters/listen'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import { compress } from 'hono/compress'
import { stream } from 'hono/streaming'
import Koa from 'koa'
import { afterEach, describe, expect, it } from 'vitest'
import { createLimiter } from '../create/create-limiter.ts'
import type { Limiter } from '../limiter.ts'
import { diana as onExpress } from './express.ts'
import { diana as onFastify } from './fastify.ts'
import { diana as onFetch } from './fetch.ts'
import { diana as onHono } from './hono.ts'
import { guard, diana as onHttp } from './http.ts'
import { diana as onKoa } from './koa.ts'

/** The head of an answer is sent when the application flushes it, whatever a filter observes. */

const express4 = createRequire(import.meta.url)('express4') as typeof express
const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

/** Sends the rest of the answer whose head was flushed. */
let finish: () => void

const head = { 'content-type': 'text/event-stream', 'x-from': 'application' }
const event = 'data: {"usage":{"total":5}}\n\n'

function flushThenWait(response: Pick<ServerResponse, 'writeHead' | 'flushHeaders' | 'end'>): void {
  response.writeHead(200, head)
  response.flushHeaders()
  finish = () => void response.end(event)
}

function bytes(): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      finish = () => {
        controller.enqueue(Buffer.from(event))
        controller.close()
      }
    },
  })
}

/** A middleware that compresses, as the usual ones do: in place of the methods of the response. */
const compressing: express.RequestHandler = (_request, response, next) => {
  const [write, end] = [response.write.bind(response) as (piece: Buffer) => boolean, response.end.bind(response)]
  const gzip = createGzip()
  gzip.on('data', (piece: Buffer) => write(piece)).on('end', () => end())
  response.setHeader('content-encoding', 'gzip')
  response.write = ((piece: Buffer) => gzip.write(piece)) as never
  response.end = ((piece?: Buffer) => void gzip.end(piece)) as never
  next()
}

type Start = (limiter: Limiter) => Promise<number>

async function port(server: ReturnType<typeof createServer>): Promise<number> {
  const started = await listen(server)
  closing.push(started.close)
  return started.port
}

async function portOf(app: ReturnType<typeof fastify>): Promise<number> {
  await app.listen({ port: 0, host: '127.0.0.1' })
  closing.push(() => app.close())
  return (app.server.address() as AddressInfo).port
}

const starts: Readonly<Record<string, Start>> = {
  'node:http': limiter => port(createServer(onHttp(limiter, (_request, response) => flushThenWait(response)))),
  'a guarded server': limiter =>
    port(
      guard(
        createServer((_request, response) => flushThenWait(response)),
        limiter,
      ) as never,
    ),
  Express: limiter =>
    port(createServer(express().use(onExpress(limiter), (_request, response) => flushThenWait(response)))),
  'Express 4': limiter =>
    port(createServer(express4().use(onExpress(limiter), (_request, response) => flushThenWait(response)))),
  'Express that compresses before the filter': limiter =>
    port(createServer(express().use(compressing, onExpress(limiter), (_request, response) => flushThenWait(response)))),
  'Express that compresses after the filter': limiter =>
    port(createServer(express().use(onExpress(limiter), compressing, (_request, response) => flushThenWait(response)))),
  'a hijacked reply of Fastify': limiter => {
    const app = fastify({ forceCloseConnections: true }).register(onFastify(limiter))
    app.get('/', (_request, reply) => {
      reply.hijack()
      flushThenWait(reply.raw)
    })
    return portOf(app)
  },
  'a stream of Fastify whose head is flushed': limiter => {
    const app = fastify({ forceCloseConnections: true }).register(onFastify(limiter))
    app.get('/', (_request, reply) => {
      const body = new PassThrough()
      finish = () => body.end(event)
      for (const [name, value] of Object.entries(head)) reply.header(name, value)
      reply.send(body)
      setImmediate(() => reply.raw.flushHeaders())
    })
    return portOf(app)
  },
  'a stream of Koa whose head is flushed': limiter => {
    const app = new Koa().use(onKoa(limiter)).use(context => {
      const body = new PassThrough()
      finish = () => body.end(event)
      context.set(head)
      context.body = body
      context.flushHeaders()
    })
    return port(createServer(app.callback()))
  },
  'a response of Koa that the application writes': limiter => {
    const app = new Koa().use(onKoa(limiter)).use(context => {
      context.respond = false
      flushThenWait(context.res)
    })
    return port(createServer(app.callback()))
  },
  'a stream of Hono': limiter => {
    const app = new Hono().use(onHono(limiter)).get('/', context => {
      for (const [name, value] of Object.entries(head)) context.header(name, value)
      return stream(context, one => one.pipe(bytes()))
    })
    return port(createServer(getRequestListener(app.fetch)))
  },
  'a compressed stream of Hono': limiter => {
    const app = new Hono().use(compress(), onHono(limiter)).get('/', () => {
      return new Response(bytes(), { headers: { ...head, 'content-type': 'text/plain' } })
    })
    return port(createServer(getRequestListener(app.fetch)))
  },
  'a Response of fetch': limiter => {
    const handle = onFetch(limiter).wrap(() => new Response(bytes(), { headers: head }))
    return port(createServer(getRequestListener(handle as never)))
  },
}

/** What makes a filter follow an answer: nothing, the end of the call, the cost in its body, and both. */
const rules: Readonly<Record<string, readonly object[]>> = {
  'a plain limit': [{ id: 'plain', limit: '9/h' }],
  'places that are held until the end': [{ id: 'places', algorithm: 'concurrency', limit: 5 }],
  'a cost that the answer settles': [{ id: 'tokens', limit: '999/h', cost: { settle: 'json:usage.total' } }],
  'statuses that count': [{ id: 'failures', limit: '9/h', countWhen: 'failed' }],
}

describe.each(Object.entries(starts))('%s', (_name, start) => {
  it.each(Object.entries(rules))(
    'a filter sends the head of an event stream before its first byte, by %s',
    async (_rule, list) => {
      const limiter = await createLimiter({ rules: list as never })
      closing.push(() => limiter.close())
      const asked = request({ port: await start(limiter), headers: { 'accept-encoding': 'gzip' }, agent: false })
      asked.end()
      const [answer] = (await once(asked, 'response')) as [IncomingMessage]
      expect([answer.statusCode, answer.headers['x-from']]).toEqual([200, 'application'])
      // only now, so that a head that waits for a byte would never come
      finish()
      expect((await answer.toArray()).length).toBeGreaterThan(0)
    },
  )
})

it('a Response of fetch whose body has not begun is returned at once', async () => {
  const limiter = await createLimiter({ rules: rules['a cost that the answer settles'] as never })
  closing.push(() => limiter.close())
  const answer = await onFetch(limiter).wrap(() => new Response(bytes(), { headers: head }))(new Request('http://a/'))
  expect(answer.headers.get('x-from')).toBe('application')
  finish()
  expect(await answer.text()).toBe(event)
})
