import { chmodSync, writeFileSync } from 'node:fs'
import type { OutgoingHttpHeaders } from 'node:http2'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import fc from 'fast-check'
import { expect, vi } from 'vitest'
import { startProgram } from '../clients/client.ts'
import { freePort } from '../helpers/free-port.mjs'
import type { GatewayRig } from '../helpers/gateway-rig.ts'
import { block, flags, frame, preface } from '../helpers/http2-frames.ts'
import { Http2Caller } from '../helpers/http2-rig.ts'

/** A proxy that speaks HTTP/2 with callers, and with what is behind it. */
export interface Http2Proxy {
  readonly name: string
  /** Starts it in front of a port of this machine; returns its address. */
  start(rig: GatewayRig, port: number): Promise<string>
}

export const http2Proxies: readonly Http2Proxy[] = [
  {
    name: 'HAProxy',
    async start(rig, behind) {
      const port = await freePort()
      const file = join(rig.folder(), 'haproxy.cfg')
      writeFileSync(
        file,
        `defaults
  mode http
  timeout connect 5s
  timeout client 20s
  timeout server 20s
  http-reuse always
frontend callers
  bind 127.0.0.1:${port} proto h2
  default_backend diana
backend diana
  server one 127.0.0.1:${behind} proto h2
`,
      )
      startProgram(rig, 'haproxy', ['-db', '-f', file])
      return await untilItAnswers(port)
    },
  },
  {
    name: 'Caddy',
    async start(rig, behind) {
      const port = await freePort()
      const file = join(rig.folder(), 'Caddyfile')
      writeFileSync(
        file,
        `{
  admin off
  auto_https off
  servers {
    protocols h1 h2 h2c
  }
}
http://127.0.0.1:${port}, http://a.test:${port}, http://:${port} {
  reverse_proxy h2c://127.0.0.1:${behind}
}
`,
      )
      startProgram(rig, 'caddy', ['run', '--adapter', 'caddyfile', '--config', file])
      return await untilItAnswers(port)
    },
  },
  {
    name: 'nginx with grpc_pass',
    async start(rig, behind) {
      const port = await freePort()
      const folder = rig.folder()
      // started by root, nginx works as another user
      chmodSync(folder, 0o755)
      const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
        name => `${name}_temp_path ${folder}/${name};`,
      )
      writeFileSync(
        join(folder, 'nginx.conf'),
        `daemon off; pid ${folder}/pid; error_log ${folder}/error.log; worker_processes 1;
events { worker_connections 2048; }
http { access_log off; ${temporary.join(' ')}
  upstream diana { server 127.0.0.1:${behind}; keepalive 4; }
  server { listen 127.0.0.1:${port} http2; keepalive_requests 1000000; location / { grpc_pass grpc://diana; } }
}`,
      )
      startProgram(rig, 'nginx', ['-e', `${folder}/error.log`, '-c', join(folder, 'nginx.conf')])
      return await untilItAnswers(port)
    },
  },
]

async function untilItAnswers(port: number): Promise<string> {
  const url = `http://127.0.0.1:${port}`
  const status = async (): Promise<number | undefined> => {
    const caller = new Http2Caller(url)
    const answer = await caller.call({ ':path': '/ready' }).catch(() => undefined)
    await caller.close()
    return answer?.status
  }
  await vi.waitFor(async () => expect(await status()).toBeLessThan(500), { timeout: 20_000, interval: 50 })
  return url
}

type Header = readonly [name: string, value: string]
const method = [':method', 'POST'] as const
const scheme = [':scheme', 'http'] as const
const authority = [':authority', 'a.test'] as const
const path = [':path', '/quick'] as const
const usual: readonly Header[] = [method, scheme, authority, path]

