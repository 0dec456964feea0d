import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, connect } from 'node:net'
import { createLimiter, type Limiter, type LimiterOptions } from 'diana-limiter'
import type { FastifyInstance, FastifyPluginCallback } from 'fastify'
import { afterEach, describe, expect, test } from 'vitest'
import { createDemoService, demoRules } from '../../packages/gateway/src/cli/demo/demo.ts'
import { createGateway, type GatewayOptions } from '../../packages/gateway/src/gateway.ts'

const closing: (() => Promise<unknown>)[] = []

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** Sends bytes as they are: every client mends a target before it sends it. */
async function send(gateway: FastifyInstance, text: string): Promise<Answer> {
  const socket = connect((gateway.server.address() as AddressInfo).port, '127.0.0.1')
  socket.setEncoding('latin1').write(text)
  let answer = ''
  for await (const piece of socket) answer += piece
  const [head = '', ...rest] = answer.split('\r\n\r\n')
  const [statusLine = '', ...lines] = head.split('\r\n')
  const headers = lines.map(line => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 2)])
  return { status: Number(statusLine.split(' ')[1]), headers: Object.fromEntries(headers), body: rest.join('\r\n\r\n') }
}

function get(gateway: FastifyInstance, target: string, headers: Record<string, string> = {}): Promise<Answer> {
  const lines = Object.entries({ Host: 'diana.test', Connection: 'close', ...headers }).map(pair => pair.join(': '))
  return send(gateway, `GET ${target} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`)
}

async function guard(
  upstream: string,
  options: LimiterOptions,
  more: Partial<GatewayOptions> = {},
): Promise<FastifyInstance> {
  const limiter: Limiter = await createLimiter({ clock: () => 1_700_000_000_000, ...options })
  const gateway = await createGateway({ limiter, upstream, ...more })
  closing.push(
    () => limiter.close(),
    () => gateway.close(),
  )
  await gateway.listen({ port: 0, host: '127.0.0.1' })
  return gateway
}

async function guardDemo(): Promise<FastifyInstance> {
  const service = createDemoService()
  closing.push(() => service.close())
  return guard(await service.listen({ port: 0, host: '127.0.0.1' }), { config: demoRules })
}

interface Service {
  readonly url: string
  readonly server: Server
  readonly received: IncomingMessage[]
}

