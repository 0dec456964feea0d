import { connect, type Socket } from 'node:net'
import type { FastifyPluginAsync } from 'fastify'
import { afterEach, describe, expect, test } from 'vitest'
import { GatewayRig } from '../../helpers/gateway-rig.ts'

const rig = new GatewayRig()
afterEach(() => rig.close())

const chunked = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n'
const untilClosed = 'HTTP/1.1 200 OK\r\n\r\nshort'

/** How an answer without a length can break off at a service. */
const breaks: [how: string, answer: (socket: Socket) => void][] = [
  ['its connection ends between two chunks', socket => socket.end(chunked)],
  ['a chunk cannot be read', socket => socket.write(chunked, () => setTimeout(() => socket.write('zz\r\n'), 100))],
  ['its connection is reset', socket => socket.write(chunked, () => setTimeout(() => socket.resetAndDestroy(), 100))],
  ['it pauses for longer than timeouts.body', socket => socket.write(untilClosed)],
]

const pass: FastifyPluginAsync = async app => {
  app.addHook('onSend', async () => undefined)
}

/** Calls by HTTP/1.0, where the end of an answer is the end of the connection, and returns how that ended. */
async function callByHttp10(port: number): Promise<{ answer: string; end: string }> {
  const socket = connect(port, '127.0.0.1').setEncoding('latin1')
  socket.write('GET / HTTP/1.0\r\nHost: a\r\n\r\n')
  let answer = ''
  let end = 'end'
  socket.on('data', piece => {
    answer += piece
  })
  socket.on('error', error => {
    end = (error as NodeJS.ErrnoException).code ?? ''
  })
  await new Promise(resolve => socket.on('close', resolve))
  return { answer, end }
}

describe.each([
  ['no filters', []],
  ['a filter', [pass]],
])('with %s, a caller of HTTP/1.0 does not take an answer for complete', (_, filters) => {
  test.each(breaks)('if %s', async (_how, answer) => {
    const to = await rig.serveRaw(socket => {
      socket.once('data', () => answer(socket))
    })
    const { port } = await rig.guard({ gateway: { timeouts: { body: '300ms' }, routes: [{ to }] } }, { filters })
    const { end } = await callByHttp10(port)
    expect(end).toBe('ECONNRESET')
  })

  test('a caller of HTTP/1.0 takes an answer for complete if it is', async () => {
    const to = await rig.serveRaw(socket => {
      socket.once('data', () => socket.end(untilClosed))
    })
    const { port } = await rig.guard({ gateway: { routes: [{ to }] } }, { filters })
    const { answer, end } = await callByHttp10(port)
    expect([answer.endsWith('short'), end]).toEqual([true, 'end'])
  })
})
