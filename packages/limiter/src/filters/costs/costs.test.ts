import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import { connect as connectHttp2 } from 'node:http2'
import { gzipSync } from 'node:zlib'
import { listen } from '@test/filters/listen'
import { servers } from '@test/filters/servers'
import express from 'express'
import { Hono } from 'hono'
import { afterEach, describe, expect, it } from 'vitest'
import { createLimiter } from '../../create/create-limiter.ts'
import { engineOf } from '../../engine/engine-of.ts'
import type { Limiter } from '../../limiter.ts'
import type { FilterService } from '../../testing/filters/service.ts'
import { diana as expressFilter } from '../express.ts'
import { diana as fetchFilter } from '../fetch.ts'
import { diana as honoFilter } from '../hono.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const tokens = {
  id: 'tokens',
  limit: '10000/m',
  cost: { reserve: { from: 'json:max_tokens', min: 10, max: 2000 }, settle: ['json:usage.total', 'header:x-used'] },
} as const

async function limiterFor(rules: readonly object[] = [tokens]): Promise<Limiter> {
  const limiter = await createLimiter({ rules: rules as never })
  closing.push(() => limiter.close())
  return limiter
}

const leftOf = async (limiter: Limiter) =>
  (await limiter.peek({ method: 'POST', path: '/echo' }, { cost: 0 })).decisions[0]!.remaining

const settledOf = (limiter: Limiter) => engineOf(limiter).stats().rules[0]!.settled

async function until(isTrue: () => boolean | Promise<boolean>): Promise<void> {
  for (const started = performance.now(); !(await isTrue()); ) {
    if (performance.now() - started > 4000) throw new Error('not in time')
    await new Promise(resolve => setTimeout(resolve, 5))
  }
}

interface Sent {
  readonly port: number
  readonly body: Buffer
  readonly isChunked?: boolean
}

async function echo({ port, body, isChunked = false }: Sent): Promise<{ status: number; body: Buffer }> {
  const headers = { 'content-type': 'application/json', ...(isChunked ? {} : { 'content-length': body.length }) }
  const request = httpRequest({ port, method: 'POST', path: '/echo', headers })
  for (let at = 0; at < body.length; at += 50_001) request.write(body.subarray(at, at + 50_001))
  request.end()
  const [response] = await once(request, 'response')
  return { status: response.statusCode, body: Buffer.concat(await response.toArray()) }
}

async function echoHttp2({ port, body }: Sent): Promise<{ status: number; body: Buffer }> {
  const session = connectHttp2(`http://127.0.0.1:${port}`)
  const stream = session.request({ ':method': 'POST', ':path': '/echo', 'content-type': 'application/json' })
  stream.end(body)
  const [headers] = await once(stream, 'response')
  const got = Buffer.concat(await stream.toArray())
  session.destroy()
  return { status: headers[':status'], body: got }
}

const service = { hello: () => 'hello' } as unknown as FilterService
const document = (max: number, total: number | undefined, bytes = 0) =>
  Buffer.from(JSON.stringify({ max_tokens: max, é: 'é'.repeat(bytes / 2), usage: { total } }))

describe.each(Object.entries(servers))('costs on %s', (name, server) => {
  const send = server.speaks === 'h2' ? echoHttp2 : echo

  it('costs are reserved by the request and settled by the answer, which pass unchanged', async () => {
    const limiter = await limiterFor([{ ...tokens, limit: '20000/m' }])
    const { port, close } = await server.start(limiter, service)
    closing.push(close)
    let left = 20_000
    const bodies = [
      document(500, 7),
      document(1, 3, 40_000),
      document(1, 30, 300_000),
      Buffer.from('{'),
      Buffer.from(''),
    ]
    const costs = [7, 3, 30, 2000, 2000]
    for (const [index, body] of bodies.entries()) {
      for (const isChunked of name.includes('http2') ? [false] : [false, true]) {
        const answer = await send({ port, body, isChunked })
        expect([answer.status, answer.body.equals(body)]).toEqual([200, true])
        left -= costs[index]!
        await until(async () => (await leftOf(limiter)) === left)
      }
    }
    const each = name.includes('http2') ? 1 : 2
    expect(settledOf(limiter)).toEqual({ usage: 3 * each, header: 0, estimate: 2 * each, none: 0, bounded: 0 })
  })

  it('a call that the estimate has no room for is refused, and its body does not block the connection', async () => {
    const limiter = await limiterFor([
      { ...tokens, limit: '100/m', cost: { ...tokens.cost, reserve: 'json:max_tokens' } },
    ])
    const { port, close } = await server.start(limiter, service)
    closing.push(close)
    expect((await send({ port, body: document(60, 60) })).status).toBe(200)
    await until(async () => (await leftOf(limiter)) === 40)
    for (let i = 0; i < 3; i++) expect((await send({ port, body: document(60, 60, 200_000) })).status).toBe(503)
    expect((await send({ port, body: document(40, 40) })).status).toBe(200)
  })
})

