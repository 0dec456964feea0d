import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createLimiter, type RuleOptions } from 'diana-limiter'
import { limitEvents, limitMessages } from 'diana-limiter/messages'
import { Server } from 'socket.io'
import { io, type Socket } from 'socket.io-client'
import { afterEach, describe, expect, it } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const match = { websocket: 'messages' } as const
const waiting = {
  ...{ limit: '20/s', algorithm: 'leaky-bucket', burst: 1, whenFull: 'wait', queue: { timeout: '10s' } },
} as const

async function limiterOf(rule: object) {
  const limiter = await createLimiter({ rules: [{ id: 'chat', match, by: 'header:x-user', ...rule } as RuleOptions] })
  closing.push(() => limiter.close())
  return limiter
}

describe('messages of the package ws', () => {
  async function echo(rule: object, options: Parameters<typeof limitMessages>[1] = {}) {
    const limiter = await limiterOf(rule)
    const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
    await once(server, 'listening')
    const got: string[] = []
    const limit = limitMessages(limiter, options)
    server.on('connection', (socket, request) => {
      limit(socket as never, request)
      socket.on('message', data => got.push(String(data)))
    })
    closing.push(() => server.close())
    const open = async (user: string): Promise<WebSocket> => {
      const { port } = server.address() as AddressInfo
      const socket = new WebSocket(`ws://127.0.0.1:${port}/chat`, { headers: { 'x-user': user } })
      closing.push(() => socket.terminate())
      await once(socket, 'open')
      return socket
    }
    return { got, open }
  }

  it('a connection that sends too fast is closed with 1013, by its own count', async () => {
    const { got, open } = await echo({ limit: '2/h' })
    const [ann, bob] = [await open('ann'), await open('bob')]
    for (let i = 0; i < 5; i++) ann.send(`ann ${i}`)
    bob.send('bob')
    const [code, reason] = (await once(ann, 'close')) as [number, Buffer]
    expect([code, String(reason)]).toEqual([1013, 'too many messages'])
    await expect.poll(() => got.toSorted()).toEqual(['ann 0', 'ann 1', 'bob'])
  })

  it('messages are dropped as the rule or the option says, and onRefused hears of them', async () => {
    const refused: unknown[] = []
    for (const [rule, options] of [
      [{ whenFull: 'drop' }, {}],
      [{}, { tooFast: 'drop' }],
    ] as const) {
      const { got, open } = await echo(
        { limit: '1/h', ...rule },
        { ...options, onRefused: ({ rule }) => refused.push(rule) },
      )
      const socket = await open('ann')
      for (let i = 0; i < 3; i++) socket.send(String(i))
      socket.ping()
      await once(socket, 'pong')
      expect([got, socket.readyState]).toEqual([['0'], WebSocket.OPEN])
    }
    expect(refused).toEqual(['chat', 'chat', 'chat', 'chat'])
  })

  it('messages wait in order, also behind one that waits', async () => {
    const { got, open } = await echo(waiting)
    const socket = await open('ann')
    for (let i = 0; i < 6; i++) socket.send(String(i))
    const begin = performance.now()
    await expect.poll(() => got, { timeout: 3000 }).toEqual(['0', '1', '2', '3', '4', '5'])
    expect(performance.now() - begin).toBeGreaterThan(200)
  })

  it('a rule that is named counts messages by the attributes of the application', async () => {
    const options = { rule: 'chat', attributes: () => ({ account: 'ann' }) }
    const { got, open } = await echo({ match: 'none', by: 'account', limit: '1/h', whenFull: 'refuse' }, options)
    const [one, other] = [await open('x'), await open('y')]
    one.send('one')
    await expect.poll(() => got).toEqual(['one'])
    other.send('other')
    expect((await once(other, 'close'))[0]).toBe(1013)
  })
})

describe('events of Socket.IO', () => {
  async function chat(rule: object) {
    const limiter = await limiterOf(rule)
    const http = createServer()
    const server = new Server(http)
    const got: unknown[] = []
    const limit = limitEvents(limiter)
    server.on('connection', socket => {
      limit(socket)
      socket.on('say', (text: unknown, acknowledge?: (answer: unknown) => void) => {
        got.push(text)
        acknowledge?.('heard')
      })
    })
    http.listen(0, '127.0.0.1')
    await once(http, 'listening')
    closing.push(() => server.close())
    const open = async (user: string): Promise<Socket> => {
      const { port } = http.address() as AddressInfo
      const socket = io(`http://127.0.0.1:${port}`, {
        ...{ transports: ['websocket'], reconnection: false, forceNew: true },
        extraHeaders: { 'x-user': user },
      })
      closing.push(() => socket.disconnect())
      await new Promise<void>(resolve => socket.once('connect', () => resolve()))
      return socket
    }
    return { got, open }
  }

  it('a connection that sends too fast is disconnected, and others go on', async () => {
    const { got, open } = await chat({ limit: '2/h' })
    const [ann, bob] = [await open('ann'), await open('bob')]
    const gone = new Promise(resolve => ann.once('disconnect', resolve))
    for (let i = 0; i < 4; i++) ann.emit('say', i)
    await gone
    expect(await bob.emitWithAck('say', 'bob')).toBe('heard')
    expect(got).toEqual([0, 1, 'bob'])
  })

  it('a dropped event is acknowledged with an error', async () => {
    const { got, open } = await chat({ limit: '1/h', whenFull: 'drop' })
    const socket = await open('ann')
    expect(await socket.emitWithAck('say', 1)).toBe('heard')
    expect(await socket.emitWithAck('say', 2)).toEqual({ error: 'too many messages', retryAfterMs: expect.any(Number) })
    expect(got).toEqual([1])
  })

  it('events wait in order', async () => {
    const { got, open } = await chat(waiting)
    const socket = await open('ann')
    for (let i = 0; i < 5; i++) socket.emit('say', i)
    await expect.poll(() => got, { timeout: 3000 }).toEqual([0, 1, 2, 3, 4])
  })
})
