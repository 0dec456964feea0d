import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { connect as connectHttp2 } from 'node:http2'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import { request } from 'undici'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { GatewayRig, type Guarded, sendRaw } from '../../helpers/gateway-rig.ts'
import { Authority } from '../../helpers/tls/authority.ts'

const rig = new GatewayRig()
let authority: Authority
beforeAll(() => {
  authority = new Authority()
  authority.issue('gateway')
})
afterEach(() => rig.close())
afterAll(() => authority.close())

const text = 'PROXY TCP4 203.0.113.9 198.51.100.1 56324 443\r\n'
const textOfIPv6 = 'PROXY TCP6 2001:db8::9 2001:db8::1 56324 443\r\n'
const signature = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1')
const binary = Buffer.concat([
  signature,
  Buffer.from([0x21, 0x11, 0, 19, 203, 0, 113, 9, 198, 51, 100, 1, 0xdc, 4, 1, 0xbb]),
  // a TLV that nothing here reads
  Buffer.from([4, 0, 4, 1, 2, 3, 4]),
])
const local = Buffer.concat([signature, Buffer.from([0x20, 0, 0, 0])])
const get = 'GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'

/** A gateway that answers each address once, in front of a service that repeats what it was told of the caller. */
async function guard(gateway: object = {}, rules?: object[]): Promise<Guarded & { readonly log: string[] }> {
  const { url } = await rig.serve(({ headers }, response) => response.end(`from ${headers['x-forwarded-for']}`))
  const log: string[] = []
  const logger = { level: 'warn', stream: { write: (line: string) => void log.push(line) } }
  const document = {
    trustProxy: ['127.0.0.1'],
    rules: rules ?? [{ id: 'all', limit: '1000/s' }],
    gateway: { listen: { proxyProtocol: true }, routes: [{ to: url }], ...gateway },
  }
  return Object.assign(await rig.guard(document, { logger, folder: authority.folder }), { log })
}

