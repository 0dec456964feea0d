import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { connect } from 'node:net'
import { join } from 'node:path'
import { credentials } from '@grpc/grpc-js'
import { randomRuns } from '@test/random-runs'
import { Ajv2020 } from 'ajv/dist/2020.js'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { serveProgram } from '../../packages/gateway/src/process/serve-program.ts'
import type { ServerProcess } from '../../packages/gateway/src/process/server-program.ts'
import { GatewayRig } from '../helpers/gateway-rig.ts'
import { Authority } from '../helpers/tls/authority.ts'
import { envoyClient } from './envoy-client.ts'

const rig = new GatewayRig()
const rules = [
  { id: 'orders', match: { path: '/orders/**' }, by: ['ip', 'resource'], limit: '2/h' },
  { id: 'plan', match: { attribute: { plan: '*' } }, by: 'attribute:plan', limit: '3/h' },
]
let server: ServerProcess

async function start(document: object): Promise<ServerProcess> {
  const config = join(rig.folder(), 'diana.yaml')
  writeFileSync(config, stringify({ answer: { status: 429 }, rules, ...document }))
  const started = await serveProgram.start({ config, port: 0, grpcPort: 0 })
  rig.later(() => started.close())
  return started
}

beforeAll(async () => {
  server = await start({ serve: { spoe: { port: 0 } } })
})
afterAll(() => rig.close())

const ask = (headers: Record<string, string>, path = '/check') => fetch(`${server.address}${path}`, { headers })
const forwarded = (target: string, ip: string) => ({
  ...{ 'x-forwarded-method': 'GET', 'x-forwarded-uri': target, 'x-forwarded-for': ip },
})
const post = async (body: unknown, path = '/v1/check') => {
  const options = { method: 'POST', body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }
  const answer = await fetch(`${server.address}${path}`, options)
  return { status: answer.status, body: (await answer.json()) as Record<string, never> }
}

