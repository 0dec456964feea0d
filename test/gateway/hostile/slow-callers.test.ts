import { createHash, createHmac } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import { request } from 'undici'
import { afterEach, describe, expect, test } from 'vitest'
import { GatewayRig, sendRaw, statusesIn } from '../../helpers/gateway-rig.ts'
import { call, socketOpener } from './raw-calls.ts'

const rig = new GatewayRig()
afterEach(() => rig.close())

const openSocket = socketOpener(rig)

describe('slow callers', () => {
  test.each([
    ['readers', () => call('/large')],
    ['senders', () => `${call('/', ['Content-Length: 1000000'], 'POST')}x`],
    ['senders of chunks', () => `${call('/', ['Transfer-Encoding: chunked'], 'POST')}1\r\nx\r\n`],
  ])('%s who hold all connections to a service give way to others', async (_, bytes) => {
    const { url } = await rig.serve((incoming, response) => {
      if (incoming.url === '/large') response.end(Buffer.alloc(16 * 1024 * 1024))
      else if (incoming.method === 'POST') incoming.resume().on('end', () => response.end())
      else response.end('served')
    })
    const connections = { max: 20, queue: { timeout: '20s' } }
    const guarded = await rig.guard({ gateway: { connections, routes: [{ to: url }] } })
    const sockets = Array.from({ length: 30 }, () => openSocket(guarded))
    for (const socket of sockets) socket.pause().write(bytes())
    await new Promise(resolve => setTimeout(resolve, 200))
    const statuses = await Promise.all(
      Array.from({ length: 10 }, async () => {
        const { statusCode, body } = await request(guarded.url, { headersTimeout: 15_000 })
        await body.dump()
        return statusCode
      }),
    )
    expect(statuses).toEqual(Array(10).fill(200))
  })

  test('slow callers below the minimum rate are disconnected, and those above it are not', async () => {
    const { url } = await rig.serve((incoming, response) => incoming.resume().on('end', () => response.end('whole')))
    const limits = { minRate: '1KiB', grace: '2s' }
    const guarded = await rig.guard({ gateway: { limits, routes: [{ to: url }] } })
    const post = call('/', ['Content-Length: 8000', 'Connection: close'], 'POST')
    const [slow, steady] = [openSocket(guarded), openSocket(guarded)]
    let answer = ''
    steady.setEncoding('latin1').on('data', piece => {
      answer += piece
    })
    slow.resume().write(post)
    steady.write(post)
    const drip = setInterval(() => {
      slow.write('x')
      steady.write('x'.repeat(800))
    }, 400)
    rig.later(() => clearInterval(drip))
    await once(slow, 'close')
    await expect.poll(() => statusesIn(answer), { timeout: 10_000 }).toEqual([200])
  })

  test('a full queue for connections answers 503 with Retry-After at once, a long wait after its time', async () => {
    const { url } = await rig.serve(() => {})
    const connections = { max: 1, queue: { size: 1, timeout: '300ms' } }
    const guarded = await rig.guard({ gateway: { connections, routes: [{ to: url }] } })
    const first = openSocket(guarded)
    first.write(call('/'))
    await new Promise(resolve => setTimeout(resolve, 100))
    const answers = await Promise.all([1, 2].map(() => request(guarded.url)))
    for (const { statusCode, headers, body } of answers) {
      expect([statusCode, headers['retry-after'], (await body.json()) as object]).toMatchObject([
        503,
        '1',
        { status: 503 },
      ])
    }
  })

  test.each([1, 2, 5])('a proxy among %s that are trusted may have any number of connections', async trustProxy => {
    const { url } = await rig.serve()
    const gateway = { limits: { connectionsPerCaller: 2 }, routes: [{ to: url }] }
    const guarded = await rig.guard({ trustProxy, gateway })
    const sockets = Array.from({ length: 4 }, () => openSocket(guarded))
    await Promise.all(sockets.map(socket => once(socket, 'connect')))
    expect(statusesIn(await sendRaw(guarded.port, call('/', ['Connection: close'])))).toEqual([200])
  })

  test('one address has a bounded number of connections, and another address is served', async () => {
    const { url } = await rig.serve()
    const guarded = await rig.guard({ gateway: { limits: { connectionsPerCaller: 5 }, routes: [{ to: url }] } })
    const sockets = Array.from({ length: 5 }, () => openSocket(guarded))
    await Promise.all(sockets.map(socket => once(socket, 'connect')))
    const answer = await sendRaw(guarded.port, call('/'))
    expect([statusesIn(answer), answer.includes('application/problem+json')]).toEqual([[429], true])
    const other = connect({ port: guarded.port, host: '127.0.0.1', localAddress: '127.0.0.2' })
    rig.later(() => other.destroy())
    other.write(call('/'))
    expect(String((await once(other, 'data'))[0])).toContain('200 OK')
    sockets[0]!.destroy()
    await expect
      .poll(async () => statusesIn(await sendRaw(guarded.port, call('/', ['Connection: close']))))
      .toEqual([200])
  })
})

test('signed calls are served while others stall with bodies that claim a known secret', async () => {
  const { url } = await rig.serve((incoming, response) => incoming.resume().on('end', () => response.end('served')))
  const filters = [{ use: 'hmac-signature', secrets: { shop: 'a secret of some length' }, body: '8MiB' }]
  const guarded = await rig.guard({ gateway: { filters, routes: [{ to: url }] } })
  const headers = (nonce: string, signature: string): string[] => [
    'X-Signature-Key: shop',
    `X-Signature-Timestamp: ${Math.floor(Date.now() / 1000)}`,
    `X-Signature-Nonce: ${nonce}`,
    `X-Signature: ${signature}`,
  ]
  const size = 8 * 1024 * 1024
  for (let i = 0; i < 9; i++) {
    const socket = openSocket(guarded)
    socket.write(call('/', [...headers(`nonce-of-a-guess-${i}`, '0'.repeat(64)), `Content-Length: ${size}`], 'POST'))
    socket.write(Buffer.alloc(size - 1))
  }
  await new Promise(resolve => setTimeout(resolve, 2500))
  const timestamp = Math.floor(Date.now() / 1000)
  const nonce = 'nonce-of-an-honest-caller'
  const digest = createHash('sha256').update('body').digest('hex')
  const signature = createHmac('sha256', 'a secret of some length')
    .update(['POST', '/', timestamp, nonce, digest].join('\n'))
    .digest('hex')
  const { statusCode, body } = await request(guarded.url, {
    method: 'POST',
    body: 'body',
    headers: {
      'x-signature-key': 'shop',
      'x-signature-timestamp': String(timestamp),
      'x-signature-nonce': nonce,
      'x-signature': signature,
    },
  })
  expect([statusCode, await body.text()]).toEqual([200, 'served'])
})
