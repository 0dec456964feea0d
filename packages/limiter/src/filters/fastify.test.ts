import { once } from 'node:events'
import { type AddressInfo, connect, type Socket } from 'node:net'
import fastify, { type FastifyInstance, type FastifyRequest } from 'fastify'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { createLimiter, type LimiterOptions } from '../create/create-limiter.ts'
import type { Limiter } from '../limiter.ts'
import { diana, type FilterOptions } from './fastify.ts'

let app: FastifyInstance
let limiter: Limiter
const served: string[] = []
const logged: string[] = []
const sockets: Socket[] = []

beforeEach(() => {
  served.length = 0
  logged.length = 0
})

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy()
  await app.close()
  await limiter.close()
})

async function mount(options: LimiterOptions, filterOptions?: FilterOptions<FastifyRequest>): Promise<void> {
  limiter = await createLimiter({ clock: () => 1_700_000_000_000, ...options })
  app = fastify({ logger: { level: 'error', stream: { write: line => void logged.push(line) } } })
  app.register(diana(limiter, filterOptions))
  for (const route of ['/hello', '/other', '/orders/:id', '/files/*']) {
    app.get(route, async ({ url }) => {
      served.push(url)
      return 'served'
    })
  }
}

async function statuses(...urls: string[]): Promise<number[]> {
  const list: number[] = []
  for (const url of urls) list.push((await app.inject(url)).statusCode)
  return list
}

describe('a call', () => {
  test('a call that passes is served, and carries the headers', async () => {
    await mount({ rules: [{ id: 'all', limit: '2/10s', algorithm: 'fixed-window' }] })
    const { statusCode, headers, body } = await app.inject('/hello')
    expect([statusCode, body]).toEqual([200, 'served'])
    expect(headers).toMatchObject({ 'ratelimit-policy': '"all";q=2;w=10', ratelimit: '"all";r=1;t=10' })
    expect(headers).not.toHaveProperty('retry-after')
  })

  test('a call that is refused is answered and not served', async () => {
    await mount({ rules: [{ id: 'all', limit: '1/10s', algorithm: 'fixed-window', answer: { status: 429 } }] })
    await app.inject('/hello')
    const { statusCode, headers, body } = await app.inject('/hello')
    expect(statusCode).toBe(429)
    expect(headers).toMatchObject({
      'ratelimit-policy': '"all";q=1;w=10',
      ratelimit: '"all";r=0;t=10',
      'retry-after': '10',
      'cache-control': 'no-store',
      'content-type': 'application/problem+json',
    })
    expect(JSON.parse(body)).toMatchObject({ status: 429, rule: 'all', retryAfter: 10 })
    expect(served).toEqual(['/hello'])
  })

  test('a call that is refused to HEAD has no body', async () => {
    await mount({ rules: [{ id: 'all', limit: '1/10s' }] })
    await app.inject('/hello')
    const { statusCode, body } = await app.inject({ method: 'HEAD', url: '/hello' })
    expect([statusCode, body]).toEqual([503, ''])
  })

  test('a call that no rule matches passes without headers', async () => {
    await mount({ rules: [{ id: 'one', match: { path: '/other' }, limit: '1/s' }] })
    const { statusCode, headers } = await app.inject('/hello')
    expect(statusCode).toBe(200)
    expect(headers).not.toHaveProperty('ratelimit')
  })

  test('a call to an unknown route is decided too', async () => {
    await mount({ rules: [{ id: 'all', limit: '1/s' }] })
    expect(await statuses('/nowhere', '/nowhere')).toEqual([404, 503])
  })

  test('a call is distinguished by header, query, cookie, host and method', async () => {
    const by = ['header:x-key', 'query:k', 'cookie:k', 'host', 'method']
    await mount({ rules: by.map(name => ({ id: name.replace(':', '-'), by: name, limit: '1/s' })) })
    const url = '/hello'
    const headers = { 'x-key': '1', cookie: 'k=1', host: 'a' }
    const call = async (changed: object): Promise<number> => {
      return (await app.inject({ method: 'GET', url: `${url}?k=1`, headers, ...changed })).statusCode
    }
    expect(await call({})).toBe(200)
    expect(await call({})).toBe(503)
    const elsewhere = { method: 'HEAD', url: `${url}?k=2`, headers: { 'x-key': '2', cookie: 'k=2', host: 'b' } }
    // HEAD is counted as GET, so the method alone refuses
    const { statusCode, headers: told } = await app.inject(elsewhere as object)
    expect(statusCode).toBe(503)
    expect(told.ratelimit).toBe(
      '"header-x-key";r=1;t=0, "query-k";r=1;t=0, "cookie-k";r=1;t=0, "host";r=1;t=0, "method";r=0;t=1',
    )
  })
})

