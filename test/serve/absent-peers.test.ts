import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { connect, type Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { spoeHello } from '../fuzz/plan/spoe.mjs'
import { GatewayRig } from '../helpers/gateway-rig.ts'
import { build, startProgram } from '../helpers/program-rig.ts'
import { Authority } from '../helpers/tls/authority.ts'
import { type ServeProgram, startServe } from './serve-rig.ts'

// The system no longer knows the address of a peer that resets its connection before the server looks at it, and still gives the server
// what that peer has sent. The server is stopped meanwhile, as a busy one would come too late.

const rig = new GatewayRig()
const authority = new Authority()
const rules = [{ id: 'account', by: 'account', limit: '100/h', match: 'none' }]
const json = JSON.stringify({ method: 'GET', path: '/', attributes: { account: 'ann' }, rules: ['account'] })
const field = (text: string): string => String.fromCharCode(text.length) + text
/** A question of HAProxy: GET /. */
const notify = `\x03\0\0\0\x01\x01\x01${field('check')}\x03${field('method')}\x08${field('GET')}${field('target')}\x08${field('/')}${field('ip')}\x08${field('192.0.2.1')}`

const questions: Readonly<Record<string, string>> = {
  'POST /v1/check': `POST /v1/check HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${json.length}\r\n\r\n${json}`,
  'GET /check': 'GET /check HTTP/1.1\r\nHost: a\r\nX-Forwarded-Method: GET\r\nX-Forwarded-Uri: /\r\n\r\n',
  'GET /check/nginx': 'GET /check/nginx HTTP/1.1\r\nHost: a\r\nX-Original-Method: GET\r\nX-Original-URI: /\r\n\r\n',
  redis: '*3\r\n$11\r\nDIANA.CHECK\r\n$7\r\naccount\r\n$3\r\nann\r\n',
  spoe: spoeHello() + String.fromCharCode(0, 0, 0, notify.length) + notify,
}

let plain: ServeProgram
let secured: ServeProgram

beforeAll(async () => {
  build()
  authority.issue('localhost', { names: 'DNS:localhost' })
  const serve = { redis: { port: 0 }, spoe: { port: 0 } }
  const all = { rules: [...rules, { id: 'all', limit: '100/h' }], trustProxy: ['10.0.0.0/8'] }
  const tls = { cert: authority.path('localhost.pem'), key: authority.path('localhost.key') }
  const args = ['--admin-port', '0']
  ;[plain, secured] = await Promise.all([
    startServe(rig, { ...all, serve }, args),
    startServe(rig, { ...all, serve: { ...serve, tls } }, args),
  ])
})
afterAll(async () => {
  await rig.close()
  authority.close()
})

const portIn = (address: string | undefined): number => Number(address!.split(':').at(-1))
const portOf = (server: ServeProgram, question: string): number =>
  question === 'redis'
    ? portIn(server.redis)
    : question === 'spoe'
      ? portIn(server.spoe)
      : portIn(new URL(server.url).host)

/** The calls that a server has judged. */
async function judged(said: string): Promise<number> {
  const text = await (await fetch(`${/Dashboard: (\S+)/.exec(said)![1]}/metrics`)).text()
  return [...text.matchAll(/^diana_calls_total\{[^}]*\} (\d+)$/gm)].reduce((sum, [, count]) => sum + Number(count), 0)
}

async function opened(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1').on('error', () => {})
  await once(socket, 'connect')
  return socket
}

/** Sends a question and resets the connection while the server is stopped. */
async function askAndLeave({ child }: Pick<ServeProgram, 'child'>, port: number, ask: (socket: Socket) => void) {
  child.kill('SIGSTOP')
  const socket = await opened(port)
  ask(socket)
  await pause(20)
  socket.resetAndDestroy()
  await pause(20)
  child.kill('SIGCONT')
  await pause(100)
}

/** Does the same over TLS: the server is stopped when its part of the handshake has come. */
async function askAndLeaveOverTls(server: ServeProgram, port: number, ask: (socket: Duplex) => void): Promise<void> {
  const socket = await opened(port)
  const between = new Duplex({
    read: () => {},
    write: (chunk, _encoding, done) => socket.write(chunk, () => done()),
  })
  let hasStopped = false
  socket.on('data', piece => {
    if (!hasStopped) server.child.kill('SIGSTOP')
    hasStopped = true
    between.push(piece)
  })
  const tls = connectTls({ socket: between, rejectUnauthorized: false }).on('error', () => {})
  await once(tls, 'secureConnect')
  ask(tls)
  await pause(20)
  socket.resetAndDestroy()
  await pause(20)
  server.child.kill('SIGCONT')
  await pause(100)
}

/** A question over gRPC: ShouldRateLimit about domain a, user ann. */
function askGrpc(socket: Duplex): void {
  const message = Buffer.from('\x0a\x01a\x12\x0d\x0a\x0b\x0a\x04user\x12\x03ann', 'latin1')
  const session = connectHttp2('http://localhost', { createConnection: () => socket }).on('error', () => {})
  const stream = session.request({
    ...{ ':method': 'POST', ':path': '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit' },
    ...{ 'content-type': 'application/grpc', te: 'trailers' },
  })
  stream.on('error', () => {})
  stream.end(Buffer.concat([Buffer.from([0, 0, 0, 0, message.length]), message]))
}

describe('a peer that has left before it is looked at', () => {
  it.each(Object.keys(questions))('a peer that has left asks nothing: %s', async question => {
    const bytes = Buffer.from(questions[question]!, 'latin1')
    for (let times = 0; times < 3; times++)
      await askAndLeave(plain, portOf(plain, question), socket => socket.write(bytes))
    expect(await judged(plain.said())).toBe(0)
  })

  it('a peer that has left asks nothing over gRPC', async () => {
    for (let times = 0; times < 3; times++) await askAndLeave(plain, portIn(plain.grpc), askGrpc)
    expect(await judged(plain.said())).toBe(0)
  })

  it.each(Object.keys(questions).filter(question => question !== 'spoe'))(
    'a peer that has left asks nothing over TLS: %s',
    async question => {
      const bytes = Buffer.from(questions[question]!, 'latin1')
      for (let times = 0; times < 3; times++)
        await askAndLeaveOverTls(secured, portOf(secured, question), socket => void socket.write(bytes))
      expect(await judged(secured.said())).toBe(0)
    },
  )

  it('a peer that has left asks nothing over gRPC with TLS', async () => {
    for (let times = 0; times < 3; times++) await askAndLeaveOverTls(secured, portIn(secured.grpc), askGrpc)
    expect(await judged(secured.said())).toBe(0)
  })

  it('a peer that has left before it is looked at is not counted by the gateway as a caller without an address', async () => {
    const service = await rig.serve()
    const document = { rules: [{ id: 'address', by: 'ip', limit: '2/h' }], gateway: { routes: [{ to: service.url }] } }
    const gateway = await startProgram(rig, document, ['--admin-port', '0'])
    const call = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'
    for (let times = 0; times < 4; times++) {
      await askAndLeave(gateway, portIn(new URL(gateway.url).host), socket => socket.write(call))
    }
    expect([service.received.length, await judged(gateway.said())]).toEqual([0, 0])
    expect((await fetch(gateway.url)).status).toBe(200)
  })
})