describe('questions of proxies over HTTP', () => {
  it('every spelling of a path is counted as the same path', async () => {
    const spellings = ['/orders/a', '/Orders/./a', '//orders//a', '/orders/%61', '/x/../orders/a', '/orders/a?b=c']
    const statuses: number[] = []
    for (const target of spellings) statuses.push((await ask(forwarded(target, '203.0.113.1'))).status)
    expect(statuses).toEqual([200, 200, 429, 429, 429, 429])
  })

  it('a proxy is believed by the headers of its own dialect only', async () => {
    const lies = { 'x-original-uri': '/free', 'x-original-method': 'GET' }
    for (let call = 0; call < 2; call++) await ask({ ...forwarded('/orders/b', '203.0.113.2'), ...lies })
    expect((await ask({ ...forwarded('/orders/b', '203.0.113.2'), ...lies })).status).toBe(429)
    expect((await ask({ 'x-original-uri': '/orders/b' })).status).toBe(400)
    expect((await ask({ 'x-forwarded-uri': '/orders/b' }, '/check/nginx')).status).toBe(400)
    expect(
      (await ask({ 'x-forwarded-for': '203.0.113.2', 'x-forwarded-uri': '/free' }, '/envoy/orders/b')).status,
    ).toBe(429)
  })

  it('a target that cannot be read is refused in the statuses that the proxy understands', async () => {
    expect((await ask(forwarded('/a%zz', '203.0.113.3'))).status).toBe(400)
    const nginx = await ask({ 'x-original-method': 'GET', 'x-original-uri': '/a%zz' }, '/check/nginx')
    expect([nginx.status, nginx.headers.get('diana-status')]).toEqual([403, '400'])
  })

  const unreadable: readonly (readonly [status: number, lines: readonly string[]])[] = [
    ...['\x01', 'a\x00b', '\x7f', 'a\x1b'].map(value => [400, [`X-Odd: ${value}`]] as const),
    ...['X Odd: a', ': a', 'X-Odd', 'X\x01: a', 'X(: a'].map(line => [400, [line]] as const),
    ...['-1', '+1', '1, 2', 'x', '0x1', '99999999999999999999'].map(of => [400, [`Content-Length: ${of}`]] as const),
    [400, ['Content-Length: 1', 'Content-Length: 2']],
    [400, ['Content-Length: 1', 'Transfer-Encoding: chunked']],
    [431, [`X-Odd: ${'a'.repeat(140_000)}`]],
    [431, Array.from({ length: 20 }, (_, at) => `X-Odd-${at}: ${'a'.repeat(7000)}`)],
    [431, Array.from({ length: 40_000 }, (_, at) => `X-${at}: a`)],
  ]
  const dialectLines: Readonly<Record<string, readonly string[]>> = {
    '/check': ['X-Forwarded-Method: GET', 'X-Forwarded-Uri: /orders/raw'],
    '/check/nginx': ['X-Original-Method: GET', 'X-Original-URI: /orders/raw'],
    '/envoy/orders/raw': [],
  }
  const askRaw = async (path: string, lines: readonly string[], first = `GET ${path} HTTP/1.1`) => {
    const { hostname, port } = new URL(server.address)
    const socket = connect(Number(port), hostname)
    socket.on('error', () => {})
    let text = ''
    socket.on('data', chunk => {
      text += chunk
    })
    socket.write(
      Buffer.from(`${[first, ...dialectLines[path]!, ...lines].join('\r\n')}\r\nConnection: close\r\n\r\n`, 'latin1'),
    )
    await once(socket, 'close')
    return {
      status: Number(/^HTTP\/1.1 (\d+)/.exec(text)?.[1]),
      meant: Number(/^diana-status: (\d+)/im.exec(text)?.[1]),
      text,
    }
  }

  it.each(Object.keys(dialectLines))('every question to %s that the parser refuses gets an answer', async path => {
    for (const [status, lines] of unreadable) {
      const answer = await askRaw(path, ['Host: a', ...lines])
      const expected = path === '/check/nginx' ? [403, status] : [status, Number.NaN]
      // a question that comes in several pieces has lost its first line when a later piece is refused
      if (status === 431 && path === '/check/nginx')
        expect([
          [403, 431],
          [431, Number.NaN],
        ]).toContainEqual([answer.status, answer.meant])
      else expect([lines[0]!.slice(0, 30), answer.status, answer.meant]).toEqual([lines[0]!.slice(0, 30), ...expected])
    }
    expect((await askRaw(path, ['Host: a'], `BREW ${path} HTTP/1.1`)).status).toBe(path === '/check/nginx' ? 403 : 400)
    // as many headers as the proxies let through, odd bytes, and no Host at all are fine
    const fine = [
      [],
      [`X-Odd: ${'a'.repeat(100_000)}`],
      ['X-Odd: \xe9\xff'],
      Array.from({ length: 3000 }, (_, at) => `X-${at}: a`),
    ]
    for (const [index, lines] of fine.entries()) {
      expect((await askRaw(path, [`X-Forwarded-For: 203.0.${path.length}.${index}`, ...lines])).status).toBe(200)
    }
  })

  it.each(Object.keys(dialectLines))(
    'a refusal of %s is never a success to the proxy, whatever the caller speaks',
    async path => {
      const types = [
        'application/grpc',
        'application/grpc+proto',
        'application/grpc-web',
        'application/grpc-web-text',
        'Application/GRPC;a=b',
      ]
      for (const [index, type] of types.entries()) {
        const lines = [
          'Host: a',
          `Content-Type: ${type}`,
          'TE: trailers',
          `X-Forwarded-For: 203.1.${path.length}.${index}`,
        ]
        const statuses: number[] = []
        for (let call = 0; call < 3; call++) statuses.push((await askRaw(path, lines)).status)
        expect(statuses).toEqual([200, 200, path === '/check/nginx' ? 403 : 429])
      }
    },
  )

  it('a refusal of status 503 is 429 to Envoy over HTTP, which takes 503 for a failed decision server', async () => {
    const other = await start({ rules: [{ id: 'none', limit: '0/h', answer: { status: 503 } }] })
    const statuses = ['/envoy/a', '/check'].map(async path => {
      const { status } = await fetch(`${other.address}${path}`, { headers: forwarded('/a', '203.0.113.9') })
      return status
    })
    expect(await Promise.all(statuses)).toEqual([429, 503])
  })

  it('a peer that the rule file does not trust may not ask', async () => {
    const other = await start({ trustProxy: ['192.0.2.0/24'] })
    expect((await fetch(`${other.address}/check`, { headers: forwarded('/', '203.0.113.4') })).status).toBe(403)
    expect((await fetch(`${other.address}/v1/check`, { method: 'POST' })).status).toBe(403)
    await expect(envoyClient(other.also!.grpc!).limit({ domain: 'a', descriptors: [] })).rejects.toThrow(
      '14 UNAVAILABLE',
    )
  })
})