describe('endings', () => {
  async function start(serve: (app: express.Express) => void, rules?: readonly object[]) {
    const limiter = await limiterFor(rules)
    const app = express()
      .use(express.json({ limit: '10mb' }))
      .use(expressFilter(limiter))
    serve(app)
    const { createServer } = await import('node:http')
    const { port, close } = await listen(createServer(app))
    closing.push(close)
    return { limiter, port }
  }

  it.each<[string, number, keyof NonNullable<ReturnType<typeof settledOf>>, (response: express.Response) => void]>([
    ['a JSON answer', 25, 'usage', response => void response.json({ usage: { total: 25 } })],
    [
      'an event stream',
      25,
      'usage',
      response => {
        response.type('text/event-stream')
        response.write('data: {"usage":null}\r\n\r\nda')
        response.write('ta: {"usage":{"tot')
        response.end('al":25}}\n\ndata: [DONE]\n\n')
      },
    ],
    ['a header', 31, 'header', response => void response.set('x-used', '31').send('done')],
    [
      'a header given with the status',
      31,
      'header',
      response => void response.writeHead(200, { 'X-Used': '31' }).end('done'),
    ],
    [
      'an encoded answer',
      25,
      'usage',
      response => void response.set('content-encoding', 'gzip').end(gzipSync('{"usage":{"total":25}}')),
    ],
    [
      'an encoding that is not known',
      600,
      'estimate',
      response => void response.set('content-encoding', 'zstd').end('x'),
    ],
    ['no usage', 600, 'estimate', response => void response.send('done')],
    ['a negative usage', 600, 'estimate', response => void response.json({ usage: { total: -25 } })],
    ['a usage in text', 600, 'estimate', response => void response.json({ usage: { total: '25' } })],
    ['an error', 0, 'none', response => void response.status(500).send('failed')],
    ['an error with a usage', 25, 'usage', response => void response.status(429).json({ usage: { total: 25 } })],
    [
      'a stream that the application breaks off',
      600,
      'estimate',
      response => {
        response.write('data: {}\n\n')
        setImmediate(() => response.destroy())
      },
    ],
  ])('%s costs %i', async (_title, cost, by, answer) => {
    const { limiter, port } = await start(app => void app.post('/echo', (_request, response) => answer(response)))
    await echo({ port, body: document(600, undefined) }).catch(() => {})
    await until(() => settledOf(limiter) !== undefined)
    expect([await leftOf(limiter), settledOf(limiter)![by]]).toEqual([10_000 - cost, 1])
  })

  it('a usage above the maximum counts as that, and is reported', async () => {
    const cost = { ...tokens.cost, settle: { from: 'json:usage.total', max: 700 } }
    const { limiter, port } = await start(
      app => void app.post('/echo', (_request, response) => void response.json({ usage: { total: 1e15 } })),
      [{ ...tokens, cost }],
    )
    await echo({ port, body: document(600, undefined) })
    await until(() => settledOf(limiter) !== undefined)
    expect([await leftOf(limiter), settledOf(limiter)]).toEqual([
      9300,
      { usage: 1, header: 0, estimate: 0, none: 0, bounded: 1 },
    ])
  })

  it('a caller who leaves in the middle of a stream is charged what was seen, or else the estimate', async () => {
    const { limiter, port } = await start(app => {
      app.post('/echo', (request, response) => {
        response.type('text/event-stream').write(`data: ${JSON.stringify(request.body)}\n\n`)
      })
    })
    for (const [total, cost] of [
      [25, 25],
      [undefined, 600],
    ] as const) {
      const body = document(600, total)
      const headers = { 'content-type': 'application/json', 'content-length': body.length }
      const request = httpRequest({ port, method: 'POST', path: '/echo', headers })
      request.on('error', () => {}).end(body)
      const [response] = await once(request, 'response')
      await once(response, 'data')
      const left = await leftOf(limiter)
      request.destroy()
      await until(
        () =>
          settledOf(limiter) !== undefined &&
          settledOf(limiter)!.usage + settledOf(limiter)!.estimate === (total ? 1 : 2),
      )
      expect(await leftOf(limiter)).toBe(left + 600 - cost)
    }
  })

  it('rules of other units, and calls that match no such rule, are left alone', async () => {
    const calls = { id: 'calls', limit: '10/m' }
    const { limiter, port } = await start(
      app => void app.post('/echo', (request, response) => void response.json(request.body)),
      [{ ...tokens, match: { path: '/echo' } }, calls],
    )
    await echo({ port, body: document(600, 25) })
    await until(() => settledOf(limiter) !== undefined)
    const { decisions } = await limiter.peek({ method: 'POST', path: '/echo' }, { cost: 0 })
    expect(decisions.map(({ remaining }) => remaining)).toEqual([9975, 9])
  })

  it.each(['hono', 'fetch'])('on servers that speak fetch, bodies are read from copies (%s)', async kind => {
    const limiter = await limiterFor()
    const echo = async (request: Request): Promise<Response> =>
      new Response(await request.text(), { headers: { 'content-type': 'application/json' } })
    const app = new Hono()
    app.use(honoFilter(limiter, { peer: () => '192.0.2.1' }))
    app.post('/echo', context => echo(context.req.raw))
    const wrapped = fetchFilter(limiter, { peer: () => '192.0.2.1' }).wrap(echo)
    const ask = (init: RequestInit) =>
      kind === 'hono' ? app.request('/echo', init) : wrapped(new Request('http://localhost/echo', init))
    let left = 10_000
    for (const [body, cost] of [
      [document(500, 7), 7],
      [document(1, 30, 300_000), 30],
      [document(500, undefined), 500],
    ] as const) {
      const answer = await ask({ method: 'POST', body })
      expect(Buffer.from(await answer.arrayBuffer()).equals(body)).toBe(true)
      left -= cost
      expect(await leftOf(limiter)).toBe(left)
    }
  })
})
