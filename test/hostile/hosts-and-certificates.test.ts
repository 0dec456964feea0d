import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import { connect as connectHttp2 } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls'
import { answerOn } from '@test/http2-rig'
import { randomRuns } from '@test/random-runs'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { clientCertificateOf } from '../../packages/limiter/src/http/client-certificate.ts'
import { Authority } from '../helpers/tls/authority.ts'
import { startTlsGateway, type TlsGateway } from '../helpers/tls/tls-gateway.ts'
import { type HostCall, hostCalls } from './hosts-and-certificates.ts'

// The service that answers a call, the rule that counts it and the certificate that it is counted by are those of one host and one
// caller, by any name of the connection, spelling of the host or header.

let authority: Authority
let stranger: Authority
let gateway: TlsGateway
const services = new Map<string, Server>()
const received: IncomingMessage[] = []

const good = ['billing', 'orders']
const bad = ['late', 'revoked', 'stranger', 'self', 'below']

beforeAll(async () => {
  authority = new Authority()
  stranger = new Authority()
  for (const name of ['a.test', 'b.test']) authority.issue(name, { names: `DNS:${name}` })
  for (const name of [...good, 'revoked']) authority.issue(name)
  authority.issue('late', { days: -1, subject: '/CN=billing' })
  stranger.issue('billing')
  // signed by a certificate that is no authority
  authority.issue('below', { subject: '/CN=billing', issuer: 'orders' })
  authority.issue('odd', { subject: '/CN=odd\nCN=billing' })
  authority.revoke('revoked')
  for (const name of ['a.test', 'b.test']) {
    const server = createServer((request, response) => {
      received.push(request)
      request.resume().on('end', () => response.end(name))
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    services.set(name, server)
  }
  const certificates = ['a.test', 'b.test'].map(name => ({ cert: `${name}.pem`, key: `${name}.key` }))
  gateway = await startTlsGateway(authority, {
    rules: [
      { id: 'host-a.test', match: { host: 'a.test' }, limit: '100000/h' },
      { id: 'host-b.test', match: { host: 'b.test' }, limit: '100000/h' },
      { id: 'certificate', by: 'client-certificate:cn', missing: 'skip', limit: '100000/h' },
    ],
    gateway: {
      tls: { certificates, clients: { ca: 'ca.pem', crl: 'ca.crl', require: false, forward: true } },
      routes: [...services].map(([host, server]) => ({
        host,
        to: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      })),
    },
  })
})
afterAll(async () => {
  await gateway.close()
  for (const server of services.values()) server.close()
  authority.close()
  stranger.close()
})

function identityOf(caller: string): ConnectionOptions {
  if (caller === 'none') return {}
  if (caller === 'stranger') return { cert: stranger.pem('billing.pem'), key: stranger.pem('billing.key') }
  if (caller === 'self') return { cert: stranger.pem('ca.pem'), key: stranger.pem('ca.key') }
  return { cert: authority.pem(`${caller}.pem`), key: authority.pem(`${caller}.key`) }
}

function open(
  { sni, protocol, caller }: Pick<HostCall, 'sni' | 'protocol' | 'caller'>,
  more: ConnectionOptions = {},
): TLSSocket {
  const options = { port: gateway.port, host: '127.0.0.1', rejectUnauthorized: false, ALPNProtocols: [protocol] }
  const socket = connect({ ...options, ...(sni !== undefined && { servername: sni }), ...identityOf(caller), ...more })
  socket.on('error', () => {})
  return socket
}

interface Seen {
  readonly status: number
  readonly body: string
  /** The names of the rules that have counted it. */
  readonly rules: string
}

async function call1(call: HostCall, socket: TLSSocket): Promise<Seen | undefined> {
  const headers = [
    ...call.hosts.map(one => `Host: ${one}`),
    ...Object.entries(call.forged).map(pair => pair.join(': ')),
  ]
  socket.write(`GET ${call.target} HTTP/1.1\r\n${headers.map(line => `${line}\r\n`).join('')}Connection: close\r\n\r\n`)
  let text = ''
  socket.setEncoding('latin1').on('data', piece => {
    text += piece
  })
  await new Promise(resolve => socket.on('close', resolve))
  const [head = '', body = ''] = text.split('\r\n\r\n')
  const status = Number(/^HTTP\/1\.1 (\d+)/.exec(head)?.[1] ?? 0)
  return status === 0 ? undefined : { status, body, rules: /^ratelimit-policy: (.*)$/im.exec(head)?.[1] ?? '' }
}

async function call2(call: HostCall, socket: TLSSocket): Promise<Seen | undefined> {
  await new Promise(resolve => socket.on('secureConnect', resolve).on('close', resolve))
  const session = connectHttp2('https://none.test', { createConnection: () => socket })
  session.on('error', () => {})
  try {
    const headers = {
      ...{ ':method': 'GET', ':scheme': 'https', ':path': '/x', ':authority': call.authority ?? '' },
      ...(call.hosts.length > 0 && { host: call.hosts[0]! }),
      ...Object.fromEntries(Object.entries(call.forged).map(([name, value]) => [name.toLowerCase(), value])),
    }
    const stream = session.request(headers)
    stream.on('error', () => {})
    const { status, body, headers: answered } = await answerOn(stream)
    return status === undefined ? undefined : { status, body, rules: String(answered['ratelimit-policy'] ?? '') }
  } catch {
    return undefined // Node's own client does not send it
  } finally {
    session.destroy()
  }
}

const commonName = (request: IncomingMessage): string | undefined => {
  const header = request.headers['client-cert']
  if (header === undefined) return undefined
  return new X509Certificate(Buffer.from(String(header).slice(1, -1), 'base64')).subject?.replace(/^CN=/, '')
}

test('a host by any spelling, name of the connection or header is served, counted and identified as one', async () => {
  const before = received.length
  let served = 0
  let tried = 0
  const property = fc.asyncProperty(hostCalls(['none', ...good]), async call => {
    const first = received.length
    tried++
    const seen = await (call.protocol === 'h2' ? call2 : call1)(call, open(call))
    const got = received.slice(first)
    expect(got.length).toBeLessThanOrEqual(1)
    const [request] = got
    if (request === undefined) {
      expect(seen?.status ?? 404).toBeGreaterThanOrEqual(400)
      return
    }
    served++
    const host = seen?.body ?? ''
    // the service gets the host that was counted, once
    const hosts = request.rawHeaders.filter((_, at) => at % 2 === 0 && request.rawHeaders[at]!.toLowerCase() === 'host')
    expect(hosts).toHaveLength(1)
    expect(request.headers.host?.toLowerCase().replace(/\.?(:\d+)?$/, '')).toBe(host)
    expect(request.url).toMatch(/^\/(?!\/)/)
    expect(seen?.rules).toContain(`"host-${host}"`)
    expect(seen?.rules).not.toContain(`"host-${host === 'a.test' ? 'b.test' : 'a.test'}"`)
    // identified by the certificate of the connection, and by nothing else
    expect(commonName(request)).toBe(call.caller === 'none' ? undefined : call.caller)
    expect(seen?.rules.includes('"certificate"')).toBe(call.caller !== 'none')
    expect(request.headers).not.toHaveProperty('client-cert-chain')
    expect(request.rawHeaders.filter(name => /^client.cert/i.test(name)).length).toBeLessThanOrEqual(1)
  })
  await fc.assert(property, { numRuns: randomRuns(250) })
  expect(served).toBeGreaterThan(tried / 5)
  expect(received.length - before).toBe(served)
})

test('a caller whose certificate is not valid is not served, nor is a session resumed that it has begun', async () => {
  const first = received.length
  for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
    for (const caller of bad) {
      for (const sni of [undefined, 'a.test', 'b.test', 'c.test']) {
        const call = {
          sni,
          protocol: 'http/1.1',
          caller,
          hosts: ['a.test'],
          target: '/x',
          authority: undefined,
          forged: {},
        } as const
        const sessions: Buffer[] = []
        const socket = open(call, { maxVersion })
        socket.on('session', session => sessions.push(session))
        expect([caller, sni, await call1(call, socket)]).toEqual([caller, sni, undefined])
        for (const session of sessions.slice(0, 1)) {
          for (const as of [caller, 'none', 'billing']) {
            for (const name of [sni, 'b.test']) {
              const again = { ...call, caller: as, sni: name }
              const seen = await call1(again, open(again, { maxVersion, session }))
              // a server that does not resume it begins a new one, with the certificate that is sent then
              const request = received.at(-1)
              if (seen !== undefined && received.length > first)
                expect(commonName(request!)).toBe(as === 'none' ? undefined : as)
              if (as === caller) expect(seen).toBeUndefined()
              received.splice(first)
            }
          }
        }
      }
    }
  }
})

test('a session that was begun with a certificate or without one keeps that identity when it is resumed', async () => {
  for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
    for (const begun of ['none', ...good]) {
      for (const resumed of ['none', ...good, ...bad]) {
        const call = {
          protocol: 'http/1.1',
          target: '/x',
          hosts: ['a.test'],
          authority: undefined,
          forged: {},
        } as const
        const sessions: Buffer[] = []
        const socket = open({ ...call, sni: 'a.test', caller: begun }, { maxVersion })
        socket.on('session', session => sessions.push(session))
        await call1({ ...call, sni: 'a.test', caller: begun }, socket)
        const again = { ...call, sni: 'b.test', caller: resumed }
        const next = open(again, { maxVersion, ...(sessions[0] && { session: sessions[0] }) })
        let isReused = false
        next.on('secureConnect', () => {
          isReused = next.isSessionReused()
        })
        const count = received.length
        await call1(again, next)
        const request = received[count]
        if (request === undefined) continue
        const identity = isReused ? begun : resumed
        expect(bad).not.toContain(identity)
        expect([begun, resumed, commonName(request)]).toEqual([
          begun,
          resumed,
          identity === 'none' ? undefined : identity,
        ])
      }
    }
  }
})

test('a line end in the subject of a certificate adds no common name', async () => {
  const certificate = new X509Certificate(authority.pem('odd.pem'))
  const socket = { authorized: true, encrypted: true, getPeerX509Certificate: () => certificate }
  const { cn } = clientCertificateOf(socket as unknown as TLSSocket)!
  expect(cn).toMatch(/^odd/)
  expect(cn).not.toMatch(/^billing$|, billing/)
})
