import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { METHODS } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { randomRuns } from '@test/random-runs'
import { createLimiter, type Limiter } from 'diana-limiter'
import { adminOf } from 'diana-limiter/admin'
import fc from 'fast-check'
import type { FastifyInstance } from 'fastify'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { operations } from '../operations/index.ts'
import { createAdmin } from './create-admin.ts'

const token = 'correct-horse-battery-staple'
const secret = 'word-that-only-the-document-holds'
const rules = `# ${secret}\nrules:\n  - { id: all, limit: 100/m }\n`

let folder: string
let config: string
let limiter: Limiter
let app: FastifyInstance
let port: number
let version: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'diana-guard-'))
  config = join(folder, 'diana.yaml')
  await writeFile(config, rules)
  await writeFile(join(folder, 'index.html'), '<!doctype html>page')
  limiter = await createLimiter({ config })
  app = await createAdmin({ limiter, host: '127.0.0.1', token, page: folder })
  await app.listen({ host: '127.0.0.1', port: 0 })
  port = (app.server.address() as AddressInfo).port
  version = (await adminOf(limiter).documents.read('local')).version
})
afterAll(async () => {
  await app.close()
  await limiter.close()
  await rm(folder, { recursive: true })
})

interface Answer {
  readonly status: number
  readonly headers: string
  readonly body: string
}

/** Sends bytes and reads until the server closes the connection; a stream that stays open is cut after its first bytes. */
function sendBytes(text: string, localAddress = '127.0.0.1'): Promise<Answer> {
  return new Promise((resolve, reject) => {
    let received = ''
    const socket = connect({ port, host: '127.0.0.1', localAddress }, () => socket.write(text))
    socket.setEncoding('latin1').on('data', piece => {
      received += piece
      if (received.includes('text/event-stream')) socket.destroy()
    })
    socket.on('error', reject).on('close', () => {
      const [headers = '', ...rest] = received.replace(/^HTTP\/1\.1 100 Continue\r\n\r\n/, '').split('\r\n\r\n')
      resolve({ status: Number(/^HTTP\/1\.1 (\d{3})/.exec(headers)?.[1] ?? 0), headers, body: rest.join('\r\n\r\n') })
    })
  })
}

interface Request {
  readonly method: string
  readonly target: string
  readonly protocol?: string
  readonly headers?: readonly string[]
  readonly from?: string
}

function send(request: Request): Promise<Answer> {
  const { method, target, protocol = 'HTTP/1.1', headers = ['Host: 127.0.0.1'], from } = request
  const body = JSON.stringify({ where: 'local', text: 'rules: [{ id: disarmed, limit: 1000000/s }]', version })
  const hasBody = ['POST', 'PUT', 'PATCH'].includes(method)
  const lines = [
    `${method} ${target} ${protocol}`,
    ...headers,
    ...(hasBody ? ['Content-Type: application/json', `Content-Length: ${body.length}`] : []),
    'Connection: close',
  ]
  return sendBytes(`${lines.join('\r\n')}\r\n\r\n${hasBody ? body : ''}`, from)
}

const openPaths = ['/healthz', '/readyz', '/metrics', '/', '/index.html']
const paths = [
  ...new Set(operations.map(({ path }) => `/api/v1${path.replace('{id}', 'all')}`)),
  '/api/v1/live',
  '/api/v1/openapi.json',
  '/api',
  '/api/v1/none',
  '/none',
  ...openPaths,
]
const methods = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE', 'PROPFIND', 'QUERY', 'PURGE']

const percent = (character: string, lower: boolean): string => {
  const hex = character.charCodeAt(0).toString(16)
  return `%${lower ? hex : hex.toUpperCase()}`
}

