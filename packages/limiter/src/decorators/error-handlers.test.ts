import 'reflect-metadata'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import { getRequestListener } from '@hono/node-server'
import { Catch, Controller, type ExceptionFilter, Get, Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { listen } from '@test/filters/listen'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { LimitedError } from '../answers/limited-error.ts'
import { createLimiter } from '../create/create-limiter.ts'
import { DianaModule } from '../filters/nest.ts'
import type { Limiter } from '../limiter.ts'
import { rateLimited } from './wrap-function.ts'

/** An error of a limited function that an application does not catch is answered as a refusal, by the framework's own handler. */

const express4 = createRequire(import.meta.url)('express4') as typeof express
const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
  vi.restoreAllMocks()
})

type Work = () => string | Promise<string>

async function listening(server: ReturnType<typeof createServer>): Promise<string> {
  const { port, close } = await listen(server)
  closing.push(close)
  return `http://127.0.0.1:${port}`
}

async function nest(
  work: Work,
  imports: unknown[],
  prepare = (_app: { useGlobalFilters(one: unknown): unknown }) => {},
) {
  class Calls {
    one(): unknown {
      return work()
    }
  }
  Get()(Calls.prototype, 'one', Object.getOwnPropertyDescriptor(Calls.prototype, 'one')!)
  Controller()(Calls)
  class Application {}
  Module({ imports: imports as never[], controllers: [Calls] })(Application)
  const app = await NestFactory.create(Application, { logger: false })
  prepare(app as never)
  closing.push(() => app.close())
  await app.init()
  return await listening(app.getHttpServer())
}

const starts: Readonly<Record<string, (work: Work) => Promise<string>>> = {
  Express: work => {
    const app = express().set('env', 'test')
    return listening(createServer(app.get('/', async (_request, response) => void response.send(await work()))))
  },
  'Express 4': work => {
    const app = express4().set('env', 'test')
    app.get('/', (_request, response, next) => {
      Promise.resolve()
        .then(work)
        .then(text => response.send(text), next)
    })
    return listening(createServer(app))
  },
  Fastify: async work => {
    const app = fastify({ forceCloseConnections: true })
    app.get('/', async () => await work())
    closing.push(() => app.close())
    return await app.listen({ port: 0, host: '127.0.0.1' })
  },
  Koa: work => {
    const app = new Koa().use(async context => {
      context.body = await work()
    })
    return listening(createServer(app.callback()))
  },
  Hono: work => {
    const app = new Hono().get('/', async context => context.text(await work()))
    return listening(createServer(getRequestListener(app.fetch)))
  },
  'Nest with DianaModule': async work => {
    const limiter = await createLimiter({ rules: [] })
    return await nest(work, [DianaModule.forRoot(limiter)])
  },
  'a handler of fetch that returns the response of the error': work => {
    const handle = async (): Promise<Response> => {
      try {
        return new Response(await work())
      } catch (error) {
        if (error instanceof LimitedError) return error.getResponse()
        throw error
      }
    }
    return listening(createServer(getRequestListener(handle as never)))
  },
}

async function limiterWith(answer: object = {}): Promise<Limiter> {
  const limiter = await createLimiter({ rules: [], clock: () => 1_700_000_000_000, ...answer })
  closing.push(() => limiter.close())
  return limiter
}

function sendOnce(limiter: Limiter, isAsync: boolean): Work {
  const send: Work = isAsync ? async () => 'sent' : () => 'sent'
  return rateLimited(send, { id: 'sms', limit: '1/h', limiter })
}

describe.each(Object.entries(starts))('%s', (_name, start) => {
  it.each([
    [503, false],
    [503, true],
    [429, true],
  ])(
    'an error handler answers the error of a limit with %s, Retry-After and the headers of the limit (async: %s)',
    async (status, isAsync) => {
      const printed = vi.spyOn(console, 'error').mockImplementation(() => {})
      const limiter = await limiterWith({ answer: { status } })
      const url = await start(sendOnce(limiter, isAsync))
      expect((await fetch(url)).status).toBe(200)
      const refused = await fetch(url)
      expect(refused.status).toBe(status)
      expect(refused.headers.get('retry-after')).toBe('3600')
      expect(refused.headers.get('ratelimit-policy')).toBe('"sms";q=1;w=3600')
      expect(refused.headers.get('cache-control')).toBe('no-store')
      expect(await refused.text()).toMatch(/sms|Service Unavailable|Too Many Requests/)
      expect(printed).not.toHaveBeenCalled()
    },
  )
})

describe('an error of a limit', () => {
  it('an error of a limit is answered by Nest with its status, also without DianaModule', async () => {
    const url = await nest(sendOnce(await limiterWith({ answer: { status: 429 } }), true), [])
    expect([(await fetch(url)).status, (await fetch(url)).status]).toEqual([200, 429])
  })

  it('an error of a limit reaches the exception filters of a Nest application first', async () => {
    const seen: unknown[] = []
    class All implements ExceptionFilter {
      catch(error: unknown, host: { switchToHttp(): { getResponse(): express.Response } }): void {
        seen.push(error)
        host.switchToHttp().getResponse().status(418).send('mine')
      }
    }
    Catch()(All)
    const limiter = await limiterWith()
    const url = await nest(sendOnce(limiter, true), [DianaModule.forRoot(limiter)], app =>
      app.useGlobalFilters(new All()),
    )
    expect([(await fetch(url)).status, (await fetch(url)).status]).toEqual([200, 418])
    expect(seen).toEqual([expect.any(LimitedError)])
  })

  it('an error of a limit has its status, headers and response outside of any framework', async () => {
    const send = sendOnce(await limiterWith({ answer: { status: 429 } }), false)
    send()
    let error: unknown
    try {
      send()
    } catch (one) {
      error = one
    }
    expect(error).toMatchObject({ name: 'DianaError', code: 'LIMITED', status: 429, statusCode: 429, expose: true })
    expect((error as LimitedError).headers).toEqual({
      'RateLimit-Policy': '"sms";q=1;w=3600',
      RateLimit: '"sms";r=0;t=3600',
      'Retry-After': '3600',
      'Cache-Control': 'no-store',
    })
    const response = (error as LimitedError).getResponse()
    expect([response.status, response.headers.get('content-type')]).toEqual([429, 'application/problem+json'])
    expect(await response.json()).toMatchObject({ status: 429, rule: 'sms', retryAfter: 3600 })
  })

  it('an error of a limit whose answer would be a success has the status 503, since handlers take no other for an error', async () => {
    const send = sendOnce(await limiterWith({ answer: { status: 200, body: 'please wait' } }), false)
    send()
    expect(send).toThrow(expect.objectContaining({ status: 503, statusCode: 503 }))
  })
})
