import { readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Queue } from 'bullmq'
import { createLimiter, typedRules } from 'diana-limiter'
import { currentVerdict } from 'diana-limiter/context'
import { rateLimit as onExpress } from 'diana-limiter/express'
import { rateLimit as onFastify } from 'diana-limiter/fastify'
import { rateLimit as onHono } from 'diana-limiter/hono'
import { rateLimit as onKoa } from 'diana-limiter/koa'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import { createStaticHandler } from 'react-router'
import { afterEach, describe, expect, it } from 'vitest'
import { listen } from './helpers/filters/listen.ts'
import { startRedis } from './helpers/servers/redis-server.ts'

const folder = new URL('docs/adapters/', import.meta.url)
const page = readFileSync(fileURLToPath(new URL('../docs/adapters.md', import.meta.url)), 'utf8')
const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

type Statuses = () => Promise<number[]>
// biome-ignore lint/suspicious/noExplicitAny: programs without types
type Module = Readonly<Record<string, any>>

const three = async (call: () => Promise<number>): Promise<number[]> => [await call(), await call(), await call()]

/** Each program, called as its framework calls it: two calls pass, and the third is refused. */
const programs: Readonly<Record<string, (module: Module) => Statuses>> = {
  'trpc.mjs': ({ router, limiter }) => {
    closing.push(() => (limiter as { close(): unknown }).close())
    const { createCaller } = router as { createCaller(context: object): { orders(): Promise<string> } }
    const caller = createCaller({ user: 'ann' })
    const call = () =>
      caller.orders().then(
        () => 200,
        error => (error.code === 'TOO_MANY_REQUESTS' ? 429 : 500),
      )
    return () => three(call)
  },
  'elysia.mjs': ({ fetch }) => {
    const handle = fetch as (request: Request, info: string) => Promise<Response>
    return () => three(async () => (await handle(new Request('http://localhost/'), '203.0.113.1')).status)
  },
  'react-router.mjs': ({ middleware }) => {
    const handler = createStaticHandler([{ id: 'root', path: '/', middleware, loader: () => 'served' } as never])
    const request = () => new Request('http://localhost/', { headers: { 'x-forwarded-for': '203.0.113.1' } })
    return () =>
      three(async () => {
        const answer: unknown = await handler.queryRoute(request(), {
          routeId: 'root',
          generateMiddlewareResponse: async (query: (request: Request) => unknown) => {
            const result: unknown = await query(request())
            return result instanceof Response ? result : Response.json(result)
          },
        } as never)
        return (answer as Response).status
      })
  },
  'astro.mjs': ({ onRequest }) => {
    const handle = onRequest as (context: object, next: () => Promise<Response>) => Promise<Response>
    const context = () => ({ request: new Request('http://localhost/'), clientAddress: '203.0.113.1' })
    return () => three(async () => (await handle(context(), async () => new Response('served'))).status)
  },
  'lambda.mjs': ({ handler }) => {
    const http = { method: 'GET', sourceIp: '203.0.113.1' }
    const event = {
      ...{ rawPath: '/a', rawQueryString: '', headers: { host: 'x.example' } },
      requestContext: { http, domainName: 'x.example' },
    }
    const handle = handler as (event: object) => Promise<{ statusCode: number; headers: Record<string, string> }>
    return () => three(async () => (await handle(event)).statusCode)
  },
}

