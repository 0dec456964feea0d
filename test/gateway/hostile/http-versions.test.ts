import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import { createLimiter } from 'diana-limiter'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { createAdmin } from '../../../packages/gateway/src/admin/server/create-admin.ts'
import { openDecisionServer } from '../../../packages/gateway/src/serve/decision-server.ts'
import { serveSection } from '../../../packages/gateway/src/serve/serve-settings.ts'
import { GatewayRig, statusesIn } from '../../helpers/gateway-rig.ts'

const rig = new GatewayRig()
afterAll(() => rig.close())

interface Port {
  readonly port: number
  readonly isTls: boolean
  /** A path that is answered with 200. */
  readonly fine: string
}

const ports = new Map<string, Port>()
let received: readonly unknown[] = []

beforeAll(async () => {
  const folder = rig.folder()
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', 'key.pem']
  const args = ['req', '-x509', ...key, '-out', 'cert.pem', '-days', '2', '-subj', '/CN=localhost']
  execFileSync('openssl', args, { cwd: folder, stdio: 'ignore' })
  const tls = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') }
  const service = await rig.serve((request, response) => request.resume().on('end', () => response.end('served')))
  received = service.received
  const routes = [{ to: service.url }]
  const plain = await rig.guard({ gateway: { routes } })
  const filtered = await rig.guard({ gateway: { routes, http2: false } }, { filters: [async () => {}] })
  const secured = await rig.guard({ gateway: { routes, tls } })
  ports.set('the gateway', { port: plain.port, isTls: false, fine: '/fine' })
  ports.set('the gateway with filters and without HTTP/2', { port: filtered.port, isTls: false, fine: '/fine' })
  ports.set('the gateway over TLS', { port: secured.port, isTls: true, fine: '/fine' })
  for (const isTls of [false, true]) {
    const config = join(rig.folder(), 'diana.yaml')
    writeFileSync(config, stringify({ rules: [{ id: 'all', limit: '9/s' }], serve: isTls ? { tls } : {} }))
    const limiter = await createLimiter({ config, sections: [serveSection] })
    const { app, grpc, close } = await openDecisionServer({ limiter, folder, isReady: () => true })
    rig.later(() => limiter.close())
    rig.later(() => close())
    grpc?.server.listen(0, '127.0.0.1')
    const url = await app.listen({ port: 0, host: '127.0.0.1' })
    ports.set(`the decision server${isTls ? ' over TLS' : ''}`, {
      ...{ port: Number(new URL(url).port), isTls, fine: '/healthz' },
    })
  }
  const limiter = await createLimiter({ rules: [{ id: 'all', limit: '9/s' }] })
  const admin = await createAdmin({ limiter, host: '127.0.0.1', page: '/nowhere' })
  rig.later(() => limiter.close())
  rig.later(() => admin.close())
  const url = await admin.listen({ port: 0, host: '127.0.0.1' })
  ports.set('the admin API', { port: Number(new URL(url).port), isTls: false, fine: '/healthz' })
})

/** Sends bytes and gives back all that came until the other side ended. */
async function send({ port, isTls }: Port, bytes: string): Promise<string> {
  const socket: Socket = isTls
    ? connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false, ALPNProtocols: ['http/1.1'] })
    : connect(port, '127.0.0.1')
  socket.setEncoding('latin1').on('error', () => {})
  let answer = ''
  socket.on('data', piece => {
    answer += piece
  })
  socket.write(bytes, 'latin1')
  await Promise.race([once(socket, 'close'), once(socket, 'end')])
  socket.destroy()
  return answer
}

const digits = Array.from({ length: 10 }, (_, digit) => digit)
/** Each version that is one digit, a dot and one digit, except those that are served. */
const versions = digits
  .flatMap(major => digits.map(minor => `${major}.${minor}`))
  .filter(version => version !== '1.0' && version !== '1.1')

