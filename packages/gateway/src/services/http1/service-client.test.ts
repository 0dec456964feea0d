import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createServer as createTlsServer } from 'node:tls'
import type { Dispatcher } from 'undici'
import { afterEach, describe, expect, test } from 'vitest'
import { ServiceClient } from './service-client.ts'

const closing: (() => unknown)[] = []
afterEach(() => {
  for (const close of closing.splice(0).reverse()) close()
})

/** A service that answers the head of each call with these bytes, and what it got; over TLS or without. */
async function serve(isTls: boolean, answer: (socket: Socket) => void) {
  let received = ''
  const onSocket = (socket: Socket): void => {
    socket.on('error', () => {})
    socket.on('data', bytes => {
      received += bytes.toString('latin1')
      if (received.includes('\r\n\r\n')) answer(socket)
    })
  }
  const server = isTls ? createTlsServer(certificate(), onSocket) : createServer(onSocket)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const origin = `${isTls ? 'https' : 'http'}://127.0.0.1:${(server.address() as AddressInfo).port}`
  const client = new ServiceClient(origin, { pipelining: 1, connect: { rejectUnauthorized: false } })
  closing.push(
    () => server.close(),
    () => void client.destroy(),
  )
  return { client, received: () => received }
}

function certificate(): { readonly key: Buffer; readonly cert: Buffer } {
  const folder = mkdtempSync(join(tmpdir(), 'diana-service-'))
  closing.push(() => rmSync(folder, { recursive: true }))
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  const made = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '1']
  execFileSync('openssl', [...made, '-subj', '/CN=a', '-keyout', key, '-out', cert], { stdio: 'pipe' })
  return { key: readFileSync(key), cert: readFileSync(cert) }
}

/** One call; resolves with the status and the body, or rejects with what failed. */
function call(client: ServiceClient, options: Partial<Dispatcher.DispatchOptions> = {}): Promise<[number, string]> {
  return new Promise((resolve, reject) => {
    let status = 0
    let body = ''
    client.dispatch({ path: '/', method: 'POST', ...options } as Dispatcher.DispatchOptions, {
      onConnect: () => client.expectAnswer({ trailers: () => ({ 'x-sum': ['1', '2'] }) }),
      onHeaders: code => {
        status = code
        return true
      },
      onData: piece => {
        body += piece
        return true
      },
      onComplete: () => resolve([status, body]),
      onError: reject,
    })
  })
}

describe.each([
  ['over plain TCP', false],
  ['over TLS', true],
])('a connection to a service %s', (_, isTls) => {
  test('a connection to a service reads a head with bare LF after an unrequested 100', async () => {
    const { client } = await serve(isTls, socket =>
      socket.write('HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\nContent-Length: 2\n\nok'),
    )
    expect(await call(client)).toEqual([200, 'ok'])
    expect(client.answers.end()).toBe(true)
  })

  test('a connection to a service reads an answer that came before the rest of the body was written', async () => {
    const { client } = await serve(isTls, socket => {
      socket.pause()
      socket.write('HTTP/1.1 413 No\r\nContent-Length: 2\r\n\r\nno', () => socket.destroy())
    })
    async function* endless() {
      for (let piece = 0; piece < 500; piece++) yield Buffer.alloc(65_536)
    }
    for (let time = 0; time < 3; time++) expect(await call(client, { body: endless() as never })).toEqual([413, 'no'])
  })

  test('a connection to a service sends the trailers of a call after its body', async () => {
    const { client, received } = await serve(isTls, socket => {
      if (received().endsWith('0\r\nx-sum: 1\r\nx-sum: 2\r\n\r\n')) socket.write('HTTP/1.1 204 Done\r\n\r\n')
    })
    async function* pieces() {
      yield Buffer.from('abc')
    }
    expect(await call(client, { body: pieces() as never })).toEqual([204, ''])
  })
})