/** A path written otherwise: characters percent-encoded, once or twice, and what routers and proxies may take as the same. */
const spelledPath = fc.constantFrom(...paths).chain(path =>
  fc
    .tuple(
      fc.array(fc.constantFrom('plain', 'upper', 'lower', 'twice', 'case'), {
        minLength: path.length,
        maxLength: path.length,
      }),
      fc.boolean(),
      fc.constantFrom(
        '',
        '/',
        '//',
        '.',
        '/.',
        '/..',
        ';x',
        ';x=/healthz',
        '?',
        '?x=1',
        '#x',
        '%00',
        '%2f',
        '\\',
        '%20',
        '/x/..',
      ),
      fc.constantFrom(
        '',
        '',
        '',
        '/',
        '/.',
        '/x/..',
        '/healthz/..',
        '/healthz/../.',
        '\\',
        '/%2e',
        '/healthz;',
        '/healthz%2f..',
      ),
      fc.constantFrom(
        '',
        '',
        '',
        'http://127.0.0.1',
        'http://localhost:1',
        'https://127.0.0.1',
        'HTTP://evil.example',
        'http://a@127.0.0.1',
        'ftp://127.0.0.1',
        '*',
        'x',
      ),
    )
    .map(([ways, changes, behind, before, authority]) => {
      const spelled = [...path].map((one, at) => {
        const way = changes ? ways[at] : 'plain'
        if (way === 'upper' || way === 'lower') return percent(one, way === 'lower')
        if (way === 'twice') return `%25${percent(one, true).slice(1)}`
        return way === 'case' ? one.toUpperCase() : one
      })
      return `${authority}${before}${spelled.join('')}${behind}`
    }),
)

const hostLines = fc.constantFrom(
  ['Host: 127.0.0.1'],
  ['Host: localhost'],
  ['Host: localhost.'],
  ['Host: evil.example'],
  ['Host: '],
  [],
  ['Host: 127.0.0.1', 'Origin: http://127.0.0.1'],
  ['Host: 127.0.0.1', 'X-Original-URL: /healthz', 'X-Rewrite-URL: /healthz', 'X-HTTP-Method-Override: GET'],
  ['Host: 127.0.0.1', 'Upgrade: websocket', 'Connection: Upgrade'],
  ['Host: 127.0.0.1', 'Expect: 100-continue'],
)

describe('without the token', () => {
  it.each([
    ['GET', '/%61pi/v1/document'],
    ['GET', 'http://127.0.0.1/api/v1/document'],
    ['GET', 'x/api/v1/document'],
    ['PUT', '/%61%70i/v1/document'],
    ['PUT', 'http://127.0.0.1/api/v1/document'],
    ['GET', '/%61pi/v1/live'],
    ['DELETE', `/%61pi/v1/rules/all`],
  ])('without the token, %s %s is refused like the plain spelling', async (method, target) => {
    const { status, body } = await send({ method, target })
    expect([400, 401, 403, 404]).toContain(status)
    expect(body).not.toContain(secret)
    expect(await readFile(config, 'utf8')).toBe(rules)
  })

  it('without the token, no spelling of a path, method or protocol version reaches a protected route', async () => {
    const open = new Map<string, string>()
    for (const target of openPaths) open.set(target, (await send({ method: 'GET', target })).body.slice(0, 40))
    expect([...open.values()].every(body => body.length > 10)).toBe(true)
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...methods),
        spelledPath,
        fc.constantFrom('HTTP/1.1', 'HTTP/1.1', 'HTTP/1.0'),
        hostLines,
        async (method, target, protocol, headers) => {
          const { status, body } = await send({ method, target, protocol, headers })
          if (![0, 400, 401, 403, 404].includes(status)) {
            expect([200], `${method} ${target}`).toContain(status)
            expect(['', ...open.values()], `${method} ${target}`).toContain(body.slice(0, 40))
            if (body === '') expect(method).toBe('HEAD')
          }
          expect(body).not.toContain(secret)
          expect(limiter.rules.map(({ id }) => id)).toEqual(['all'])
        },
      ),
      { numRuns: randomRuns(150) },
    )
    expect(await readFile(config, 'utf8')).toBe(rules)
  })

  it('without the token, every route except the public ones answers 401, and so do unknown paths', async () => {
    for (const target of paths) {
      const { status } = await send({ method: 'GET', target })
      expect(status, target).toBe(openPaths.includes(target) ? 200 : 401)
    }
    for (const target of openPaths) expect((await send({ method: 'POST', target })).status, target).toBe(401)
  })
})

