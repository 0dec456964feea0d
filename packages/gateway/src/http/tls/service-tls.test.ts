import { copyFileSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:https'
import { type AddressInfo, connect, type Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { Authority } from '@test/tls/authority'
import { createLimiter, type Limiter } from 'diana-limiter'
import type { FastifyInstance } from 'fastify'
import { request } from 'undici'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { createGateway, gatewaySection } from '../../gateway.ts'

let authority: Authority
let stranger: Authority
let service: Server
let asked: string[]
let limiter: Limiter
let gateway: FastifyInstance
const sockets = new Set<Socket>()

beforeAll(async () => {
  authority = new Authority()
  stranger = new Authority()
  authority.issue('service', { names: 'DNS:orders.internal' })
  authority.issue('gateway')
  authority.issue('second')
  stranger.issue('gateway')
  copyFileSync(stranger.path('ca.pem'), authority.path('stranger.pem'))
  copyFileSync(stranger.path('gateway.key'), authority.path('stranger.key'))
  const options = { cert: authority.pem('service.pem'), key: authority.pem('service.key'), ca: authority.pem('ca.pem') }
  service = createServer({ ...options, requestCert: true, rejectUnauthorized: false }, ({ socket }, response) => {
    const { servername } = socket as TLSSocket & { servername?: string }
    asked.push(String(servername))
    response.end((socket as TLSSocket).getPeerCertificate().subject?.CN ?? 'nobody')
  })
  service.on('connection', (socket: Socket) => sockets.add(socket))
  service.on('upgrade', (_request, socket) => {
    const { subject } = (socket as TLSSocket).getPeerCertificate()
    socket.end(`HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n${subject?.CN}`)
  })
  await new Promise<void>(resolve => service.listen(0, '127.0.0.1', resolve))
})
afterEach(async () => {
  await gateway?.close()
  await limiter?.close()
})
afterAll(() => {
  for (const socket of sockets) socket.destroy()
  service.close()
  authority.close()
  stranger.close()
})

const rules = [{ id: 'all', limit: '1000/s' }]
const config = (): string => authority.path('diana.yaml')

async function start(tls: object | undefined, scheme = 'https'): Promise<string> {
  const to = `${scheme}://127.0.0.1:${(service.address() as AddressInfo).port}`
  asked = []
  writeFileSync(config(), stringify({ rules, gateway: { routes: [{ to, ...(tls && { tls }) }] } }))
  limiter = await createLimiter({ config: config(), sections: [gatewaySection] })
  gateway = await createGateway({ limiter, folder: authority.folder })
  return await gateway.listen({ port: 0, host: '127.0.0.1' })
}

async function get(url: string): Promise<string> {
  const { statusCode, body } = await request(url)
  const text = await body.text()
  return statusCode === 200 ? `200 ${text}` : String(statusCode)
}

const own = { ca: 'ca.pem', serverName: 'orders.internal' }

it('a service is verified by the authority and the name of its route', async () => {
  const url = await start(own)
  expect(await get(url)).toBe('200 nobody')
  expect(asked).toEqual(['orders.internal'])
})

it.each([
  ['no settings of its own', undefined],
  ['no authority', { serverName: 'orders.internal' }],
  ['no name', { ca: 'ca.pem' }],
  ['another name', { ca: 'ca.pem', serverName: 'carts.internal' }],
  ['another authority', { ca: 'stranger.pem', serverName: 'orders.internal' }],
])('a route with %s does not trust the service, and callers get a 502', async (_, tls) => {
  expect(await get(await start(tls))).toBe('502')
  expect(asked).toEqual([])
})

it('a route can be configured to trust a service without verification', async () => {
  expect(await get(await start({ verify: false }))).toBe('200 nobody')
})

it('a service sees the certificate of its route, and the new one after the files have changed', async () => {
  copyFileSync(authority.path('gateway.pem'), authority.path('own.pem'))
  copyFileSync(authority.path('gateway.key'), authority.path('own.key'))
  const url = await start({ ...own, cert: 'own.pem', key: 'own.key' })
  expect(await get(url)).toBe('200 gateway')
  copyFileSync(authority.path('second.pem'), authority.path('own.pem'))
  // the key does not fit yet: what was read before stays in use
  await new Promise(resolve => setTimeout(resolve, 1100))
  closeConnections()
  expect(await get(url)).toBe('200 gateway')
  copyFileSync(authority.path('second.key'), authority.path('own.key'))
  await expect
    .poll(
      async () => {
        closeConnections()
        return await get(url)
      },
      { timeout: 5000 },
    )
    .toBe('200 second')
})

it('a WebSocket to a service is verified and identified in the same way', async () => {
  const url = await start({ ...own, cert: 'gateway.pem', key: 'gateway.key' })
  expect(await upgrade(url)).toContain('gateway')
  await gateway.close()
  await limiter.close()
  expect(await upgrade(await start({ ca: 'stranger.pem', serverName: 'orders.internal' }))).toContain('502')
})

it.each([
  [{ ca: 'none.pem' }, 'none.pem cannot be read (ENOENT)'],
  [{ ca: 'service.pem' }, 'is not the certificate of an authority'],
  [{ cert: 'gateway.pem', key: 'service.key' }, 'is not that of the certificate'],
  [{ cert: 'gateway.pem' }, 'has a cert and no key: add key'],
  [{ key: 'gateway.key' }, 'has a key and no cert: add cert'],
  [{ serverName: '127.0.0.1:80' }, 'must be a host name'],
  [{ veriffy: false }, 'did you mean verify'],
])('a gateway does not start with a route with tls: %j', async (tls, message) => {
  await expect(start(tls)).rejects.toThrow(message)
})

it('a route to services over plain HTTP has no use for tls, and the file says so', async () => {
  await expect(start(own, 'http')).rejects.toThrow('is only for services over https')
})

it('a file with a route whose CA file cannot be read is rejected while the gateway runs', async () => {
  const url = await start(own)
  const rejected = new Promise<string>(resolve =>
    limiter.events.on('rejected', ({ trouble }) => resolve(String(trouble))),
  )
  writeFileSync(
    config(),
    stringify({ rules, gateway: { routes: [{ to: 'https://127.0.0.1:1', tls: { ca: 'none.pem' } }] } }),
  )
  expect(await rejected).toContain('none.pem cannot be read (ENOENT)')
  expect(await get(url)).toBe('200 nobody')
})

function closeConnections(): void {
  for (const socket of sockets) socket.destroy()
  sockets.clear()
}

async function upgrade(url: string): Promise<string> {
  const { port } = new URL(url)
  const socket = connect(Number(port), '127.0.0.1')
  const key = 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13'
  socket.write(`GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${key}\r\n\r\n`)
  return (await socket.setEncoding('latin1').toArray()).join('')
}