const heads: Readonly<Record<string, (version: string) => string>> = {
  'a plain call': version => `GET /ok HTTP/${version}\r\nHost: a\r\n\r\n`,
  'a call without a Host': version => `GET /ok HTTP/${version}\r\n\r\n`,
  'a call of the health path': version => `GET /healthz HTTP/${version}\r\nHost: a\r\n\r\n`,
  'a call with a target that cannot be read': version => `GET /%zz%2e\\ HTTP/${version}\r\nHost: a\r\n\r\n`,
  'a call with a body': version => `POST /ok HTTP/${version}\r\nHost: a\r\nContent-Length: 2\r\n\r\nok`,
  'a chunked call': version =>
    `POST /ok HTTP/${version}\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n`,
  'a call that asks before its body': version =>
    `POST /ok HTTP/${version}\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n`,
  'a call with another expectation': version => `GET /ok HTTP/${version}\r\nHost: a\r\nExpect: 200-maybe\r\n\r\n`,
  'a WebSocket': version =>
    `GET /ok HTTP/${version}\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`,
  'an offer of h2c': version =>
    `GET /ok HTTP/${version}\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n`,
  'a tunnel': version => `CONNECT a:443 HTTP/${version}\r\nHost: a:443\r\n\r\n`,
  'a HEAD': version => `HEAD /ok HTTP/${version}\r\nHost: a\r\n\r\n`,
  'a TRACE': version => `TRACE /ok HTTP/${version}\r\nHost: a\r\n\r\n`,
  'a call of gRPC': version =>
    `POST /ok HTTP/${version}\r\nHost: a\r\nContent-Type: application/grpc\r\nContent-Length: 0\r\n\r\n`,
}

/** Versions that Node's parser reads, and some of those that it does not. */
const oddVersions = ['0.9', '2.0', '0.0', '1.2', '2.1', '3.0', '9.9']

describe('a call of another version of HTTP is answered with 505 before anything else:', () => {
  const names = [
    ...['the gateway', 'the gateway with filters and without HTTP/2', 'the gateway over TLS'],
    ...['the decision server', 'the decision server over TLS', 'the admin API'],
  ]

  test.each(names)('%s answers every version but 1.0 and 1.1 with 505', async name => {
    const port = ports.get(name)!
    const answers = await Promise.all(versions.map(version => send(port, heads['a plain call']!(version))))
    expect(versions.filter((_, at) => statusesIn(answers[at]!).join() !== '505')).toEqual([])
    for (const version of ['1.0', '1.1']) {
      const answer = await send(
        port,
        `GET ${port.fine} HTTP/${version}\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n`,
      )
      expect(statusesIn(answer)).toEqual([200])
    }
  })

  test.each(names)('%s answers each kind of call of another version with 505', async name => {
    const port = ports.get(name)!
    const before = received.length
    const sent = Object.entries(heads).flatMap(([kind, write]) =>
      oddVersions.map(version => ({ what: `${kind} of HTTP/${version}`, bytes: write(version) })),
    )
    const answers = await Promise.all(sent.map(({ bytes }) => send(port, bytes)))
    const wrong = sent.flatMap(({ what }, at) => {
      const statuses = statusesIn(answers[at]!).join()
      return statuses === '505' ? [] : [`${what}: ${statuses || 'no answer'}`]
    })
    expect(wrong).toEqual([])
    expect(received.length).toBe(before)
  })

  test.each(names)('%s answers the call before one of another version first, and none behind it', async name => {
    const port = ports.get(name)!
    const fine = `GET ${port.fine} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`
    for (const version of ['0.9', '2.0', '1.2']) {
      const answer = await send(port, fine + heads['a plain call']!(version) + fine)
      expect([version, ...statusesIn(answer)]).toEqual([version, 200, 505])
    }
  })

  test('a call of HTTP/2.0 on a plain connection leaves nothing that a timer fails on', async () => {
    const port = ports.get('the gateway')!
    const errors: unknown[] = []
    const note = (error: unknown): void => void errors.push(error)
    process.on('uncaughtExceptionMonitor', note)
    const sockets = ['2.0', '0.9'].map(version => {
      const socket = connect(port.port, '127.0.0.1').on('error', () => {})
      socket.write(`POST /ok HTTP/${version}\r\nHost: a\r\nContent-Length: 100\r\n\r\n`)
      return socket
    })
    // two turns of the clock that looks at transfers
    await new Promise(resolve => setTimeout(resolve, 1100))
    for (const socket of sockets) socket.destroy()
    process.off('uncaughtExceptionMonitor', note)
    expect(errors).toEqual([])
  })
})
