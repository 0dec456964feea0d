import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { randomRuns } from '@test/random-runs'
import fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import { GatewayRig, sendRaw, statusesIn } from '../../helpers/gateway-rig.ts'

const run = promisify(execFile)
const rig = new GatewayRig()
afterEach(() => rig.close())

const refusal = 'HTTP/1.1 413 Content Too Large\r\nContent-Length: 9\r\nConnection: close\r\n\r\ntoo large'

/** How a service refuses an upload early. */
interface Manner {
  /** How many bytes it reads first. */
  readonly readsBytes: number
  /** Whether it closes at once, so that what it has not read resets the connection. */
  readonly closes: 'at once' | 'after a moment' | 'when it has read all'
}

async function refuseUploads({ readsBytes, closes }: Manner): Promise<string> {
  return await rig.serveRaw((socket: Socket) => {
    let read = 0
    let hasAnswered = false
    const onData = (bytes: Buffer): void => {
      read += bytes.length
      if (hasAnswered || read < readsBytes) return
      hasAnswered = true
      socket.write(refusal)
      if (closes === 'when it has read all') return
      socket.pause()
      if (closes === 'at once') socket.destroySoon()
      else setTimeout(() => socket.destroy(), 20)
    }
    socket.on('data', onData)
  })
}

/** A caller who sends all of a body in pieces, and reads the answer only then. */
async function upload(port: number, bytes: number, piece: number, framing: 'length' | 'chunked'): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  let failure: Error | undefined
  socket.on('error', error => {
    failure = error
  })
  socket.pause()
  const kind = framing === 'length' ? `Content-Length: ${bytes}` : 'Transfer-Encoding: chunked'
  socket.write(`POST /a HTTP/1.1\r\nHost: a\r\n${kind}\r\n\r\n`)
  for (let sent = 0; sent < bytes && !socket.destroyed; sent += piece) {
    const part = Buffer.alloc(Math.min(piece, bytes - sent), 0x61)
    const framed =
      framing === 'length'
        ? part
        : Buffer.concat([Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from('\r\n')])
    if (!socket.write(framed)) await Promise.race([once(socket, 'drain'), once(socket, 'close')]).catch(() => {})
  }
  if (framing === 'chunked') socket.write('0\r\n\r\n')
  if (failure) return String(failure)
  let answer = ''
  socket.setEncoding('latin1').on('data', text => {
    answer += text
    if (answer.endsWith('too large')) socket.destroy()
  })
  socket.resume()
  if (!socket.destroyed) await once(socket, 'close').catch(() => {})
  return failure === undefined ? answer : `${failure} after ${answer}`
}

describe('an answer before the end of the body', () => {
  test('an early answer reaches the caller at any moment, whatever the service does and however much is left to send', async () => {
    const manner = fc.record({
      readsBytes: fc.constantFrom(0, 1, 1000, 65_536, 300_000),
      closes: fc.constantFrom<Manner['closes']>('at once', 'after a moment', 'when it has read all'),
    })
    const size = fc.constantFrom(400_000, 2_000_000, 20_000_000)
    const piece = fc.constantFrom(1000, 16_384, 65_536, 1_000_000)
    const framing = fc.constantFrom<'length' | 'chunked'>('length', 'chunked')
    await fc.assert(
      fc.asyncProperty(manner, size, piece, framing, async (how, bytes, pieceBytes, kind) => {
        const to = await refuseUploads(how)
        const { port } = await rig.guard({ gateway: { routes: [{ to }] } })
        const answer = await upload(port, bytes, Math.max(pieceBytes, bytes / 500), kind)
        await rig.close()
        expect([statusesIn(answer), answer.endsWith('too large')]).toEqual([[413], true])
      }),
      { numRuns: randomRuns(10), endOnFailure: true },
    )
  })

  test.each(['http', 'https'])('curl gets an early answer over %s', async protocol => {
    const folder = rig.folder()
    const [body, cert, key] = ['body', 'cert.pem', 'key.pem'].map(name => join(folder, name)) as [
      string,
      string,
      string,
    ]
    writeFileSync(body, Buffer.alloc(30_000_000, 0x61))
    const made = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '1']
    await run('openssl', [...made, '-subj', '/CN=a', '-keyout', key, '-out', cert])
    const to = await refuseUploads({ readsBytes: 1, closes: 'at once' })
    const tls = protocol === 'https' ? { tls: { cert, key } } : {}
    const { url } = await rig.guard({ gateway: { ...tls, routes: [{ to }] } })
    const args = ['-sSk', '-H', 'Expect:', '--data-binary', `@${body}`, url.replace('http', protocol)]
    for (let time = 0; time < 3; time++) expect((await run('curl', args)).stdout).toBe('too large')
  })

  test('Python gets an early answer, although it sends everything first', async () => {
    const to = await refuseUploads({ readsBytes: 1, closes: 'at once' })
    const { port } = await rig.guard({ gateway: { routes: [{ to }] } })
    const program = [
      'import http.client, sys',
      `call = http.client.HTTPConnection("127.0.0.1", ${port})`,
      'call.request("POST", "/", b"a" * 30000000)',
      'answer = call.getresponse()',
      'print(answer.status, answer.read().decode())',
    ]
    const { stdout } = await run('python3', ['-c', program.join('\n')])
    expect(stdout.trim()).toBe('413 too large')
  })
})

describe('the timeout of an upload', () => {
  test('the timeout of an upload applies to pauses: a steady upload longer than limits.time arrives', async () => {
    const service = await rig.serve((incoming, response) => {
      let bytes = 0
      incoming.on('data', piece => (bytes += piece.length)).on('end', () => response.end(String(bytes)))
    })
    const { port, gateway } = await rig.guard({ gateway: { limits: { time: '1s' }, routes: [{ to: service.url }] } })
    // Node looks at its own clock only twice a minute, so the time that passes here cannot show whether it runs
    expect(gateway.server.requestTimeout).toBe(0)
    const socket = connect(port, '127.0.0.1').setEncoding('latin1')
    socket.write('POST /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 10000\r\n\r\n')
    let answer = ''
    socket.on('data', text => {
      answer += text
    })
    for (let piece = 0; piece < 10; piece++) {
      await pause(300)
      socket.write(Buffer.alloc(1000))
    }
    await once(socket, 'close')
    expect([statusesIn(answer), answer.includes('10000')]).toEqual([[200], true])
  })

  test.each(['0B', '500B'])(
    'an upload that pauses longer than limits.time gets a 408, also with a minRate of %s',
    async minRate => {
      const service = await rig.serve((incoming, response) =>
        incoming.on('data', () => {}).on('end', () => response.end()),
      )
      const { port } = await rig.guard({ gateway: { limits: { time: '1s', minRate }, routes: [{ to: service.url }] } })
      const begun = performance.now()
      const answer = await sendRaw(
        port,
        'POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 10000\r\n\r\n',
        Buffer.alloc(1000),
      )
      expect(statusesIn(answer)).toEqual([408])
      expect(performance.now() - begun).toBeLessThan(5000)
    },
  )

  test('the timeout of an upload applies after a refusal, so that an endless body holds no connection', async () => {
    const service = await rig.serve()
    const { port } = await rig.guard({
      rules: [{ id: 'none', limit: '1/h' }],
      gateway: { limits: { time: '1s' }, routes: [{ to: service.url }] },
    })
    await sendRaw(port, 'GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
    const answer = await sendRaw(
      port,
      'POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 10000\r\n\r\n',
      Buffer.alloc(1000),
    )
    expect(statusesIn(answer)).toEqual([503])
  })
})