describe('a connection that begins with a PROXY header', () => {
  test.each<[string, string | Buffer, string]>([
    ['of version 1', text, '203.0.113.9'],
    ['of version 1 with IPv6', textOfIPv6, '2001:db8::9'],
    ['of version 2 with a TLV', binary, '203.0.113.9'],
    ['that is LOCAL', local, '127.0.0.1'],
    ['that is UNKNOWN', 'PROXY UNKNOWN\r\n', '127.0.0.1'],
  ])('%s is served for the address in it', async (_, header, address) => {
    const { port } = await guard()
    expect(await sendRaw(port, Buffer.concat([Buffer.from(header), Buffer.from(get)]))).toContain(`from ${address}`)
    expect(await sendRaw(port, header, get)).toContain(`from ${address}`)
  })

  test.each<[string, Buffer]>([
    ['1', Buffer.from(text)],
    ['2', binary],
  ])('a PROXY header of version %s is read in any split', async (_, header) => {
    const { port } = await guard()
    const bytes = Buffer.concat([header, Buffer.from(get)])
    for (const step of [1, 7, header.length - 1, header.length + 1]) {
      const socket = connect(port, '127.0.0.1').setNoDelay()
      for (let at = 0; at < bytes.length; at += step) {
        socket.write(bytes.subarray(at, at + step))
        await new Promise(resolve => setImmediate(resolve))
      }
      expect((await socket.setEncoding('latin1').toArray()).join('')).toContain('from 203.0.113.9')
    }
  })

  test.each<[string, string | Buffer]>([
    ['1', text],
    ['2', binary],
  ])('a call over TLS after a PROXY header of version %s is served', async (_, header) => {
    const { port } = await guard({ tls: { cert: 'gateway.pem', key: 'gateway.key' } })
    const socket = connect(port, '127.0.0.1')
    socket.write(header)
    const secure = connectTls({ socket, rejectUnauthorized: false })
    secure.write(get)
    expect((await secure.setEncoding('latin1').toArray()).join('')).toContain('from 203.0.113.9')
  })

  test.each<[string, string | Buffer, boolean]>([
    ['1', text, false],
    ['2', binary, false],
    ['1 over TLS', text, true],
    ['2 over TLS', binary, true],
  ])('a call over HTTP/2 after a PROXY header of version %s is served', async (_, header, isSecure) => {
    const { port } = await guard(isSecure ? { tls: { cert: 'gateway.pem', key: 'gateway.key' } } : {})
    const plain = connect(port, '127.0.0.1')
    plain.write(header)
    const socket = isSecure ? connectTls({ socket: plain, rejectUnauthorized: false, ALPNProtocols: ['h2'] }) : plain
    const session = connectHttp2(`${isSecure ? 'https' : 'http'}://127.0.0.1`, { createConnection: () => socket })
    const stream = session.request({ ':path': '/' }).setEncoding('latin1')
    expect((await stream.toArray()).join('')).toBe('from 203.0.113.9')
    session.destroy()
    expect(
      await sendRaw(port, header, 'GET / HTTP/1.1\r\nHost: a\r\n\r\nPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
    ).not.toContain('\0')
  })

  test('a connection with a PROXY header is counted by its address, and a caller cannot prepend another', async () => {
    const { port } = await guard({}, [{ id: 'each', by: 'ip', limit: '1/h' }])
    const forged = get.replace('Host', 'X-Forwarded-For: 192.0.2.7\r\nHost')
    expect(await sendRaw(port, text, forged)).toContain(' 200 ')
    expect(await sendRaw(port, binary, get)).toContain(' 503 ')
    expect(await sendRaw(port, textOfIPv6, get)).toContain(' 200 ')
  })

  test('a connection with a PROXY header counts for the connections of its address', async () => {
    const { port } = await guard({ limits: { connectionsPerCaller: 1 } })
    const first = connect(port, '127.0.0.1')
    first.write(text)
    first.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    await once(first, 'data')
    expect(await sendRaw(port, binary, get)).toContain(' 429 ')
    expect(await sendRaw(port, textOfIPv6, get)).toContain(' 200 ')
    first.destroy()
  })
})

describe('a connection without the header of a proxy', () => {
  test.each<[string, string | Buffer]>([
    ['without a header', get],
    ['with a header that is wrong', `PROXY TCP4 203.0.113.9\r\n${get}`],
    ['with a header that does not end', `PROXY ${'x'.repeat(200)}`],
    ['with a header of version 2 that is too long', Buffer.concat([signature, Buffer.from([0x21, 0x11, 0xff, 0xff])])],
  ])('a connection is closed without an answer and reported, %s', async (_, bytes) => {
    const { port, log } = await guard()
    expect(await sendRaw(port, bytes)).toBe('')
    expect(log.join()).toContain('without a valid PROXY header (1 connections closed')
    expect(await sendRaw(port, text, get)).toContain(' 200 ')
  })

  test('a connection is closed without an answer, and reported, if it comes from an address that is not trusted', async () => {
    const { rewrite, limiter, port, log } = await guard()
    const changed = once(limiter.events, 'rules')
    const listen = { proxyProtocol: true }
    rewrite({ trustProxy: ['192.0.2.1'], gateway: { listen, routes: [{ to: 'http://127.0.0.1:1' }] } })
    await changed
    const socket = connect(port, '127.0.0.1')
    expect(await socket.toArray().catch(() => [])).toEqual([])
    expect(log.join()).toContain('127.0.0.1 is not a trusted proxy: name it under trustProxy')
  })

  test('a connection is closed without an answer, and reported, if it ends before its header does', async () => {
    const { port } = await guard()
    const socket = connect(port, '127.0.0.1')
    socket.end('PROXY TCP4')
    expect(await socket.toArray()).toEqual([])
  })

  test('a connection is closed without an answer, and reported, if its header has not come when the gateway ends', async () => {
    const { gateway, port } = await guard({ shutdown: { timeout: '300ms' } })
    const socket: Socket = connect(port, '127.0.0.1')
    await once(socket, 'connect')
    socket.write('PROXY')
    socket.on('error', () => {}).resume()
    const begun = performance.now()
    await Promise.all([gateway.close(), once(socket, 'close')])
    expect(performance.now() - begun).toBeLessThan(2000)
  })
})

test.each([0, 1, []])('a gateway with proxyProtocol does not start with trustProxy: %j', async trustProxy => {
  const { url } = await rig.serve()
  const document = { trustProxy, gateway: { listen: { proxyProtocol: true }, routes: [{ to: url }] } }
  await expect(rig.guard(document)).rejects.toThrow('proxyProtocol needs the addresses of trusted proxies')
})

test('a reload to a number of trusted proxies lets no caller send a PROXY header', async () => {
  const { rewrite, limiter, port } = await guard()
  const changed = once(limiter.events, 'rules')
  rewrite({ trustProxy: 1, gateway: { listen: { proxyProtocol: true }, routes: [{ to: 'http://127.0.0.1:1' }] } })
  await changed
  const socket = connect(port, '127.0.0.1')
  expect(await socket.toArray().catch(() => [])).toEqual([])
})

test('a PROXY header without proxyProtocol is a bad request', async () => {
  const { port } = await guard({ listen: {} })
  expect(await sendRaw(port, text, get)).toContain(' 400 ')
})

/** A program on the way to the gateway, given a free port. */
async function through(program: string, args: (folder: string) => string[], config: (port: number) => string) {
  const taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  const { port } = taken.address() as AddressInfo
  taken.close()
  const folder = rig.folder()
  mkdirSync(join(folder, 'logs'))
  writeFileSync(join(folder, 'proxy.conf'), config(port))
  const child = spawn(program, args(folder), { stdio: 'ignore' })
  rig.later(() => child.kill('SIGKILL'))
  const url = `http://127.0.0.1:${port}`
  await expect.poll(async () => (await request(url).catch(() => undefined))?.statusCode, { timeout: 5000 }).toBe(200)
  return url
}

/** nginx with its stream module, which some packages leave out. */
const streamModule = ['/usr/lib/nginx/modules', '/usr/lib64/nginx/modules', process.env.NGINX_MODULES ?? '']
  .map(folder => join(folder, 'ngx_stream_module.so'))
  .find(path => existsSync(path))

describe('real proxies in front', () => {
  test.each(['send-proxy', 'send-proxy-v2'])(
    'HAProxy with %s passes the address of the caller, and its health checks pass',
    async word => {
      const { port } = await guard()
      const url = await through(
        'haproxy',
        folder => ['-db', '-f', join(folder, 'proxy.conf')],
        listening => `
defaults
  mode tcp
  timeout connect 5s
  timeout client 5s
  timeout server 5s
listen gateway
  bind 127.0.0.1:${listening}
  source 127.0.0.1
  server one 127.0.0.1:${port} ${word} check inter 100ms
`,
      )
      // the caller is the test itself, from another address than HAProxy's own
      const socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1', localAddress: '127.0.0.5' })
      socket.write(get)
      expect((await socket.setEncoding('latin1').toArray()).join('')).toContain('from 127.0.0.5')
    },
  )

  test.runIf(streamModule)('nginx with proxy_protocol on passes the address of the caller', async () => {
    const { port } = await guard()
    const url = await through(
      'nginx',
      folder => ['-p', folder, '-c', join(folder, 'proxy.conf')],
      listening => `
daemon off; master_process off; pid nginx.pid; error_log logs/error.log;
load_module ${streamModule};
events {}
stream { server { listen 127.0.0.1:${listening}; proxy_pass 127.0.0.1:${port}; proxy_protocol on; proxy_bind 127.0.0.1; } }
`,
    )
    const socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1', localAddress: '127.0.0.5' })
    socket.write(get)
    expect((await socket.setEncoding('latin1').toArray()).join('')).toContain('from 127.0.0.5')
  })
})
