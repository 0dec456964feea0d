import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createSecureServer } from 'node:http2'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client, type Dispatcher } from 'undici'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { ServiceSessions, sendByHttp2 } from './service-sessions.ts'

const folder = mkdtempSync(join(tmpdir(), 'diana-sessions-'))
const file = (name: string): string => join(folder, name)
const closing: (() => unknown)[] = []

beforeAll(() => {
  const args = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2']
  const rest = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost']
  execFileSync('openssl', [...args, ...rest, '-keyout', file('key.pem'), '-out', file('cert.pem')], { stdio: 'ignore' })
})
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})
afterAll(() => rmSync(folder, { recursive: true }))

type Kind = 'both' | 'http2' | 'http1'

/** A service over TLS that says which version it was asked by. */
async function serve(kind: Kind): Promise<{ url: URL; connections: () => number }> {
  const pair = { cert: readFileSync(file('cert.pem')), key: readFileSync(file('key.pem')) }
  const answer = (request: { httpVersion: string }, response: { end(text: string): unknown }): void => {
    response.end(request.httpVersion)
  }
  const server =
    kind === 'http1' ? createServer(pair, answer) : createSecureServer({ ...pair, allowHTTP1: kind === 'both' }, answer)
  let connections = 0
  server.on('secureConnection', () => connections++)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closing.push(() => server.close())
  return { url: new URL(`https://localhost:${(server.address() as AddressInfo).port}`), connections: () => connections }
}

function clientOf(url: URL, { isKnown = false, ca = readFileSync(file('cert.pem')) as Buffer | null } = {}): Client {
  const connect = { timeout: 5000, rejectUnauthorized: true, ...(ca ? { ca } : {}) }
  const sessions = new ServiceSessions({ url, isKnown, connect: () => connect })
  const client = new Client(url, { connect })
  sendByHttp2(client, sessions)
  closing.push(
    () => sessions.destroy(),
    () => client.destroy(),
  )
  return client
}

const ask = async (client: Client): Promise<string> =>
  (await client.request({ path: '/', method: 'GET' } as Dispatcher.RequestOptions)).body.text()

test.each<[Kind, string]>([
  ['both', '2.0'],
  ['http2', '2.0'],
  ['http1', '1.1'],
])('a service over TLS that offers %s is asked by HTTP/%s', async (kind, version) => {
  const { url } = await serve(kind)
  const client = clientOf(url)
  expect(await Promise.all([ask(client), ask(client), ask(client)])).toEqual([version, version, version])
  expect(await ask(client)).toBe(version)
})

test('calls that come together share one handshake', async () => {
  const { url, connections } = await serve('both')
  const client = clientOf(url)
  await Promise.all(Array.from({ length: 20 }, () => ask(client)))
  expect(connections()).toBe(1)
})

test('a service that must speak HTTP/2 and does not is reported', async () => {
  const { url } = await serve('http1')
  await expect(ask(clientOf(url, { isKnown: true }))).rejects.toThrow('the service does not speak HTTP/2')
})

test('an untrusted certificate fails all calls that wait for the connection, and no others', async () => {
  const { url } = await serve('both')
  const stranger = clientOf(url, { ca: null })
  const results = await Promise.allSettled([ask(stranger), ask(stranger)])
  expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  expect(await ask(clientOf(url))).toBe('2.0')
})

test('a client that is destroyed ends its own call and no other of the same connection', async () => {
  const { url } = await serve('both')
  const connect = { timeout: 5000, ca: readFileSync(file('cert.pem')) }
  const sessions = new ServiceSessions({ url, isKnown: true, connect: () => connect })
  closing.push(() => sessions.destroy())
  const [one, two] = [new Client(url, { connect }), new Client(url, { connect })]
  sendByHttp2(one, sessions)
  sendByHttp2(two, sessions)
  const [left, stays] = [ask(one), ask(two)]
  void one.destroy()
  await expect(left).rejects.toThrow()
  expect(await stays).toBe('2.0')
})