/** Calls of HTTP/2 that a proxy and the server behind it could read in two ways, as header lists. */
export const oddHeaderLists: readonly (readonly Header[])[] = [
  ...[
    ['host', 'b.test'],
    ['host', 'a.test'],
    ['host', ''],
    ['te', 'chunked'],
    ['te', 'trailers, chunked'],
  ].map(([name, value]) => [...usual, [name!, value!] as const]),
  ...[
    'transfer-encoding',
    'connection',
    'keep-alive',
    'proxy-connection',
    'upgrade',
    'Content-Length',
    'x\r\ny',
    'x y',
    ' x',
    'x:',
  ].map(name => [...usual, [name, 'chunked'] as const]),
  ...['0', '1', '5', '999999', '-1', '1, 2', '+5', '5 ', '0x5', '99999999999999999999'].map(length => [
    ...usual,
    ['content-length', length] as const,
  ]),
  [...usual, ['content-length', '5'], ['content-length', '6']],
  ...[
    '/quick HTTP/1.1\r\nhost: b.test\r\n\r\nGET /other',
    'quick',
    '',
    '*',
    '//b.test/quick',
    'http://b.test/quick',
    '/quick#x',
    '/a b',
  ].map(target => [method, scheme, authority, [':path', target] as const]),
  ...['POST / HTTP/1.1\r\nx: ', 'post', '', 'CONNECT', 'PRI', 'GET\t'].map(name => [
    [':method', name] as const,
    scheme,
    authority,
    path,
  ]),
  ...['a.test\r\nx: y', 'a.test, b.test', 'user@a.test', '', 'a.test:99999', '[::1'].map(name => [
    method,
    scheme,
    [':authority', name] as const,
    path,
  ]),
  ...['https', 'http://b.test/', '', 'HTTP'].map(name => [method, [':scheme', name] as const, authority, path]),
  [method, scheme, path],
  [method, authority, path],
  [scheme, authority, path],
  [method, scheme, authority],
  [...usual, path],
  [...usual, [':path', '/other']],
  [...usual, [':status', '200']],
  [...usual, [':protocol', 'websocket']],
  [['x-first', '1'], ...usual],
  [...usual, ['cookie', 'a=b'], ['cookie', 'c=d']],
  [...usual, ['x', 'y\r\nset: z']],
  [...usual, ['x', 'y\u0000z']],
  [...usual, ['x-forwarded-for', '1.2.3.4'], ['x-forwarded-for', '5.6.7.8']],
  [...usual, ['expect', '100-continue']],
]

/**
 * Node 20 itself ends a connection after 1000 resets that it reads in one piece, and its bound cannot be raised. The caller, the service
 * and the gateway are one process here, so that a proxy often has that many to send.
 */
const [major, minor] = process.versions.node.split('.').map(Number) as [number, number]
export const mostResets: number = major > 22 || (major === 22 && minor >= 10) ? 4000 : 1200

/** Opens streams and resets them at once, over as many connections as the proxy asks for. */
export async function resetMany(url: string, headers: OutgoingHttpHeaders, total: number): Promise<void> {
  let attacker = new Http2Caller(url)
  for (let sent = 0; sent < total; ) {
    // a proxy that ends the connection of the attacker gets the next one
    if (attacker.session.destroyed || attacker.session.closed) attacker = new Http2Caller(url)
    for (let i = 0; i < 50; i++, sent++) {
      try {
        const stream = attacker.open(headers, true)
        setTimeout(() => stream.close(8), i % 4).unref()
      } catch {
        break
      }
    }
    await pause(10)
  }
  await attacker.close()
}

/** A header list in one frame or several, with a body of some length, with trailers, or cut off. */
export const ways = fc.record({
  headers: fc.constantFrom(...oddHeaderLists),
  pieces: fc.constantFrom(1, 2, 3),
  body: fc.constantFrom('', 'hello', 'GET /other HTTP/1.1\r\nhost: b.test\r\n\r\n', 'x'.repeat(2000)),
  end: fc.constantFrom('data', 'trailers', 'odd trailers', 'reset', 'never'),
})
export type Way = typeof ways extends fc.Arbitrary<infer T> ? T : never

/** Returns a connection of HTTP/2 with one call as its bytes. */
export function framesOf({ headers, pieces, body, end }: Way): Buffer {
  const list = block(headers)
  const size = Math.ceil(list.length / pieces)
  const parts = Array.from({ length: pieces }, (_, n) => list.subarray(n * size, (n + 1) * size))
  const open = parts.map((part, n) =>
    frame(n === 0 ? 'headers' : 'continuation', n === pieces - 1 ? flags.endHeaders : flags.none, 1, part),
  )
  const trailers =
    end === 'odd trailers'
      ? [
          [':path', '/other'],
          ['content-length', '7'],
        ]
      : [['x-after', '1']]
  const last: Readonly<Record<Way['end'], Buffer>> = {
    data: frame('data', flags.endStream, 1),
    trailers: frame('headers', flags.endHeaders | flags.endStream, 1, block(trailers as [string, string][])),
    'odd trailers': frame('headers', flags.endHeaders | flags.endStream, 1, block(trailers as [string, string][])),
    reset: frame('reset', flags.none, 1, Buffer.from([0, 0, 0, 8])),
    never: Buffer.alloc(0),
  }
  const data = body === '' ? [] : [frame('data', flags.none, 1, Buffer.from(body))]
  return Buffer.concat([preface, frame('settings', flags.none, 0), ...open, ...data, last[end]])
}

export function sendFrames(url: string, bytes: Buffer): Promise<void> {
  return new Promise(resolve => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    socket.on('error', () => {})
    socket.on('close', () => resolve())
    socket.resume().write(bytes)
    setTimeout(() => socket.destroy(), 60)
  })
}
