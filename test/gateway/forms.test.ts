import { randomRuns } from '@test/random-runs'
import { createLimiter } from 'diana-limiter'
import fc from 'fast-check'
import type { FastifyInstance, FastifyPluginCallback } from 'fastify'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createGateway } from '../../packages/gateway/src/gateway.ts'
import { GatewayRig, type Guarded, sendRaw } from '../helpers/gateway-rig.ts'

const rig = new GatewayRig()
const document = (to: string): object => ({
  rules: [
    { id: 'whole', limit: '1000000/h' },
    { id: 'never', match: { path: '/refused/**' }, limit: '0/h' },
  ],
  gateway: { routes: [{ to, path: '/' }], answerHeaders: { 'x-own': 'yes' }, cors: { origins: ['https://a.example'] } },
})
const passThrough: FastifyPluginCallback = Object.assign(
  ((app, _options, done) => {
    app.addHook('onRequest', (_request, _reply, next) => next())
    done()
  }) as FastifyPluginCallback,
  { [Symbol.for('skip-override')]: true },
)

const teapot: FastifyPluginCallback = Object.assign(
  ((app, _options, done) => {
    app.addHook('onRequest', (_request, reply) => void reply.code(418).send())
    done()
  }) as FastifyPluginCallback,
  { [Symbol.for('skip-override')]: true },
)

const method = fc.constantFrom('GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH', 'TRACE', 'PROPFIND', 'QUERY')
const segment = fc.constantFrom(
  'a',
  'refused',
  'Refused',
  '%61',
  '%FF',
  '%2F',
  '%',
  '..',
  '.',
  ';v=1',
  '%E2%82%AC',
  '',
  '*',
  '"',
)
const target = fc.oneof(
  { weight: 8, arbitrary: fc.array(segment, { maxLength: 4 }).map(segments => `/${segments.join('/')}`) },
  {
    weight: 1,
    arbitrary: fc.constantFrom('*', '/', 'http://other.example/a', 'nonsense', '/a?b=%', '/?', `/${'a/'.repeat(300)}`),
  },
)
const header = fc.constantFrom(
  'X-Account: ann',
  'X_Account: ann',
  'Connection: close, x-account',
  'Origin: https://a.example',
  'Access-Control-Request-Method: PUT',
  'Expect: 100-continue',
  'X-Forwarded-For: 203.0.113.9',
  'Host: second.example',
  'Accept-Version: 1.x',
  'Content-Type: application/json',
  'Content-Type: nonsense',
)
const body = fc.constantFrom(
  '',
  'Content-Length: 4\r\n',
  'Transfer-Encoding: chunked\r\n',
  'Transfer-Encoding: gzip\r\n',
)
const exchange = fc.tuple(method, target, fc.array(header, { maxLength: 3 }), body)

function textOf([verb, where, headers, length]: [string, string, string[], string]): string {
  const lines = headers.map(line => `${line}\r\n`).join('')
  const sent = length.includes('chunked') ? '4\r\nbody\r\n0\r\n\r\n' : length === '' ? '' : 'body'
  return `${verb} ${where} HTTP/1.1\r\nHost: shop.example\r\n${lines}${length}Connection: close\r\n\r\n${sent}`
}

/** What an answer says, without what differs from one moment to the next, such as ids; the order of header lines is free. */
function comparable(answer: string): string[] {
  const text = answer
    .replace(/;t=\d+|"retryAfter":\d+|in \d+ s|[\da-f]{32}/g, '')
    .replace(/^(date|retry-after): .*$/gim, '$1')
  return text.toLowerCase().split('\r\n').sort()
}

describe('a gateway without filters', () => {
  let plain: Guarded
  let hooked: Guarded

  beforeAll(async () => {
    const service = await rig.serve((request, response) => {
      const { method, url, headers } = request
      const body: Buffer[] = []
      request.on('data', piece => body.push(piece))
      request.on('end', () => response.end(JSON.stringify({ method, url, headers, body: String(Buffer.concat(body)) })))
    })
    plain = await rig.guard(document(service.url))
    hooked = await rig.guard(document(service.url), { filters: [passThrough] })
  })
  afterAll(() => rig.close())

  it('a gateway without filters answers and forwards any call like one with a filter that does nothing', async () => {
    await fc.assert(
      fc.asyncProperty(exchange, async call => {
        const text = textOf(call)
        const [one, other] = await Promise.all([sendRaw(plain.port, text), sendRaw(hooked.port, text)])
        expect(comparable(one)).toEqual(comparable(other))
      }),
      { numRuns: randomRuns(84) },
    )
  })

  it('a gateway without filters spends no time in Fastify', async () => {
    const seen: object[] = []
    for (const { gateway, url } of [plain, hooked]) {
      gateway.server.once('request', request => seen.push(request))
      await (await fetch(`${url}/a`)).text()
    }
    // where Fastify keeps a target that it has rewritten
    expect(seen.map(request => 'originalUrl' in request)).toEqual([false, true])
  })

  it.each<[string, (gateway: FastifyInstance) => unknown]>([
    ['a hook', gateway => gateway.addHook('onRequest', (_request, reply) => void reply.code(418).send())],
    ['a plugin with a hook', gateway => gateway.register(teapot)],
    ['a route', gateway => gateway.get('/a', (_request, reply) => void reply.code(418).send())],
  ])('a gateway without filters runs %s that is added to its Fastify application', async (_what, add) => {
    const limiter = await createLimiter({ rules: [] })
    const gateway = await createGateway({ limiter, upstream: 'http://127.0.0.1:9' })
    add(gateway)
    const url = await gateway.listen({ port: 0, host: '127.0.0.1' })
    try {
      expect((await fetch(`${url}/a`)).status).toBe(418)
    } finally {
      await gateway.close()
      await limiter.close()
    }
  })
})
