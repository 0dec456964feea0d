import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { text } from 'node:stream/consumers'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { writeWhole } from './direct-sink.ts'

type Answer = (response: ServerResponse) => void

const date = ['date', 'Mon, 16 Nov 2026 12:00:00 GMT']
const body = Buffer.from('b\xf6dy', 'latin1')
let answer: Answer = () => {}
let events: string[] = []
const server = createServer({ keepAliveTimeout: 7000 }, (request, response) => {
  if (request.url === '/last') {
    response.sendDate = false
    response.setHeader('connection', 'close').end()
    return
  }
  for (const event of ['prefinish', 'finish', 'close']) {
    response.on(event, () => events.push(`${event}, ${response.statusCode}, ${response.writableFinished}`))
  }
  answer(response)
})
beforeAll(async () => {
  await once(server.listen(0, '127.0.0.1'), 'listening')
})
afterAll(() => server.close())

/** All bytes of an answer and of the one behind it on the same connection, and the events of the first. */
async function bytesOf(one: Answer, start = 'GET / HTTP/1.1'): Promise<{ bytes: string; events: string[] }> {
  answer = one
  events = []
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  socket.setEncoding('latin1')
  socket.write(`${start}\r\nHost: a\r\n\r\nGET /last HTTP/1.1\r\nHost: a\r\n\r\n`)
  return { bytes: await text(socket), events }
}

const byNode =
  (status: number, reason: string, headers: readonly string[]): Answer =>
  response => {
    try {
      response.writeHead(status, reason, [...headers]).end(body.toString('latin1'), 'latin1')
    } catch {
      response.destroy()
    }
  }

describe('a whole answer', () => {
  test('a whole answer is written as Node writes it, or left to Node', async () => {
    const field = fc.constantFrom(
      ...[date, ['content-length', '4'], ['content-length', '4'], ['x-a', '1'], ['set-cookie', 'a'], ['x-a', '\xe4']],
      ...[
        ['connection', 'close'],
        ['x-b', 'a\r\nb: c'],
        ['X-Upper', '1'],
        ['x y', '1'],
        ['keep-alive', 'x'],
        ['x-c', ''],
      ],
      ...[
        ['transfer-encoding', 'chunked'],
        ['trailer', 'x-a'],
        ['expect', 'a'],
      ],
    )
    const headers = fc.array(field, { maxLength: 3 }).map(some => [...['content-length', '4'], ...date, ...some.flat()])
    const start = fc.constantFrom('GET / HTTP/1.1', 'GET / HTTP/1.1', 'HEAD / HTTP/1.1', 'GET / HTTP/1.0')
    let wholes = 0
    await fc.assert(
      fc.asyncProperty(headers, fc.constantFrom(200, 404, 599), start, async (headers, status, start) => {
        const node = byNode(status, 'Why', headers)
        const whole = await bytesOf(response => {
          if (writeWhole(response, { status, reason: 'Why', headers }, body)) wholes++
          else node(response)
        }, start)
        expect(whole).toEqual(await bytesOf(node, start))
      }),
      { numRuns: 100 },
    )
    expect(wholes).toBeGreaterThan(0)
  })

  test.each<[string, Answer]>([
    ['has headers of its own', response => response.setHeader('x-own', '1')],
    ['ends its connection', response => (response.shouldKeepAlive = false)],
    ['has been begun', response => response.writeHead(200)],
    ['has lost its caller', response => response.socket?.destroy()],
  ])('a whole answer is left to Node if the response %s', async (_, change) => {
    let isWritten: boolean | undefined
    await bytesOf(response => {
      change(response)
      isWritten = writeWhole(response, { status: 200, reason: 'OK', headers: ['content-length', '4', ...date] }, body)
      response.destroy()
    }).catch(() => {})
    expect(isWritten).toBe(false)
  })
})