describe('questions of programs in JSON', () => {
  it('one call and several calls are decided, by themselves or together', async () => {
    const call = { path: '/orders/c', ip: '203.0.113.5' }
    expect((await post(call)).body).toMatchObject({ allowed: true, status: 200, decisions: [{ remaining: 1 }] })
    const several = await post({ calls: [call, { ...call, ip: '203.0.113.6' }] })
    expect(several.body).toMatchObject({ allowed: true, results: [{ allowed: true }, { allowed: true }] })
    const together = { calls: [call, { ...call, ip: '203.0.113.6' }], together: true }
    expect((await post(together)).body).toMatchObject({
      allowed: false,
      results: [{ allowed: false }, { allowed: true }],
    })
    expect((await post({ ...call, ip: '203.0.113.6', cost: 0 })).body).toMatchObject({ decisions: [{ remaining: 1 }] })
    expect((await post({ attributes: { plan: 'free' }, cost: 3 })).body).toMatchObject({ allowed: true })
    expect((await post({ rules: ['plan'], attributes: { plan: 'free' } })).body).toMatchObject({
      rule: 'plan',
      status: 429,
    })
  })

  it('an amount is reserved, settled once at what was used, and released if it is settled at 0', async () => {
    const call = { attributes: { plan: 'reserved' }, cost: 3 }
    const left = async () => {
      const { body } = await post({ ...call, cost: 0 })
      return (body as never as { decisions: { remaining: number }[] }).decisions[0]!.remaining
    }
    const reserved = await post({ call, hold: '5m' }, '/v1/reserve')
    expect(reserved.body).toMatchObject({ hold: '5m', result: { allowed: true, decisions: [{ remaining: 0 }] } })
    const refused = await post({ call }, '/v1/reserve')
    expect(refused.body).toMatchObject({ result: { allowed: false, rule: 'plan' } })
    expect(refused.body.id).toBeUndefined()
    const { id } = reserved.body
    expect(await post({ id, actual: 1 }, '/v1/settle')).toMatchObject({ status: 200, body: { settled: true } })
    expect(await left()).toBe(2)
    expect((await post({ id, actual: 1 }, '/v1/settle')).status).toBe(404)
    const { body: again } = await post({ call: { ...call, cost: 2 } }, '/v1/reserve')
    await post({ id: again.id, actual: { plan: 0 } }, '/v1/settle')
    expect(await left()).toBe(2)
    expect((await post({ call, hold: 'long' }, '/v1/reserve')).status).toBe(400)
    expect((await post({ id, actual: 0.5 }, '/v1/settle')).status).toBe(400)
  })

  it('the OpenAPI document describes what is asked and answered', async () => {
    const document = (await (await fetch(`${server.address}/v1/openapi.json`)).json()) as never as {
      paths: Record<string, { post: { requestBody: never; responses: Record<string, never> } }>
    }
    const { post: check } = document.paths['/v1/check']!
    const schemaOf = (part: { content: Record<string, { schema: object }> }) => part.content['application/json']!.schema
    const ajv = new Ajv2020({ strict: false })
    const asks = ajv.compile(schemaOf(check.requestBody))
    const answers = ajv.compile(schemaOf(check.responses['200']!))
    for (const question of [{ path: '/orders/d' }, { calls: [{ path: '/' }, { cost: 0 }] }]) {
      expect(asks(question)).toBe(true)
      expect(answers((await post(question)).body)).toBe(true)
    }
    expect(asks({ path: 7 })).toBe(false)
  })

  it('any JSON gets an answer or a problem', async () => {
    await fc.assert(
      fc.asyncProperty(fc.oneof(fc.json(), fc.string()), async body => {
        const headers = { 'content-type': 'application/json' }
        const { status } = await fetch(`${server.address}/v1/check`, { method: 'POST', body, headers })
        expect([200, 400]).toContain(status)
      }),
      { numRuns: randomRuns(60) },
    )
    expect((await post({ calls: [] })).status).toBe(400)
    expect((await post({ path: '/', cost: -1 })).status).toBe(400)
    expect((await post({ path: '/a%zz' })).status).toBe(400)
    expect((await post({}, '/v1/none')).status).toBe(404)
  })
})

