import { createServer } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import { listen } from '@test/filters/listen'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import { afterEach, describe, expect, it } from 'vitest'
import { diana, rateLimit } from '../index.ts'
import { rateLimit as onExpress } from './express.ts'
import { rateLimit as onFastify } from './fastify.ts'
import { rateLimit as onFetch } from './fetch.ts'
import { rateLimit as onHono } from './hono.ts'
import { rateLimit as onHttp } from './http.ts'
import { rateLimit as onKoa } from './koa.ts'
import type { OwnLimiter } from './one-line/own-limiter.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

type Handler = OwnLimiter & ((...args: never[]) => unknown)

const filters: Readonly<Record<string, () => Handler>> = {
  express: () => onExpress({ limit: '9/h' }) as never,
  fastify: () => onFastify({ limit: '9/h' }) as never,
  koa: () => onKoa({ limit: '9/h' }) as never,
  hono: () => onHono({ limit: '9/h' }) as never,
  fetch: () => onFetch({ limit: '9/h' }) as never,
}

/** What each framework answers behind a handler, and what it has reported. */
const frameworks: Readonly<Record<string, (handler: never) => Promise<{ status: number; errors: string[] }>>> = {
  express: async handler => {
    const errors: string[] = []
    const app = express().use(handler, (_request: unknown, response: express.Response) => void response.send('served'))
    app.use((error: Error, _request: unknown, response: express.Response, _next: unknown) => {
      errors.push(error.message)
      response.sendStatus(500)
    })
    return { status: await statusOf(createServer(app)), errors }
  },
  fastify: async handler => {
    const errors: string[] = []
    const app = fastify({ forceCloseConnections: true })
    app.setErrorHandler((error: Error, _request, reply) => {
      errors.push(error.message)
      return reply.code(500).send('')
    })
    app.get('/', { onRequest: handler }, async () => 'served')
    closing.push(() => app.close())
    const { statusCode } = await app.inject('/')
    return { status: statusCode, errors }
  },
  koa: async handler => {
    const errors: string[] = []
    const app = new Koa().use(handler).use(context => {
      context.body = 'served'
    })
    app.on('error', (error: Error) => errors.push(error.message))
    return { status: await statusOf(createServer(app.callback())), errors }
  },
  hono: async handler => {
    const errors: string[] = []
    const app = new Hono().use(handler).get('/', context => context.text('served'))
    app.onError((error, context) => {
      errors.push(error.message)
      return context.text('', 500)
    })
    return { status: await statusOf(createServer(getRequestListener(app.fetch))), errors }
  },
}

async function statusOf(server: ReturnType<typeof createServer>): Promise<number> {
  const { port, close } = await listen(server)
  closing.push(close)
  return (await fetch(`http://127.0.0.1:${port}/`)).status
}

describe.each(Object.keys(filters))('the filter of diana-limiter/%s', entry => {
  it.each(Object.keys(frameworks).filter(name => name !== entry))(
    'mounted in %s lets no request pass, and says which entry to import',
    async framework => {
      const own = filters[entry]!()
      closing.push(own.close)
      const { status, errors } = await frameworks[framework]!(own as never)
      expect(status).toBe(500)
      const wrong = `the filter of diana-limiter/${entry} is mounted in another framework: import it from 'diana-limiter/${framework}'`
      expect(errors).toEqual([entry === 'fetch' ? expect.stringContaining('this filter takes a Request') : wrong])
    },
  )
})

describe.each([
  ['express', onExpress],
  ['fastify', onFastify],
  ['koa', onKoa],
  ['hono', onHono],
] as const)('rateLimit of diana-limiter/%s', (framework, filter) => {
  it('rateLimit that is mounted without being called lets no request pass, and says how to call it', async () => {
    const { status, errors } = await frameworks[framework]!(filter as never)
    expect([status, errors]).toEqual([
      500,
      ["rateLimit: it was mounted without being called: write rateLimit({ limit: '100/m' }) where it is mounted"],
    ])
  })
})

it('rateLimit that is registered without being called stops a Fastify application from starting', async () => {
  await expect(
    fastify()
      .register(onFastify as never)
      .ready(),
  ).rejects.toThrow('rateLimit: it was mounted without')
})

it('the filter of Node, mounted in Koa, says which entry to import', async () => {
  const own = onHttp({ limit: '9/h' })
  closing.push(own.close)
  const { status, errors } = await frameworks.koa!(own as never)
  expect([status, errors[0]]).toEqual([500, expect.stringContaining("import it from 'diana-limiter/koa'")])
})

it.each(Object.entries({ rateLimit, diana }))(
  '%s of the main entry throws, with the entries that have it',
  (name, call) => {
    expect(call).toThrow(
      `${name} comes from the entry of your framework: write import { ${name} } from 'diana-limiter/express', or from`,
    )
  },
)
