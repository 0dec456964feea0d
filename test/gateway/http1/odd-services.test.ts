import type { Socket } from 'node:net'
import { request } from 'undici'
import { afterEach, describe, expect, test } from 'vitest'
import { GatewayRig, sendRaw, statusesIn } from '../../helpers/gateway-rig.ts'

const rig = new GatewayRig()
afterEach(() => rig.close())

/** A service that answers each request with `answer`, and the calls and connections it has got. */
async function serveBytes(answer: string | ((socket: Socket, call: string) => void), gateway: object = {}) {
  const calls: string[] = []
  let connections = 0
  const to = await rig.serveRaw(socket => {
    connections++
    socket.on('data', bytes => {
      const call = bytes.toString('latin1')
      calls.push(call)
      if (typeof answer === 'string') socket.end(answer, 'latin1')
      else answer(socket, call)
    })
  })
  const guarded = await rig.guard({ gateway: { ...gateway, routes: [{ to }] } })
  return { ...guarded, calls, connections: () => connections }
}

const ask = (method = 'GET', more: readonly string[] = []): string =>
  `${[`${method} /a HTTP/1.1`, 'Host: a', 'Connection: close', ...more].join('\r\n')}\r\n\r\n`

describe('a service that has answered with garbage', () => {
  const garbled: [what: string, bytes: string][] = [
    ['one byte', 'H'],
    ['a part of the version', 'HTTP/1.'],
    ['a version and nothing else', 'HTTP/1.1 '],
    ['a part of the head', 'HTTP/1.1 200 OK\r\nContent-Le'],
    ['a blank line', '\r\n'],
    ['a blank line and a part of the version', '\r\n\r\nHTT'],
    ['no HTTP', 'hello\n'],
    ['SSH', 'SSH-2.0-OpenSSH_9.6\r\n'],
    ['TLS', '\u0015\u0003\u0001\u0000\u0002\u0002\u0046'],
    ['HTTP/0.9', '<html>hello</html>'],
    ['zeros', '\u0000\u0000\u0000\u0000'],
    ['a status that is none', 'HTTP/1.1 2000 OK\r\n\r\n'],
    ['a name with a space', 'HTTP/1.1 200 OK\r\nA B: c\r\n\r\n'],
    ['two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab'],
    ['an interim answer and then nothing', 'HTTP/1.1 102 Processing\r\n\r\n'],
    ['an unasked 100 and then nothing', 'HTTP/1.1 100 Continue\r\n\r\n'],
    [
      'an upgrade that was not asked for',
      'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n',
    ],
    ['a coding that is none', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nabc'],
    ['headers without end', `HTTP/1.1 200 OK\r\nX: ${'a'.repeat(400_000)}`],
  ]
  test.each(garbled)('a service that has answered anything is not asked a second time: %s', async (_, bytes) => {
    for (const method of ['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE']) {
      const { port, calls } = await serveBytes(bytes)
      expect([
        method,
        statusesIn(await sendRaw(port, ask(method))).filter(status => status >= 200),
        calls.length,
      ]).toEqual([method, [502], 1])
    }
  })
})

describe('a connection to a service is kept', () => {
  test.each([
    ['HEAD', ''],
    ['DELETE', 'body'],
    ['OPTIONS', 'body'],
    ['REPORT', 'body'],
    ['LOCK', 'body'],
    ['GET', 'body'],
    ['PUT', 'body'],
    ['DELETE', ''],
  ])('a connection to a service is reused after a %s with the body "%s"', async (method, body) => {
    const { url, connections } = await serveBytes(socket => {
      const length = method === 'HEAD' ? 1000 : 0
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${length}\r\n\r\n`)
    })
    for (let call = 0; call < 3; call++) {
      const answer = await request(url, { method: method as 'GET', ...(body !== '' && { body }) })
      expect(answer.statusCode).toBe(200)
      await answer.body.dump()
    }
    expect(connections()).toBe(1)
  })

  test('a connection to a service is not reused if a body follows the answer to a HEAD', async () => {
    const { url, connections } = await serveBytes((socket, call) => {
      if (call.startsWith('HEAD')) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello')
      else socket.write('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nmine')
    })
    for (let call = 0; call < 3; call++) {
      expect((await request(url, { method: 'HEAD' })).statusCode).toBe(200)
      expect(await (await request(url)).body.text()).toBe('mine')
    }
    expect(connections()).toBeGreaterThan(1)
  })
})

describe('heads that common servers send are read', () => {
  const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-A: 1\r\n\r\nok'
  const unasked = 'HTTP/1.1 100 Continue\r\n\r\n'
  test.each([
    ['an unasked 100', unasked + ok],
    ['an unasked 100 with headers', `HTTP/1.1 100 Continue\r\nX-B: 1\r\n\r\n${ok}`],
    ['an unasked 100 without a reason', `HTTP/1.1 100\r\n\r\n${ok}`],
    ['two of them', unasked + unasked + ok],
    ['one before and one behind a 103', `${unasked}HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n${unasked}${ok}`],
    ['an unasked 100 of HTTP/1.0', `HTTP/1.0 100 Continue\r\n\r\n${ok}`],
    ['bare LF', ok.replaceAll('\r\n', '\n')],
    ['bare LF behind the first line', ok.replaceAll('\r\n', '\n').replace('\n', '\r\n')],
    ['bare LF in the first line', ok.replace('\r\n', '\n')],
    ['bare LF at the end of the head', ok.replace('\r\n\r\n', '\r\n\n')],
    ['bare LF before the blank line', ok.replace('\r\n\r\n', '\n\r\n')],
    ['bare LF with an unasked 100', `${unasked}${ok}`.replaceAll('\r\n', '\n')],
  ])('a head that common servers send is read: %s', async (_, bytes) => {
    for (const step of [bytes.length, 7, 1]) {
      const { port, calls } = await serveBytes(async socket => {
        socket.setNoDelay(true)
        for (let at = 0; at < bytes.length; at += step) {
          socket.write(bytes.slice(at, at + step), 'latin1')
          await new Promise(setImmediate)
        }
      })
      const answer = await sendRaw(port, ask('POST', ['Content-Length: 2']), 'ab')
      expect([step, statusesIn(answer).at(-1), answer.slice(-2)]).toEqual([step, 200, 'ok'])
      expect(answer.toLowerCase()).toContain('\r\nx-a: 1\r\n')
      expect(answer.replaceAll('\r\n', '')).not.toContain('\n')
      expect(calls.length).toBeGreaterThan(0)
    }
  })

  test('bodies that look like heads are left unchanged', async () => {
    const body = 'HTTP/1.1 100 Continue\r\n\r\n\n\nHTTP/1.1 200 OK\n\n'
    const { url } = await serveBytes(socket =>
      socket.write(`HTTP/1.1 100 Continue\n\nHTTP/1.1 200 OK\nContent-Length: ${body.length}\n\n${body}`),
    )
    for (let call = 0; call < 3; call++) expect(await (await request(url)).body.text()).toBe(body)
  })

  test.each([20, 60])('heads with headers of %i KiB are read', async kib => {
    const line = `${'a'.repeat(1000)}`
    const lines = Array.from({ length: kib }, (_, at) => `X-${at}: ${line}`)
    const { port } = await serveBytes(`HTTP/1.1 200 OK\r\nContent-Length: 2\r\n${lines.join('\r\n')}\r\n\r\nok`)
    const answer = await sendRaw(port, ask())
    expect([statusesIn(answer), answer.split(line)]).toEqual([[200], expect.objectContaining({ length: kib + 1 })])
  })

  test('headers beyond limits.responseHeaders give a 502 that says so', async () => {
    const { url } = await serveBytes(`HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX: ${'a'.repeat(9000)}\r\n\r\nok`, {
      limits: { responseHeaders: '8KiB' },
    })
    const answer = await request(url)
    expect([answer.statusCode, await answer.body.json()]).toEqual([
      502,
      expect.objectContaining({ detail: expect.stringContaining('limits.responseHeaders') }),
    ])
  })
})