describe('the address of a caller', () => {
  const rules = [{ id: 'each', by: 'ip', limit: '1/s' }]
  const from = async (forwarded: string): Promise<number> => {
    return (await app.inject({ url: '/hello', headers: { 'x-forwarded-for': forwarded } })).statusCode
  }

  test('the address of a caller is not taken from untrusted headers', async () => {
    await mount({ rules })
    expect([await from('203.0.113.1'), await from('203.0.113.2')]).toEqual([200, 503])
  })

  test('the address of a caller is taken from a trusted proxy', async () => {
    await mount({ rules, trustProxy: 1 })
    const list = [await from('9.9.9.9, 203.0.113.1'), await from('203.0.113.2'), await from('8.8.8.8, 203.0.113.1')]
    expect(list).toEqual([200, 200, 503])
  })
})

describe('a path in Fastify', () => {
  test('a path in Fastify is the same however it is spelled', async () => {
    await mount({ rules: [{ id: 'hello', match: { path: '/hello' }, limit: '1/s' }] })
    expect(await statuses('/hello', '/%68ello', '/hell%6F?x=1', 'http://elsewhere/hello')).toEqual([200, 503, 503, 503])
  })

  test('paths that the router of Fastify treats alike are one route', async () => {
    await mount({ rules: [{ id: 'hello', match: { path: '/hello' }, limit: '1/s' }] })
    await app.close()
    app = fastify({ routerOptions: { caseSensitive: false, ignoreTrailingSlash: true, ignoreDuplicateSlashes: true } })
    app.register(diana(limiter)).get('/hello', async () => 'served')
    expect(await statuses('/hello', '/HELLO', '/hello/', '//hello')).toEqual([200, 503, 503, 503])
  })

  test('a path in Fastify that cannot be normalized counts as its route', async () => {
    await mount({ rules: [{ id: 'orders', match: { path: '/orders/*' }, limit: '1/s' }] })
    expect(await statuses('/orders/1', '/ord%65rs/..;x')).toEqual([200, 503])
  })

  test('paths in Fastify that differ by a parameter count as one route', async () => {
    await mount({ rules: [{ id: 'each', by: 'resource', limit: '1/s' }] })
    expect(await statuses('/orders/1', '/orders/2', '/hello', '/other')).toEqual([200, 503, 200, 200])
  })

  test('a path in Fastify under a wildcard or without a route is counted separately', async () => {
    await mount({ rules: [{ id: 'each', by: 'resource', limit: '1/s' }] })
    expect(await statuses('/files/a', '/files/b', '/files/%61', '/no', '/where', '/no/')).toEqual([
      200, 200, 503, 404, 404, 503,
    ])
  })

  test('each path in Fastify is counted separately with resource: path', async () => {
    await mount({ rules: [{ id: 'each', by: 'resource', limit: '1/s' }] }, { resource: 'path' })
    expect(await statuses('/orders/1', '/orders/2', '/orders/1')).toEqual([200, 200, 503])
  })
})

describe('the filter', () => {
  test('a request passes the filter of Fastify once, even if it is also mounted on a plugin', async () => {
    await mount({ rules: [{ id: 'all', limit: '3/s' }] })
    app.register(diana(limiter))
    app.register(async part => {
      part.register(diana(limiter))
      part.get('/part', async () => 'served')
    })
    expect((await app.inject('/part')).headers.ratelimit).toContain('r=2')
    expect((await app.inject('/hello')).headers.ratelimit).toContain('r=1')
  })

  test('a failing filter lets calls pass and logs the error', async () => {
    await mount({ rules: [{ id: 'all', limit: '1/s' }] })
    await limiter.close()
    expect(await statuses('/hello', '/hello')).toEqual([200, 200])
    expect(logged).toHaveLength(2)
    expect(JSON.parse(logged[0]!)).toMatchObject({
      msg: 'Diana failed to decide a call, so it passed without being counted, unless whenFailed is refuse',
      err: { code: 'CLOSED' },
    })
  })

  test('a filter that fails while a call waits lets the call pass', async () => {
    await mount({ rules: [{ id: 'all', limit: '1/s' }] })
    vi.spyOn(limiter, 'decide').mockReturnValue(Promise.reject(new Error('lost')))
    expect(await statuses('/hello')).toEqual([200])
    expect(JSON.parse(logged[0]!)).toMatchObject({ err: { message: 'lost' } })
  })
})