describe('the verdict deep in code', () => {
  const left = (): number | undefined => currentVerdict()?.decisions[0]?.remaining
  /** Code that knows nothing of requests, after a turn of the event loop. */
  const deep = async (): Promise<string> => {
    await pause(5)
    return String(left())
  }
  const ends: Readonly<Record<string, () => Promise<string>>> = {
    Express: async () => {
      const limit = onExpress({ limit: '9/m' })
      const app = express().use(limit, async (_request, response) => void response.send(await deep()))
      const { port, close } = await listen(createServer(app))
      closing.push(limit.close, close)
      return `http://127.0.0.1:${port}`
    },
    Fastify: async () => {
      const app = fastify({ forceCloseConnections: true }).register(onFastify({ limit: '9/m' }))
      app.get('/', () => deep())
      closing.push(() => app.close())
      return await app.listen({ port: 0, host: '127.0.0.1' })
    },
    Koa: async () => {
      const limit = onKoa({ limit: '9/m' })
      const app = new Koa().use(limit).use(async context => {
        context.body = await deep()
      })
      const { port, close } = await listen(createServer(app.callback()))
      closing.push(limit.close, close)
      return `http://127.0.0.1:${port}`
    },
  }

  it.each(Object.entries(ends))('currentVerdict finds the verdict of each request under %s', async (_name, start) => {
    const url = await start()
    const texts = await Promise.all([1, 2, 3].map(async () => (await fetch(url)).text()))
    expect(texts.sort()).toEqual(['6', '7', '8'])
    expect(left()).toBeUndefined()
  })

  it('currentVerdict finds the verdict under Hono', async () => {
    const limit = onHono({ limit: '9/m', peer: () => '203.0.113.1' })
    const app = new Hono().use(limit).get('/', async context => context.text(await deep()))
    const texts = await Promise.all(
      [1, 2].map(async () => (await Promise.resolve().then(() => app.request('/'))).text()),
    )
    expect(texts.sort()).toEqual(['7', '8'])
    await limit.close()
  })
})

describe('programs of docs/adapters.md', () => {
  it('the page shows every program, and this test runs each', () => {
    const names = readdirSync(fileURLToPath(folder))
    for (const name of names) expect(page).toContain(readFileSync(fileURLToPath(new URL(name, folder)), 'utf8'))
    expect(names.sort()).toEqual([...Object.keys(programs), 'bullmq.mjs'].sort())
  })

  it.each(Object.entries(programs))('%s refuses the third call', async (name, statusesOf) => {
    const module = (await import(/* @vite-ignore */ new URL(name, folder).href)) as Module
    const [first, second, third] = await statusesOf(module)()
    expect([first, second]).toEqual([200, 200])
    expect([429, 503]).toContain(third)
    await (module.limit as { close?(): Promise<void> } | undefined)?.close?.()
  })

  it('bullmq.mjs does all jobs of a queue, those of each account at its limit', async () => {
    const redis = await startRedis()
    closing.push(() => redis.close())
    const [host, port] = redis.authority.split(':')
    const connection = { host: host!, port: Number(port), maxRetriesPerRequest: null }
    const { startWorker } = (await import(new URL('bullmq.mjs', folder).href)) as {
      startWorker(
        connection: object,
        send: (data: { account: string; at: number }) => void,
      ): Promise<{ close(): unknown }>
    }
    const done: string[] = []
    const worker = await startWorker(connection, ({ account }) => void done.push(account))
    closing.push(() => worker.close())
    const queue = new Queue('mail', { connection })
    closing.push(() => queue.close())
    await queue.addBulk(
      ['ann', 'ann', 'ann', 'ann', 'ann', 'bob'].map(account => ({ name: 'letter', data: { account } })),
    )
    await expect.poll(() => done.filter(one => one === 'bob').length).toBe(1)
    expect(done.filter(one => one === 'ann').length).toBeLessThanOrEqual(4)
    await expect.poll(() => done.toSorted(), { timeout: 5000 }).toEqual(['ann', 'ann', 'ann', 'ann', 'ann', 'bob'])
  })
})

it('rule ids are typed from the rules that were passed', async () => {
  const limiter = await createLimiter({ rules: typedRules([{ id: 'login', match: 'none', by: 'ip', limit: '1/m' }]) })
  closing.push(() => limiter.close())
  expect((await limiter.consume('login', '203.0.113.1')).allowed).toBe(true)
  // @ts-expect-error there is no rule of this id
  await expect(limiter.consume('lgoin', '203.0.113.1')).rejects.toThrow('did you mean "login"?')
})