/** A service that remembers what reached it. */
async function serve(answer: RequestListener = (_request, response) => response.end('served')): Promise<Service> {
  const received: IncomingMessage[] = []
  const server = createServer((request, response) => {
    received.push(request)
    answer(request, response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closing.push(async () => server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server, received }
}

const noRules: LimiterOptions = { rules: [] }

describe('the demo', () => {
  test('the demo turns from 200 to 503 for one account, and lets others pass', async () => {
    const gateway = await guardDemo()
    const answers: Answer[] = []
    for (let call = 0; call < 6; call++) answers.push(await get(gateway, '/hello', { 'x-account-id': 'ann' }))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 503])

    const first = answers[0]!
    expect(first.headers['ratelimit-policy']).toBe(
      '"whole-system";q=1000;w=1, "per-account";q=200;w=20, "per-device";q=50;w=1, "hello";q=5;w=10',
    )
    expect(first.headers.ratelimit).toBe(
      '"whole-system";r=999;t=1, "per-account";r=199;t=1, "per-device";r=49;t=1, "hello";r=4;t=10',
    )
    expect(JSON.parse(first.body)).toMatchObject({ call: 'GET /hello', caller: { account: 'ann' } })

    const last = answers[5]!
    expect(last.headers).toMatchObject({
      'ratelimit-policy': first.headers['ratelimit-policy'],
      'retry-after': '10',
      'cache-control': 'no-store',
      'content-type': 'application/problem+json',
    })
    expect(last.headers.ratelimit).toContain('"hello";r=0;t=10')
    expect(JSON.parse(last.body)).toMatchObject({ status: 503, rule: 'hello', retryAfter: 10 })

    expect((await get(gateway, '/hello', { 'x-account-id': 'bob' })).status).toBe(200)
    expect((await get(gateway, '/orders', { 'x-account-id': 'ann' })).status).toBe(200)
  })

  test('the demo serves each of its paths', async () => {
    const gateway = await guardDemo()
    const statuses = async (...targets: string[]): Promise<number[]> => {
      return Promise.all(targets.map(async target => (await get(gateway, target)).status))
    }
    expect(await statuses('/', '/hello', '/orders', '/orders/1', '/orders/9')).toEqual([200, 200, 200, 200, 404])
    const post = `POST /sms HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`
    expect([(await send(gateway, post)).status, (await send(gateway, post)).status]).toEqual([202, 503])
  })

  test.each([
    '//hello',
    '/%68ello',
    '/hell%6f',
    '/x/../hello',
    '/./hello',
    '/%2e/hello',
    '/x/%2e%2E/hello',
    '/\\hello',
    '/hello/',
    '/hello;x=1',
    '/hello?x=1',
    '/hello#x',
    'http://elsewhere.test/hello',
    'HTTP://elsewhere.test//hello?x',
  ])('the limit of the demo is not bypassed by %s', async target => {
    const gateway = await guardDemo()
    for (let call = 0; call < 5; call++) expect((await get(gateway, '/hello')).status).toBe(200)
    const { status, body } = await get(gateway, target)
    expect([status, JSON.parse(body).rule]).toEqual([503, 'hello'])
  })
})

describe('a forwarded call', () => {
  test.each([
    ['/a//b/../c?q=%41&r=a//b', '/a/c?q=%41&r=a//b'],
    ['http://elsewhere.test/a?', '/a'],
    ['/%e4%bd%a0', '/%E4%BD%A0'],
    ['/a"b{c}^|', '/a%22b%7Bc%7D%5E|'],
  ])('the forwarded target is the counted one: %s', async (target, forwarded) => {
    const { url, received } = await serve()
    const gateway = await guard(url, { rules: [{ id: 'each', by: 'resource', limit: '1/m' }] })
    expect((await get(gateway, target)).status).toBe(200)
    expect((await get(gateway, forwarded)).status).toBe(503)
    expect(received.map(request => request.url)).toEqual([forwarded])
  })

  test.each(['/%zz', '/%00', '/a%0d%0ab', '/..;/hello', '/%ff', 'ftp://a/b'])(
    'the gateway never forwards %s',
    async target => {
      const { url, received } = await serve()
      const { status, headers, body } = await get(await guard(url, noRules), target)
      expect([status, headers['content-type']]).toEqual([400, 'application/problem+json'])
      expect(JSON.parse(body)).toMatchObject({ type: 'about:blank', title: 'Bad Request', status: 400 })
      expect(received).toEqual([])
    },
  )

  test('a forwarded path is appended to the path of the upstream', async () => {
    const { url, received } = await serve()
    const gateway = await guard(`${url}/base/`, noRules)
    expect((await get(gateway, '/a?b')).status).toBe(200)
    expect(received[0]?.url).toBe('/base/a?b')
  })

  test('a long path and a large body are forwarded unchanged', async () => {
    const { url } = await serve((request, response) => request.pipe(response))
    const gateway = await guard(url, noRules)
    const body = Buffer.alloc(5_000_000, 'diana')
    const target = `http://127.0.0.1:${(gateway.server.address() as AddressInfo).port}/${'a'.repeat(5000)}`
    const answer = await fetch(target, { method: 'POST', body, headers: { 'content-type': 'text/x-odd' } })
    expect(answer.status).toBe(200)
    expect(Buffer.from(await answer.arrayBuffer()).equals(body)).toBe(true)
  })

  test('any method except CONNECT and TRACE is forwarded', async () => {
    const { url, received } = await serve()
    const gateway = await guard(url, { rules: [{ id: 'all', limit: '9/m' }] })
    const call = (method: string): Promise<Answer> => {
      return send(gateway, `${method} /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`)
    }
    for (const method of ['OPTIONS', 'PROPFIND', 'PURGE']) expect((await call(method)).status).toBe(200)
    expect(received.map(request => request.method)).toEqual(['OPTIONS', 'PROPFIND', 'PURGE'])
    const { status, headers } = await call('TRACE')
    expect([status, headers['content-type'], received.length]).toEqual([405, 'application/problem+json', 3])
    expect(headers.ratelimit).toContain('r=5')
  })

  test('a forwarded call has headers about the caller, and none about the connection', async () => {
    const { url, received } = await serve()
    await get(await guard(url, noRules), '/a', {
      'X-Forwarded-For': '203.0.113.1',
      'X-Forwarded-Host': 'spoofed.test',
      'X-Forwarded-Proto': 'https',
      Connection: 'close, x-secret',
      'X-Secret': '1',
      'Keep-Alive': 'timeout=5',
      Upgrade: 'websocket',
      TE: 'trailers',
      Expect: '100-continue',
      'X-Mine': 'yes',
    })
    const headers = received[0]!.headers
    expect(headers).toMatchObject({
      'x-forwarded-for': '203.0.113.1, 127.0.0.1',
      'x-forwarded-host': 'diana.test',
      'x-forwarded-proto': 'http',
      'x-mine': 'yes',
    })
    for (const name of ['x-secret', 'upgrade', 'te', 'expect']) expect(headers).not.toHaveProperty(name)
  })

  test('a forwarded call keeps the headers of a trusted proxy', async () => {
    const { url, received } = await serve()
    const headers = { 'X-Forwarded-For': '203.0.113.1', 'X-Forwarded-Host': 'real.test', 'X-Forwarded-Proto': 'https' }
    await get(await guard(url, { rules: [], trustProxy: 1 }), '/a', headers)
    expect(received[0]!.headers).toMatchObject({
      'x-forwarded-for': '203.0.113.1, 127.0.0.1',
      'x-forwarded-host': 'real.test',
      'x-forwarded-proto': 'https',
    })
  })
})

describe('the port that a caller has called', () => {
  test.each([
    ['diana.test', {}, 0, '80'],
    ['diana.test:8443', {}, 0, '8443'],
    ['[2001:db8::1]', {}, 0, '80'],
    ['[2001:db8::1]:81', {}, 0, '81'],
    ['diana.test:81', { 'X-Forwarded-Port': '444' }, 0, '81'],
    ['diana.test:81', { 'X-Forwarded-Port': '444', 'X-Forwarded-For': '203.0.113.1' }, 1, '444'],
    ['diana.test:81', { 'X-Forwarded-Proto': 'https', 'X-Forwarded-For': '203.0.113.1' }, 1, undefined],
  ])('the service learns the port of %s with %o and %i trusted proxies', async (host, headers, trustProxy, port) => {
    const { url, received } = await serve()
    await get(await guard(url, { rules: [], trustProxy }), '/a', { Host: host, ...headers })
    expect(received[0]!.headers['x-forwarded-port']).toBe(port)
  })
})

describe('the answer of a service', () => {
  test('the answer keeps the rate limit headers of the service beside those of Diana', async () => {
    const { url } = await serve((_request, response) => {
      response.setHeader('RateLimit', '"own";r=1').setHeader('RateLimit-Policy', '"own";q=2')
      response.setHeader('Connection', 'close').setHeader('Set-Cookie', ['a=1', 'b=2']).end()
    })
    const gateway = await guard(url, { rules: [{ id: 'all', limit: '2/m' }] })
    const answer = await fetch(`http://127.0.0.1:${(gateway.server.address() as AddressInfo).port}/`)
    expect(answer.headers.get('ratelimit')).toBe('"all";r=1;t=60, "own";r=1')
    expect(answer.headers.get('ratelimit-policy')).toBe('"all";q=2;w=60, "own";q=2')
    expect(answer.headers.getSetCookie()).toEqual(['a=1', 'b=2'])
    expect(answer.headers.get('connection')).toBe('keep-alive')
  })

  test('a 503 of the service is passed on unchanged, and the call is not sent again', async () => {
    const { url, received } = await serve((_request, response) => {
      response.writeHead(503, { 'Retry-After': '0', 'Content-Length': 4 }).end('busy')
    })
    const { status, body } = await get(await guard(url, noRules), '/a')
    expect([status, body, received.length]).toEqual([503, 'busy', 1])
  })

  test.each(['GET', 'POST'])('%s gets a 502 without details when the service is down', async method => {
    // nothing listens there; the port of a server that was closed may be given to a server of another test
    const gateway = await guard('http://127.0.0.1:1', { rules: [{ id: 'all', limit: '9/m' }] })
    const call = `${method} /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`
    const { status, headers, body } = await send(gateway, call)
    expect(status).toBe(502)
    expect(headers).toMatchObject({ 'content-type': 'application/problem+json', 'cache-control': 'no-store' })
    expect(headers.ratelimit).toContain('r=8')
    expect(JSON.parse(body)).toEqual({
      type: 'about:blank',
      title: 'Bad Gateway',
      status: 502,
      detail: 'The service cannot be reached.',
      requestId: headers['x-request-id'],
    })
  })

  test('a caller gets a 502 when the service closes the connection', async () => {
    const { url } = await serve(request => request.socket.destroy())
    expect((await get(await guard(url, noRules), '/a')).status).toBe(502)
  })

  test('a caller gets a 502 when the certificate of the service is not trusted', async () => {
    const server = createTlsServer(selfSigned, (_request, response) => response.end('served'))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    closing.push(async () => server.close())
    const gateway = await guard(`https://127.0.0.1:${(server.address() as AddressInfo).port}`, noRules)
    expect((await get(gateway, '/a')).status).toBe(502)
  })
})

describe('the gateway', () => {
  test('the gateway runs other filters after the limits, and only for admitted calls', async () => {
    const { url, received } = await serve()
    const asked: string[] = []
    const filter: FastifyPluginCallback = (app, _options, done) => {
      app.addHook('onRequest', (request, reply, next) => {
        asked.push(request.url)
        if (request.headers['x-permit'] === 'yes') next()
        else reply.code(403).send('no')
      })
      done()
    }
    const filters = [Object.assign(filter, { [Symbol.for('skip-override')]: true })]
    const gateway = await guard(url, { rules: [{ id: 'all', limit: '2/m' }] }, { filters })
    expect((await get(gateway, '/a')).status).toBe(403)
    expect((await get(gateway, '/b', { 'x-permit': 'yes' })).status).toBe(200)
    expect((await get(gateway, '/c', { 'x-permit': 'yes' })).status).toBe(503)
    expect([asked, received.length]).toEqual([['/a', '/b'], 1])
  })

  test('the gateway finishes the calls under way when it is closed', async () => {
    let finish = (): void => {}
    const { url, received } = await serve((_request, response) => {
      finish = () => response.end('finished')
    })
    const gateway = await guard(url, noRules)
    const answer = get(gateway, '/a')
    await expect.poll(() => received.length).toBe(1)
    const closed = gateway.close()
    finish()
    expect(await answer).toMatchObject({ status: 200, body: 'finished' })
    await closed
  })
})

const selfSigned = {
  key: `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgaRTRmXoQ1Izdwtso
KKJakFUkHLSdnWDBpHlnc9jvblChRANCAAQ1JNVKXK51TEWWvqYXLRruxawEascs
j0GaRbVNkjckOtKAk7u5cfxg+tqSqSfWELDbdgZQvvO32+oiR9DsFzj2
-----END PRIVATE KEY-----`,
  cert: `-----BEGIN CERTIFICATE-----
MIIBkTCCATagAwIBAgIUdOBNyZAabOeNf8ws2AIHyIlItw8wCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTExNTIwNDYwN1oYDzIxMjYxMDIy
MjA0NjA3WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAAQ1JNVKXK51TEWWvqYXLRruxawEascsj0GaRbVNkjckOtKAk7u5cfxg
+tqSqSfWELDbdgZQvvO32+oiR9DsFzj2o2QwYjAdBgNVHQ4EFgQUlkJ2SVXLq40W
AVHOGlCzJyfrMEkwHwYDVR0jBBgwFoAUlkJ2SVXLq40WAVHOGlCzJyfrMEkwDwYD
VR0TAQH/BAUwAwEB/zAPBgNVHREECDAGhwR/AAABMAoGCCqGSM49BAMCA0kAMEYC
IQDh1CahqkzVTk3NwOfwGcAA3TwTYDYcc3OC2uLpGWotDAIhAJZ2+90elkdr9ubu
WtGxkytw3sOffozcZMWOqRDO/Sde
-----END CERTIFICATE-----`,
}