describe('on a real connection', () => {
  let finish: ((answer: string | Error) => void)[]
  let port: number

  beforeEach(() => {
    finish = []
  })

  async function listen(rule: object): Promise<void> {
    const places = { id: 'places', match: { path: '/slow' }, algorithm: 'concurrency', limit: 1, ...rule } as const
    await mount({ rules: [places], clock: () => performance.now() })
    app.get('/slow', async () => {
      const answer = await new Promise<string | Error>(resolve => finish.push(resolve))
      if (answer instanceof Error) throw answer
      return answer
    })
    await app.listen({ port: 0, host: '127.0.0.1' })
    port = (app.server.address() as AddressInfo).port
  }

  function send(path: string): Socket {
    const socket = connect(port, '127.0.0.1')
    sockets.push(socket.setEncoding('utf8'))
    socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`)
    return socket
  }

  async function statusOf(socket: Socket): Promise<string> {
    const [text] = await once(socket, 'data')
    return String(text).split(' ')[1]!
  }

  const free = async (): Promise<number> =>
    (await limiter.peek({ method: 'GET', path: '/slow' })).decisions[0]!.remaining
  const waiting = (): number => limiter.status().rules[0]!.waiting

  test('a call releases its slot when it is answered', async () => {
    await listen({})
    const first = send('/slow')
    await vi.waitFor(() => expect(finish).toHaveLength(1))
    expect(await statusOf(send('/slow'))).toBe('503')
    finish[0]!('done')
    expect(await statusOf(first)).toBe('200')
    await vi.waitFor(async () => expect(await free()).toBe(1))
  })

  test('a call releases its slot when the service fails', async () => {
    await listen({})
    const first = send('/slow')
    await vi.waitFor(() => expect(finish).toHaveLength(1))
    expect(await free()).toBe(0)
    finish[0]!(new Error('broken'))
    expect(await statusOf(first)).toBe('500')
    await vi.waitFor(async () => expect(await free()).toBe(1))
  })

  test('a call releases its slot once when the caller disconnects', async () => {
    await listen({ limit: 2 })
    const first = send('/slow')
    send('/slow')
    await vi.waitFor(() => expect(finish).toHaveLength(2))
    expect(await free()).toBe(0)
    first.destroy()
    await vi.waitFor(async () => expect(await free()).toBe(1))
    finish[0]!('too late')
    const third = send('/slow')
    await vi.waitFor(() => expect(finish).toHaveLength(3))
    expect(await free()).toBe(0)
    finish[2]!('done')
    expect(await statusOf(third)).toBe('200')
    await vi.waitFor(async () => expect(await free()).toBe(1))
  })

  test('a caller that disconnected before the decision holds no slot', async () => {
    await listen({})
    await app.close()
    const entered: (() => void)[] = []
    const judged = vi.spyOn(limiter, 'decide')
    app = fastify()
    app.addHook('onRequest', () => new Promise<void>(resolve => entered.push(resolve)))
    app.register(diana(limiter)).get('/slow', async () => 'done')
    await app.listen({ port, host: '127.0.0.1' })
    const first = send('/slow')
    await vi.waitFor(() => expect(entered).toHaveLength(1))
    first.destroy()
    await vi.waitFor(async () => expect(await connections(app)).toBe(0))
    entered[0]!()
    await vi.waitFor(() => expect(judged).toHaveBeenCalledOnce())
    expect(await free()).toBe(1)
  })

  test('a call that waits is served when its turn comes', async () => {
    await listen({ whenFull: 'wait', queue: { size: 5, timeout: '20s' } })
    const first = send('/slow')
    await vi.waitFor(() => expect(finish).toHaveLength(1))
    const second = send('/slow')
    await vi.waitFor(() => expect(waiting()).toBe(1))
    finish[0]!('first')
    await vi.waitFor(() => expect([finish.length, waiting()]).toEqual([2, 0]))
    finish[1]!('second')
    expect([await statusOf(first), await statusOf(second)]).toEqual(['200', '200'])
    await vi.waitFor(async () => expect(await free()).toBe(1))
  })

  test('a call stops waiting when the caller disconnects', async () => {
    await listen({ whenFull: 'wait', queue: { size: 5, timeout: '20s' } })
    const first = send('/slow')
    await vi.waitFor(() => expect(finish).toHaveLength(1))
    const second = send('/slow')
    await vi.waitFor(() => expect(waiting()).toBe(1))
    second.destroy()
    await vi.waitFor(() => expect(waiting()).toBe(0))
    finish[0]!('first')
    expect(await statusOf(first)).toBe('200')
    await vi.waitFor(async () => expect(await free()).toBe(1))
    expect([finish.length, logged]).toEqual([1, []])
  })
})

function connections(app: FastifyInstance): Promise<number> {
  return new Promise((resolve, reject) => {
    app.server.getConnections((error, count) => (error ? reject(error) : resolve(count)))
  })
}
