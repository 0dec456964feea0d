import { once } from 'node:events'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { randomRuns } from '@test/random-runs'
import { createLimiter, type Limiter } from 'diana-limiter'
import fc from 'fast-check'
import type { FastifyInstance } from 'fastify'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createAdmin } from './create-admin.ts'

const token = 'correct-horse-battery-staple'
const most = 256
let limiter: Limiter
let app: FastifyInstance
let address: string
let port: number
const sockets: Socket[] = []

beforeEach(async () => {
  limiter = await createLimiter({ rules: [{ id: 'all', limit: '100/m' }] })
  app = await createAdmin({ limiter, host: '127.0.0.1', token, page: '/no-page' })
  address = await app.listen({ host: '127.0.0.1', port: 0 })
  port = (app.server.address() as AddressInfo).port
})
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy()
  await app.close()
  await limiter.close()
})

async function open(text = ''): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  sockets.push(socket)
  socket.on('error', () => {}).resume()
  await once(socket, 'connect')
  socket.write(text)
  return socket
}

const connections = (): Promise<number> =>
  new Promise((resolve, reject) =>
    app.server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
  )

describe('the connections of the admin API', () => {
  it('the connections of the admin API are bounded, and idle ones do not keep other clients out', async () => {
    const headers = { authorization: `Bearer ${token}` }
    const live = await fetch(`${address}/api/v1/live`, { headers })
    for (let i = 0; i < most + 100; i++) await open(i % 2 === 0 ? '' : 'GET /api/v1/status HTTP/1.1\r\nHost: ')
    expect((await fetch(`${address}/api/v1/status`, { headers })).status).toBe(200)
    expect((await fetch(`${address}/healthz`)).status).toBe(200)
    await expect.poll(connections).toBeLessThanOrEqual(most)
    const reader = live.body!.getReader()
    expect((await reader.read()).done).toBe(false)
    await reader.cancel()
  })

  it('connections of the admin API have ten seconds for headers and thirty for a request', () => {
    expect([app.server.headersTimeout, app.server.requestTimeout]).toEqual([10_000, 30_000])
  })

  it('a connection of the admin API may send any bytes and end at any moment, and the next request is answered', async () => {
    const authorized = `Host: 127.0.0.1\r\nAuthorization: Bearer ${token}\r\n`
    const starts = fc.constantFrom(
      `GET /api/v1/live HTTP/1.1\r\n${authorized}\r\n`,
      `GET /api/v1/live HTTP/1.0\r\n${authorized}\r\n`,
      `HEAD /api/v1/live HTTP/1.1\r\n${authorized}\r\n`,
      `PUT /api/v1/document HTTP/1.1\r\n${authorized}Content-Type: application/json\r\nContent-Length: 900000\r\n\r\n{"text": "`,
      `POST /api/v1/check HTTP/1.1\r\n${authorized}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"tex`,
      `POST /api/v1/check HTTP/1.1\r\n${authorized}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n`,
      `POST /api/v1/check HTTP/1.1\r\n${authorized}Expect: 200-maybe\r\n\r\n`,
      `GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n`,
      `CONNECT 127.0.0.1:1 HTTP/1.1\r\n${authorized}\r\n`,
      'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
      '',
    )
    const bytes = fc.oneof(fc.string({ unit: 'binary', maxLength: 60 }), fc.constant('x'.repeat(100_000)))
    await fc.assert(
      fc.asyncProperty(starts, bytes, fc.boolean(), async (start, more, isAbrupt) => {
        const socket = await open(start + more)
        if (isAbrupt) socket.resetAndDestroy()
        else socket.end()
        expect((await fetch(`${address}/healthz`)).status).toBe(200)
      }),
      { numRuns: randomRuns(40) },
    )
  })
})
