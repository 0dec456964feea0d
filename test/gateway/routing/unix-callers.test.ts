import { once } from 'node:events'
import { request } from 'node:http'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { GatewayRig } from '../../helpers/gateway-rig.ts'

const rig = new GatewayRig()
afterEach(() => rig.close())

/** A gateway whose connections come in over a Unix socket, as systemd may hand one over. */
async function guardUnix(words: object = {}, gateway: object = {}, options: object = {}) {
  const service = await rig.serve((incoming, response) =>
    response.end(`${incoming.headers['x-forwarded-for']} ${incoming.headers['x-forwarded-host']}`),
  )
  const guarded = await rig.guard({ ...words, gateway: { ...gateway, routes: [{ to: service.url }] } }, options)
  const socketPath = join(rig.folder(), 'traffic')
  const sockets: Socket[] = []
  const listener = createServer(socket => {
    sockets.push(socket)
    guarded.gateway.server.emit('connection', socket)
  })
  listener.listen(socketPath)
  await once(listener, 'listening')
  rig.later(() => {
    listener.close()
    for (const socket of sockets) socket.destroy()
  })
  return socketPath
}

async function call(socketPath: string, headers: Record<string, string>): Promise<string> {
  const sent = request({ socketPath, headers: { host: 'a', connection: 'close', ...headers } }).end()
  const [answer] = await once(sent, 'response')
  let body = ''
  for await (const piece of answer) body += piece
  return `${answer.statusCode} ${body}`
}

test.each([
  ['nobody', {}, 'a'],
  ['one proxy', { trustProxy: 1 }, 'b'],
  ['an address', { trustProxy: ['127.0.0.1'] }, 'a'],
])('a caller over a Unix socket adds nothing to X-Forwarded-For (trusted: %s)', async (_, words, host) => {
  const path = await guardUnix(words)
  expect(await call(path, {})).toBe('200 unknown a')
  const forwarded = { 'x-forwarded-for': '203.0.113.9', 'x-forwarded-host': 'b' }
  expect(await call(path, forwarded)).toBe(`200 203.0.113.9, unknown ${host}`)
})

test('a PROXY header over a Unix socket, whose other end has no address to trust, is refused with the reason', async () => {
  const lines: string[] = []
  const logger = { level: 'warn', stream: { write: (line: string) => lines.push(line) } }
  const path = await guardUnix({ trustProxy: ['127.0.0.1'] }, { listen: { proxyProtocol: true } }, { logger })
  const socket = connect(path).on('error', () => {})
  socket.write('PROXY TCP4 203.0.113.9 198.51.100.1 56324 443\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n')
  await new Promise(resolve => socket.resume().once('close', resolve))
  expect(lines.join()).toMatch(/over a Unix socket/)
  expect(lines.join()).not.toMatch(/undefined/)
})