describe('the agent protocol of HAProxy', () => {
  it('any bytes are answered with a disconnect or nothing, and the next connection is served', async () => {
    const [host, port] = server.also!.spoe!.split(':') as [string, string]
    const hello = Buffer.concat([
      Buffer.from([0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0]),
      ...['supported-versions', '2.0', 'max-frame-size'].map((text, at) =>
        Buffer.concat([Buffer.from(at === 1 ? [8, text.length] : [text.length]), Buffer.from(text)]),
      ),
      Buffer.from([3, 0xf0, 0xf1, 0x07]),
    ])
    hello.writeUInt32BE(hello.length - 4)
    const exchange = async (bytes: Buffer): Promise<Buffer> => {
      const socket = connect(Number(port), host)
      const pieces: Buffer[] = []
      socket.on('data', piece => pieces.push(piece)).on('error', () => {})
      socket.end(bytes)
      await once(socket, 'close')
      return Buffer.concat(pieces)
    }
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 200 }), async bytes => {
        const frame = Buffer.concat([Buffer.alloc(4), Buffer.from(bytes)])
        frame.writeUInt32BE(bytes.length)
        await exchange(frame)
        await exchange(Buffer.from(bytes))
      }),
      { numRuns: randomRuns(40) },
    )
    const greeting = await exchange(hello)
    expect(greeting[4]).toBe(101)
    expect(greeting.toString('latin1')).toContain('version')
  })
})

describe('TLS', () => {
  it('with clients in tls:, only proxies with a certificate are answered', async () => {
    const authority = new Authority()
    rig.later(() => authority.close())
    for (const name of ['server', 'proxy']) authority.issue(name, { names: 'IP:127.0.0.1,DNS:localhost' })
    const path = (name: string): string => authority.path(name)
    const tls = { cert: path('server.pem'), key: path('server.key'), clients: { ca: path('ca.pem') } }
    // no address is trusted: the certificate is
    const secure = await start({ trustProxy: ['192.0.2.0/24'], serve: { tls } })
    const question = { domain: 'a', descriptors: [{ entries: [{ key: 'x', value: 'y' }] }] }
    const ca = authority.pem('ca.pem')
    const withKey = credentials.createSsl(ca, authority.pem('proxy.key'), authority.pem('proxy.pem'))
    const known = envoyClient(secure.also!.grpc!, withKey)
    expect((await known.limit(question)).overall_code).toBe('OK')
    known.close()
    const unknown = envoyClient(secure.also!.grpc!, credentials.createSsl(ca))
    await expect(unknown.limit(question)).rejects.toThrow('14 UNAVAILABLE')
    unknown.close()
    expect(secure.address).toMatch(/^https:/)
    const asked = request(`${secure.address}/check`, {
      headers: forwarded('/', '203.0.113.7'),
      ca,
      cert: authority.pem('proxy.pem'),
      key: authority.pem('proxy.key'),
    })
    asked.end()
    const [answer] = await once(asked, 'response')
    expect(answer.statusCode).toBe(200)
    answer.resume()
  })
})
