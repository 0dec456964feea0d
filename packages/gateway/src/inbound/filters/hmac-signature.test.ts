import { createHash, createHmac, randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { z } from 'diana-limiter/schema'
import fastify, { type FastifyInstance } from 'fastify'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { hmacSignature } from './hmac-signature.ts'

const secret = 'a secret of sixteen bytes or more'
let now: number
let app: FastifyInstance
let folder: string

beforeEach(() => {
  now = 1_700_000_000_000
  folder = mkdtempSync(join(tmpdir(), 'diana-hmac-'))
})

afterEach(async () => {
  await app?.close()
  rmSync(folder, { recursive: true })
})

async function start(options: object = {}): Promise<void> {
  const words = z.strictObject(hmacSignature.options).parse({ secrets: { shop: secret }, ...options })
  app = fastify()
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (request, _body, done) => done(null, request.body))
  await app.register(hmacSignature.create(words, { folder, now: () => now }))
  app.all('/*', async ({ body }) => `${(body as Buffer | undefined)?.length ?? 'no'} bytes`)
  await app.listen({ port: 0, host: '127.0.0.1' })
}

interface Call {
  method?: string
  target?: string
  body?: string
  key?: string
  timestamp?: string
  nonce?: string
  secret?: string
}

function headersOf(call: Call): Record<string, string> {
  const { method = 'POST', target = '/orders?a=b', body = '', key = 'shop', nonce = randomUUID() } = call
  const timestamp = call.timestamp ?? String(Math.floor(now / 1000))
  const digest = createHash('sha256').update(body).digest('hex')
  const signature = createHmac('sha256', call.secret ?? secret)
    .update([method, target, timestamp, nonce, digest].join('\n'))
    .digest('hex')
  return {
    'x-signature-key': key,
    'x-signature-timestamp': timestamp,
    'x-signature-nonce': nonce,
    'x-signature': signature,
  }
}

async function send(call: Call, headers: Record<string, string> = headersOf(call)): Promise<number> {
  const { method = 'POST', target = '/orders?a=b', body = '' } = call
  const { port } = app.server.address() as { port: number }
  const init = { method, headers, ...(body === '' ? {} : { body }) }
  return (await fetch(`http://127.0.0.1:${port}${target}`, init)).status
}

describe('a signed call', () => {
  it('a signed call passes, with and without a body', async () => {
    await start()
    expect(await send({ body: 'hello' })).toBe(200)
    expect(await send({ method: 'GET' })).toBe(200)
  })

  it.each<[string, Call]>([
    ['another method', { method: 'PUT' }],
    ['another target', { target: '/orders?a=c' }],
    ['another body', { body: 'hellp' }],
  ])('a signed call does not pass with %s', async (_, changed) => {
    await start()
    const signed = headersOf({ body: 'hello' })
    expect(await send({ body: 'hello', ...changed }, signed)).toBe(401)
    expect(await send({ body: 'hello' }, signed)).toBe(200)
  })

  it.each<[string, Call]>([
    ['a secret that is not the one', { secret: 'another secret of sixteen bytes' }],
    ['a key that nobody has', { key: 'nobody' }],
    ['a timestamp that is no number', { timestamp: '1e9' }],
    ['a nonce that is too short', { nonce: 'short' }],
    ['a nonce with a line in it', { nonce: 'aaaaaaaaaaaaaaaa bbbb' }],
  ])('a signed call does not pass with %s', async (_, call) => {
    await start()
    expect(await send(call)).toBe(401)
  })

  it('a signed call without one of its headers, or with a signature of another length, is refused', async () => {
    await start()
    for (const name of Object.keys(headersOf({}))) {
      const headers = headersOf({})
      delete headers[name]
      expect(await send({}, headers), name).toBe(401)
    }
    expect(await send({}, { ...headersOf({}), 'x-signature': 'abcd' })).toBe(401)
  })

  it('a signed call passes only once', async () => {
    await start()
    const headers = headersOf({ body: 'pay' })
    expect(await send({ body: 'pay' }, headers)).toBe(200)
    expect(await send({ body: 'pay' }, headers)).toBe(401)
    now += 299_000
    expect(await send({ body: 'pay' }, headers)).toBe(401)
  })

  it('a signed call passes only within the time window, early or late', async () => {
    await start({ window: '10s' })
    const at = (seconds: number) => send({ timestamp: String(now / 1000 + seconds) })
    expect([await at(-10), await at(10), await at(-11), await at(11)]).toEqual([200, 200, 401, 401])
  })

  it('a signed call with a large body is refused before the body is read', async () => {
    await start({ body: '10B' })
    expect(await send({ body: 'x'.repeat(10) })).toBe(200)
    expect(await send({ body: 'x'.repeat(11) })).toBe(413)
  })

  it('a signed call is refused if the nonce memory is full, and older nonces stay used', async () => {
    await start({ nonces: 1 })
    const headers = headersOf({})
    expect(await send({}, headers)).toBe(200)
    expect(await send({})).toBe(503)
    expect(await send({}, headers)).toBe(401)
  })
})

describe('a body', () => {
  /** Sends a call whose body never ends, and tells what is answered meanwhile; undefined where nothing is. */
  async function begin(headers: Record<string, string>, bytes: number): Promise<{ answer(): string; end(): void }> {
    const { port } = app.server.address() as { port: number }
    const socket = connect(port, '127.0.0.1').setEncoding('latin1')
    let received = ''
    socket
      .on('error', () => {})
      .on('data', text => {
        received += text
      })
    const lines = Object.entries({ host: 'a', 'content-length': '1048576', ...headers }).map(line => line.join(': '))
    await new Promise<void>(resolve => {
      const head = `POST /orders?a=b HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`
      socket.write(Buffer.concat([Buffer.from(head), Buffer.alloc(bytes)]), () => resolve())
    })
    return { answer: () => received.slice(0, 12), end: () => socket.destroy() }
  }

  it('the body of a call with an unknown key is not read', async () => {
    await start()
    const stranger = await begin(headersOf({ key: 'nobody' }), 0)
    await expect.poll(stranger.answer, { timeout: 3000 }).toBe('HTTP/1.1 401')
    stranger.end()
  })

  it('a body is refused with 503 while bodies of 64 MiB are buffered, and accepted again once they are released', async () => {
    await start()
    const held = await Promise.all(Array.from({ length: 66 }, () => begin(headersOf({}), 1_048_000)))
    const refused = () => held.filter(({ answer }) => answer() === 'HTTP/1.1 503').length
    await expect.poll(refused, { timeout: 10_000 }).toBeGreaterThan(0)
    for (const { end } of held) end()
    await expect.poll(() => send({ body: 'x'.repeat(1_000_000) }), { timeout: 5000 }).toBe(200)
    for (let i = 0; i < 80; i++) expect(await send({ body: 'x'.repeat(1_000_000) })).toBe(200)
  })
})

describe('a secret', () => {
  it('a secret may be in a file beside the config', async () => {
    writeFileSync(join(folder, 'secret'), `${secret}\n`)
    await start({ secrets: { shop: 'file:secret' } })
    expect(await send({})).toBe(200)
  })

  it.each([
    ['file:none', 'cannot be read'],
    ['env:DIANA_TEST_NOT_SET', 'which is not set'],
    ['short', 'has 5 bytes'],
  ])('the value %s is not accepted as a secret', async (words, message) => {
    app = fastify()
    expect(() =>
      hmacSignature.create({ secrets: { shop: words }, window: 1, body: 1, nonces: 1 }, { folder, now: () => 0 }),
    ).toThrow(message)
  })
})