describe('a page of another origin', () => {
  it.each(['/api/v1/status', '/%61pi/v1/status', 'http://127.0.0.1/api/v1/status', '/%61%70%69/v1/status'])(
    'a page of another origin is refused for %s even with the token',
    async target => {
      const common = ['Host: 127.0.0.1', `Authorization: Bearer ${token}`]
      expect((await send({ method: 'GET', target, headers: common })).status).toBe(200)
      for (const line of ['Sec-Fetch-Site: cross-site', 'Sec-Fetch-Site: same-site', 'Origin: http://evil.example']) {
        expect((await send({ method: 'GET', target, headers: [...common, line] })).status, line).toBe(403)
      }
    },
  )

  it('a page of another origin is refused if the target names another host than the Host header', async () => {
    const headers = ['Host: 127.0.0.1', `Authorization: Bearer ${token}`]
    expect((await send({ method: 'GET', target: 'http://evil.example/api/v1/status', headers })).status).toBe(403)
  })
})

describe('with the token', () => {
  const headers = ['Host: 127.0.0.1', `Authorization: Bearer ${token}`]

  it('with the token, other methods on a known path answer 405 with Allow, and unknown paths answer 404', async () => {
    // OPTIONS of /healthz and / are health checks, as HAProxy makes them
    for (const path of ['/api/v1/document', '/api/v1/status', '/healthz', '/api/v1/rules/all', '/']) {
      for (const method of ['PATCH', ...(path.startsWith('/api') ? ['OPTIONS'] : []), 'TRACE', 'POST']) {
        const { status, headers: told } = await send({ method, target: path, headers })
        expect(status, `${method} ${path}`).toBe(405)
        expect(told, `${method} ${path}`).toMatch(/^allow: [A-Z, ]+$/im)
      }
    }
    for (const method of methods.filter(one => METHODS.includes(one))) {
      expect((await send({ method, target: '/none', headers })).status, method).toBe(404)
    }
  })

  it('with the token, HEAD answers like GET without a body', async () => {
    const { status, body } = await send({ method: 'HEAD', target: '/api/v1/document', headers })
    expect([status, body]).toEqual([200, ''])
  })
})

describe('wrong tokens', () => {
  const tries = (word: string, from: string) =>
    send({ method: 'GET', target: '/api/v1/status', from, headers: ['Host: 127.0.0.1', `Authorization: ${word}`] })

  it('wrong tokens are soon answered with 429 and Retry-After, while the right token is accepted from another address', async () => {
    const answers: Answer[] = []
    for (let i = 0; i < 30; i++) answers.push(await tries(`Bearer guess-number-${i}`, '127.0.0.2'))
    expect(answers[0]?.status).toBe(401)
    expect(answers.slice(12).map(({ status }) => status)).toEqual(answers.slice(12).map(() => 429))
    expect(answers.at(-1)?.headers).toMatch(/^retry-after: [1-9]\d*$/im)
    expect((await tries(`Bearer ${token}`, '127.0.0.2')).status).toBe(429)
    for (let i = 0; i < 30; i++) expect((await tries(`Bearer ${token}`, '127.0.0.3')).status).toBe(200)
  })

  it('requests without a token do not count as wrong tokens', async () => {
    for (let i = 0; i < 30; i++) expect((await tries('Basic eDp5', '127.0.0.4')).status).toBe(401)
    expect((await tries(`Bearer ${token}`, '127.0.0.4')).status).toBe(200)
  })
})
