import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, createServer as createTcpServer, type Socket, type Server as TcpServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { routeSchema } from '../../settings/routes/route-settings.ts'
import { Upstream } from '../upstream.ts'
import { faultOf } from './health-checks.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

async function listen(server: Server | TcpServer, where: object = { port: 0, host: '127.0.0.1' }): Promise<number> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => sockets.add(socket.on('error', () => {})))
  server.listen(where)
  await once(server, 'listening')
  closing.push(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return (server.address() as AddressInfo).port
}

async function serve(answer: RequestListener): Promise<string> {
  return `http://127.0.0.1:${await listen(createServer(answer))}`
}

async function serveRaw(onSocket: (socket: Socket) => void): Promise<string> {
  return `http://127.0.0.1:${await listen(createTcpServer(onSocket))}`
}

function check(address: string, check: object = {}): Promise<string | undefined> {
  // the first check of its own would come in an hour
  const { health } = routeSchema.parse({
    to: address,
    health: { check: { path: '/healthz', timeout: '500ms', ...check } },
  })
  const connections = { max: 1, queueSize: 0, queueMs: 1, idleMs: 4000 }
  const settings = { health: { ...health, check: undefined }, connections, timeouts: { connectMs: 5000 } }
  const upstream = new Upstream({ address }, settings)
  closing.push(() => upstream.close())
  return faultOf(upstream, health.check!)
}

describe('a health check', () => {
  test('a health check passes with the statuses of the route, at its path and host', async () => {
    const seen: unknown[] = []
    const url = await serve((request, response) => {
      seen.push([request.method, request.url, request.headers.host, request.headers['user-agent']])
      response.writeHead(request.url!.includes('teapot') ? 418 : 204).end()
    })
    expect(await check(url)).toBeUndefined()
    expect(await check(`${url}/base`, { path: '/up?x=1', host: 'app.test' })).toBeUndefined()
    expect(await check(url, { path: '/teapot' })).toBe('status 418')
    expect(await check(url, { path: '/teapot', statuses: [200, '4xx'] })).toBeUndefined()
    expect(await check(url, { statuses: 200 })).toBe('status 204')
    const host = new URL(url).host
    expect(seen.slice(0, 2)).toEqual([
      ['GET', '/healthz', host, 'diana-health-check'],
      ['GET', '/base/up?x=1', 'app.test', 'diana-health-check'],
    ])
  })

  test('a health check reads no more than the head of an answer without an end, and closes the connection', async () => {
    let sent = 0
    let isClosed = false
    const url = await serve((_request, response) => {
      const more = (): void => {
        while (!response.destroyed && response.write(Buffer.alloc(65_536))) sent += 65_536
      }
      response.on('drain', more).on('close', () => {
        isClosed = true
      })
      more()
    })
    expect(await check(url)).toBeUndefined()
    await expect.poll(() => isClosed).toBe(true)
    expect(sent).toBeLessThan(32 * 1024 * 1024)
  })

  test.each<[string, (socket: Socket) => void, RegExp]>([
    ['says nothing', () => {}, /in time/],
    ['speaks another protocol', socket => socket.end('SSH-2.0-OpenSSH_9.2\r\n'), /./],
    ['hangs up', socket => socket.destroy(), /./],
    ['has headers without an end', socket => socket.write(`HTTP/1.1 200 OK\r\n${'x: y\r\n'.repeat(20_000)}`), /./],
    ['breaks off within its headers', socket => socket.end('HTTP/1.1 200 OK\r\nContent-Le'), /./],
    ['sends its head byte by byte', socket => drip(socket, 'HTTP/1.1 200 OK\r\n'), /in time/],
    ['answers 100 and nothing else', socket => socket.write('HTTP/1.1 100 Continue\r\n\r\n'), /./],
  ])('a health check fails in time at a service that %s', async (_, answer, expected) => {
    const url = await serveRaw(socket => socket.once('data', () => answer(socket)))
    const begun = performance.now()
    expect(await check(url)).toMatch(expected)
    expect(performance.now() - begun).toBeLessThan(5000)
  })

  test('a health check fails if nothing listens at the port or socket', async () => {
    const url = await serve(() => {})
    await closing.pop()!()
    expect(await check(url)).toContain('ECONNREFUSED')
    expect(await check('unix:/nonexistent/app.sock')).toContain('ENOENT')
  })

  test('a health check works over a Unix socket, and over TLS with a valid certificate', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'diana-checks-'))
    closing.push(() => rmSync(folder, { recursive: true }))
    const socket = join(folder, 'app.sock')
    await listen(
      createServer((_request, response) => response.end()),
      { path: socket },
    )
    expect(await check(`unix:${socket}`)).toBeUndefined()
    const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
    const options = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2']
    const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1']
    execFileSync('openssl', ['req', '-x509', ...options, ...subject, '-keyout', key, '-out', cert], { stdio: 'ignore' })
    const pair = { key: readFileSync(key), cert: readFileSync(cert) }
    const port = await listen(createTlsServer(pair, (_request, response) => response.end()) as unknown as Server)
    expect(await check(`https://127.0.0.1:${port}`)).toMatch(/self-signed certificate/)
  })
})

/** Sends one byte after another, each well within any bound between two of them. */
function drip(socket: Socket, text: string): void {
  const [first, ...rest] = text
  if (first === undefined || socket.destroyed) return
  socket.write(first)
  setTimeout(() => drip(socket, rest.join('')), 100).unref()
}
