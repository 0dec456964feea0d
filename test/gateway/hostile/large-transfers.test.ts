import { connect, type Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, expect, test } from 'vitest'
import { GatewayRig } from '../../helpers/gateway-rig.ts'

const rig = new GatewayRig()
afterEach(() => rig.close())

const block = Buffer.alloc(65_536, 'x')
const transfers = 100
const measuredTurns = 60

const get = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'
const upgrade =
  'GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n'
const switching = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'

/** Writes for ever, as fast as the other side reads. */
function pour(socket: Socket): void {
  const write = (): void => {
    while (!socket.destroyed && socket.write(block));
  }
  socket.on('drain', write)
  write()
}

interface Kind {
  readonly request: string
  readonly answer: string
  readonly sender: 'caller' | 'service'
}

const kinds: readonly [string, Kind][] = [
  ['answers', { request: get, answer: 'HTTP/1.1 200 OK\r\n\r\n', sender: 'service' }],
  [
    'uploads of a stated length',
    {
      request: `${get.replace('GET', 'POST').slice(0, -2)}Content-Length: 1000000000\r\n\r\n`,
      answer: '',
      sender: 'caller',
    },
  ],
  ['WebSockets that receive', { request: upgrade, answer: switching, sender: 'service' }],
  ['WebSockets that send', { request: upgrade, answer: switching, sender: 'caller' }],
]

test.each(kinds)(
  '%s of 100 callers together move a bounded number of bytes per turn of the event loop',
  async (_, kind) => {
    let moved = 0
    const count = (socket: Socket): void => {
      socket.on('data', chunk => {
        moved += chunk.length
      })
    }
    const url = await rig.serveRaw(socket => {
      count(socket)
      socket.write(kind.answer)
      if (kind.sender === 'service') socket.once('data', () => pour(socket))
    })
    const { port } = await rig.guard({ gateway: { limits: { body: '10GiB' }, routes: [{ to: url }] } })
    for (let at = 0; at < transfers; at++) {
      const socket = connect(port, '127.0.0.1').on('error', () => {})
      rig.later(() => socket.destroy())
      count(socket)
      socket.write(kind.request)
      if (kind.sender === 'caller' && kind.answer === '') pour(socket)
      else if (kind.sender === 'caller') socket.once('data', () => pour(socket))
    }
    await expect.poll(() => moved, { timeout: 10_000 }).toBeGreaterThan(50_000_000)
    const before = moved
    for (let turn = 0; turn < measuredTurns; turn++) await nextTurn()
    expect((moved - before) / measuredTurns).toBeLessThan(2_000_000)
  },
)
