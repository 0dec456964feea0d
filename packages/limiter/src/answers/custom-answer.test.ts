import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import { Controller, Get, Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { listen } from '@test/filters/listen'
import { servers } from '@test/filters/servers'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import { describe, expect, test } from 'vitest'
import { createLimiter, type LimiterOptions } from '../create/create-limiter.ts'
import { diana as expressFilter } from '../filters/express.ts'
import { diana as fastifyFilter } from '../filters/fastify.ts'
import type { FilterOptions } from '../filters/filter.ts'
import { diana as honoFilter } from '../filters/hono.ts'
import { diana as httpFilter } from '../filters/http.ts'
import { diana as koaFilter } from '../filters/koa.ts'
import { DianaModule } from '../filters/nest.ts'
import type { Limiter } from '../limiter.ts'
import { ask, httpClient, type Reply } from '../testing/filters/client.ts'
import { FilterService } from '../testing/filters/service.ts'

const names = ['node:http', 'Express 5', 'Fastify 5', 'Koa 3', 'Hono 4', 'Nest 11']

/** The second answer of a server whose first call uses the limit up. */
async function refusedBy(
  start: (limiter: Limiter) => Promise<{ port: number; close(): Promise<unknown> }>,
  options: Partial<LimiterOptions>,
): Promise<Reply> {
  const limiter = await createLimiter({ rules: [{ id: 'all', limit: '1/h' }], ...options })
  const { port, close } = await start(limiter)
  const client = httpClient(port, false)
  try {
    await ask(client, { path: '/hello' })
    return await ask(client, { path: '/hello' })
  } finally {
    client.close()
    await close()
    await limiter.close()
  }
}

describe.each(names)('the answer of the rule file, on %s', name => {
  const answered = (answer: LimiterOptions['answer']): Promise<Reply> => {
    return refusedBy(limiter => servers[name]!.start(limiter, new FilterService()), { answer })
  }

  test('the answer option can send a page with status 200', async () => {
    const body = '<h1>Back in a minute</h1>'
    const reply = await answered({ status: 200, body, contentType: 'text/html; charset=utf-8' })
    expect([reply.status, reply.body, reply.headers['content-type']]).toEqual([200, body, 'text/html; charset=utf-8'])
    expect(reply.headers['cache-control']).toBe('no-store')
    expect(Number(reply.headers['retry-after'])).toBeGreaterThan(0)
  })

  test('the answer option can send JSON or text, with the headers of draft 7', async () => {
    const json = await answered({ status: 429, body: { code: 'slow-down' }, headers: 'draft-7' })
    expect([json.status, JSON.parse(json.body)]).toEqual([429, { code: 'slow-down' }])
    expect(json.headers['content-type']).toMatch(/^application\/json/)
    expect(json.headers['ratelimit-policy']).toBe('1;w=3600')
    expect(json.headers.ratelimit).toMatch(/^limit=1, remaining=0, reset=\d+$/)
    const text = await answered({ body: 'later' })
    expect([text.status, text.body, text.headers['content-type']]).toEqual([503, 'later', 'text/plain; charset=utf-8'])
  })
})

const starts: Readonly<
  Record<
    string,
    (limiter: Limiter, options: FilterOptions<unknown>) => Promise<{ port: number; close(): Promise<unknown> }>
  >
> = {
  http: (limiter, options) => listen(createServer(httpFilter(limiter, (_, response) => response.end('hi'), options))),
  Express: (limiter, options) => {
    const app = express().use(expressFilter(limiter, options))
    return listen(createServer(app.get('/hello', (_request, response) => void response.send('hi'))))
  },
  Fastify: async (limiter, options) => {
    const app = fastify({ forceCloseConnections: true })
    app.register(fastifyFilter(limiter, options)).get('/hello', async () => 'hi')
    await app.listen({ port: 0, host: '127.0.0.1' })
    return { port: (app.server.address() as AddressInfo).port, close: () => app.close() }
  },
  Koa: (limiter, options) => {
    const app = new Koa().use(koaFilter(limiter, options)).use(context => {
      context.body = 'hi'
    })
    return listen(createServer(app.callback()))
  },
  Hono: (limiter, options) => {
    const app = new Hono().use(honoFilter(limiter, options)).get('/hello', context => context.text('hi'))
    return listen(createServer(getRequestListener(app.fetch)))
  },
  Nest: async (limiter, options) => {
    class Calls {
      hello(): string {
        return 'hi'
      }
    }
    Get('hello')(Calls.prototype, 'hello', Object.getOwnPropertyDescriptor(Calls.prototype, 'hello')!)
    Controller()(Calls)
    class Application {}
    Module({ imports: [DianaModule.forRoot(limiter, options)], controllers: [Calls] })(Application)
    const app = await NestFactory.create(Application, { logger: false })
    await app.init()
    return listen(app.getHttpServer())
  },
}

describe.each(Object.keys(starts))('onRefused and skip, on %s', name => {
  const told = (options: FilterOptions<unknown>): Promise<Reply> =>
    refusedBy(limiter => starts[name]!(limiter, options), {})

  test('onRefused sets status, headers and body, synchronously or by a promise', async () => {
    const page = { status: 200, body: '<p>busy</p>', contentType: 'text/html', headers: { 'x-busy': 'yes' } }
    for (const onRefused of [() => page, async () => page]) {
      const { status, body, headers } = await told({ onRefused })
      expect([status, body, headers['content-type'], headers['x-busy']]).toEqual([
        200,
        '<p>busy</p>',
        'text/html',
        'yes',
      ])
    }
  })

  test('the default answer is sent if onRefused returns nothing, fails or returns an invalid value', async () => {
    const errors: unknown[] = []
    const broken = (): never => {
      throw new Error('broken')
    }
    const answers = [
      () => undefined,
      broken,
      async () => broken(),
      () => ({ status: 99 }),
      () => ({ headers: { 'a b': '' } }),
    ]
    for (const onRefused of answers) {
      const { status, headers } = await told({ onRefused, onError: error => errors.push(error) })
      expect([status, headers['content-type']]).toEqual([503, expect.stringMatching(/^application\/(problem\+)?json/)])
    }
    expect(errors).toHaveLength(4)
  })

  test('skip lets requests pass uncounted, and a skip function that throws does not', async () => {
    expect((await told({ skip: () => true })).headers.ratelimit).toBeUndefined()
    const broken = (): never => {
      throw new Error('broken')
    }
    expect((await told({ skip: broken, onError: () => {} })).status).toBe(503)
  })
})
