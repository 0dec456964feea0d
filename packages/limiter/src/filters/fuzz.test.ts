import { connect } from 'node:net'
import { servers } from '@test/filters/servers'
import { randomRuns } from '@test/random-runs'
import fc from 'fast-check'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { createLimiter, type LimiterOptions } from '../create/create-limiter.ts'
import { FilterService } from '../testing/filters/service.ts'

const maxKeys = 200

/** Rules that ask a call everything, so that whatever a caller sends is read. */
const words: LimiterOptions = {
  maxKeys,
  identify: { account: ['header:x-account', 'cookie:uid', 'query:uid'] },
  rules: [
    { id: 'ip', by: 'ip', limit: '1000000/h' },
    { id: 'account', by: ['account', 'resource'], limit: '1000000/h' },
    { id: 'place', by: ['host', 'method', 'resource'], limit: '1000000/h' },
    { id: 'token', by: 'header:authorization', limit: '1000000/h' },
    { id: 'path', match: { path: ['/users/**', '/hello', '/*/a'], header: { 'x-plan': 'free' } }, limit: '1000000/h' },
    { id: 'hosts', match: { host: ['*.example.com', 'a'] }, by: 'resource', limit: '1000000/h' },
  ],
}

const byte = fc.integer({ min: 0, max: 255 }).map(code => String.fromCharCode(code))
const bytes = fc.array(byte, { maxLength: 12 }).map(list => list.join(''))
const piece = fc.constantFrom(
  ...[
    '/',
    '//',
    '\\',
    '.',
    '..',
    '%2e',
    '%2f',
    '%5c',
    '%00',
    '%',
    '%zz',
    '%C0%AF',
    '%25',
    ';',
    '#',
    '?',
    '&',
    '=',
    '*',
  ],
  ...[
    'users',
    'hello',
    'Hello',
    'a',
    'http://',
    'https://h:1',
    '@',
    ':',
    '[',
    '+',
    '__proto__',
    'uid=',
    'x'.repeat(900),
  ],
)
const text = fc.array(fc.oneof({ weight: 4, arbitrary: piece }, bytes), { maxLength: 12 }).map(list => list.join(''))
const address = fc.oneof(
  fc.ipV4(),
  fc.ipV6(),
  fc.constantFrom(
    'unknown',
    '_x',
    '[::1]:80',
    '1.2.3.4:5',
    'for=1.2.3.4',
    'for="[::1]:1"',
    'for="\\',
    '::ffff:1.2.3.4',
    '',
  ),
  bytes,
)
const value = fc.oneof(
  text,
  fc.array(address, { maxLength: 6 }).map(list => list.join(', ')),
)
const told = fc.constantFrom(
  ...[
    'x-forwarded-for',
    'forwarded',
    'x-account',
    'cookie',
    'authorization',
    'host',
    'x-plan',
    '__proto__',
    'constructor',
  ],
)
const plainPiece = fc.constantFrom('/', '//', '.', '..', '&', '=', '*', '+', 'users', 'hello', 'Hello', 'a', 'uid=')
const plainText = fc.array(plainPiece, { maxLength: 12 }).map(list => list.join(''))
/** What any parser of HTTP lets through, and so reaches a filter. */
const wellFormed = fc.record({
  form: fc.constant('well-formed'),
  method: fc.constantFrom('GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE'),
  target: fc.oneof(plainText, text).map(rest => `/${rest.replaceAll(/[^\x21-\x7e]/g, '')}`),
  headers: fc.array(
    fc.tuple(
      told,
      value.map(one => one.replaceAll(/[^\x20-\x7e\x80-\xff]/g, '')),
    ),
    { maxLength: 6 },
  ),
})
const malformed = fc.record({
  form: fc.constant('malformed'),
  method: fc.oneof(fc.constantFrom('GET', 'POST'), bytes),
  target: text,
  headers: fc.array(
    fc.tuple(
      fc.oneof(told, fc.constantFrom('content-length', 'transfer-encoding', 'expect', 'upgrade', 'connection'), bytes),
      value,
    ),
    { maxLength: 6 },
  ),
})
const request = fc.oneof({ weight: 3, arbitrary: wellFormed }, malformed)
/** A plain target is read by every framework and by every filter, so a request for it is decided. */
const notPlain = expect.not.stringMatching(/^\/[\w./*=+&~-]*$/)
const answeredBadly = expect.stringMatching(/^HTTP\/1\.1 4\d\d /)

afterEach(() => vi.restoreAllMocks())

/** All that a server says to these bytes, until it closes the connection or nothing more comes. */
async function say(port: number, sent: string): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  let said = ''
  await new Promise<void>(resolve => {
    socket.on('error', () => resolve()).once('close', () => resolve())
    socket.setEncoding('latin1').on('data', piece => (said += piece))
    // half of the requests that no parser takes for whole wait for more, so the caller hangs up
    socket.end(sent, 'latin1')
  })
  return said
}

describe.each(['node:http', 'node:http, guarded', 'Express 5', 'Fastify 5', 'Hono 4'])('%s', name => {
  test.each([{ trustProxy: 1 }, { trustProxy: ['127.0.0.1', '::/1'], forwardedBy: 'forwarded' } as const])(
    'the filter answers any request without a failure and within its limits: %j',
    async trust => {
      const warn = vi.spyOn(process, 'emitWarning')
      const limiter = await createLimiter({ ...words, ...trust })
      const decide = vi.spyOn(limiter, 'decide')
      const service = new FilterService()
      const server = await servers[name]!.start(limiter, service)
      const ask = async (sent: string) => {
        const [decided, served] = [decide.mock.calls.length, service.served.length]
        const said = await say(server.port, sent)
        return { said, decided: decide.mock.calls.length - decided, served: service.served.length - served }
      }
      try {
        await fc.assert(
          fc.asyncProperty(request, async ({ form, method, target, headers }) => {
            const lines = ['Host: a', 'Connection: close', ...headers.map(([name, told]) => `${name}: ${told}`)]
            const { said, decided, served } = await ask(`${method} ${target} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`)
            expect(said).not.toMatch(/HTTP\/1\.1 5\d\d/)
            expect(limiter.status().keys).toBeLessThanOrEqual(maxKeys)
            expect(served, 'calls that reached the service, and calls that were decided').toBeLessThanOrEqual(decided)
            if (form === 'malformed') return
            expect(decided).toBeLessThanOrEqual(1)
            // a target that the framework or the filter cannot read gets an answer of the framework or a 400, and no decision
            if (decided === 0) expect({ target, said }).toEqual({ target: notPlain, said: answeredBadly })
          }),
          { numRuns: randomRuns(50) },
        )
        const last = await ask('GET /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
        expect(last).toEqual({ said: expect.stringMatching(/^HTTP\/1\.1 200/), decided: 1, served: 1 })
      } finally {
        await server.close()
        await limiter.close()
      }
      expect(warn.mock.calls.filter(([, told]) => JSON.stringify(told).includes('DIANA_FAILED'))).toEqual([])
    },
  )
})
