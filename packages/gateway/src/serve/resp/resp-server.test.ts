import { once } from 'node:events'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { createLimiter } from 'diana-limiter'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { RespServer } from './resp-server.ts'
import { RespUsers } from './resp-users.ts'

const closing: (() => unknown)[] = []
let refused: string[] = []

beforeEach(() => {
  refused = []
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] })
})
afterEach(async () => {
  vi.useRealTimers()
  for (const close of closing.splice(0).reverse()) await close()
})

interface Given {
  readonly users?: RespUsers
  readonly mayAsk?: boolean
  readonly connections?: number
}

async function serve({
  users = new RespUsers([], () => Buffer.alloc(0)),
  mayAsk = true,
  connections = 100,
}: Given = {}) {
  const limiter = await createLimiter({ rules: [{ id: 'all', limit: '10/h' }] })
  const server = new RespServer({
    ...{ limiter, users, tls: undefined },
    peers: { mayAsk: () => mayAsk } as never,
    settings: () => ({ connections }) as never,
    onRefused: reason => refused.push(reason),
  })
  server.server.listen(0, '127.0.0.1')
  await once(server.server, 'listening')
  closing.push(
    () => limiter.close(),
    () => server.close(),
  )
  return server
}

/** A client that is written to and read by hand. */
async function client(server: RespServer) {
  const socket: Socket = connect((server.server.address() as AddressInfo).port, '127.0.0.1').on('error', () => {})
  closing.push(() => socket.destroy())
  await once(socket, 'connect')
  let text = ''
  socket.on('data', piece => {
    text += piece
  })
  const until = async (isSo: (text: string) => boolean) => {
    for (let turn = 0; turn < 20_000 && !isSo(text); turn++) await nextTurn()
    return text
  }
  return { socket, until, ended: new Promise<void>(resolve => socket.once('close', () => resolve())) }
}

const secret = Buffer.from('sixteen bytes or more')
const users = () => new RespUsers([{ name: 'default', password: '', throttle: true }], () => secret)
const turns = async (isSo: () => boolean) => {
  for (let turn = 0; turn < 20_000 && !isSo(); turn++) await nextTurn()
}

describe('connections of the Redis protocol', () => {
  it.each(['*2\r\n$4\r\nPI', 'PIN', '*1000\r\n', '*1\r\n$3\r\nabc'])(
    'a client that has sent %j alone for ten seconds is ended',
    async text => {
      const server = await serve()
      const { socket, ended } = await client(server)
      socket.write(text)
      // until the server has read it
      for (let turn = 0; turn < 100; turn++) await nextTurn()
      vi.advanceTimersByTime(9000)
      expect(server.connections).toBe(1)
      vi.advanceTimersByTime(4000)
      await ended
    },
  )

  it('a client that asks nothing for an hour stays, and so does one whose command arrives within ten seconds', async () => {
    const server = await serve()
    const { socket, until } = await client(server)
    vi.advanceTimersByTime(3_600_000)
    socket.write('PING\r\nPI')
    await until(text => text === '+PONG\r\n')
    vi.advanceTimersByTime(5000)
    socket.write('NG x\r\n')
    expect(await until(text => text.endsWith('x\r\n'))).toBe('+PONG\r\n$1\r\nx\r\n')
    vi.advanceTimersByTime(3_600_000)
    expect(server.connections).toBe(1)
  })

  it('a client that has not said who it is for ten seconds is ended, whatever it sends', async () => {
    const server = await serve({ users: users() })
    const { socket, until, ended } = await client(server)
    socket.write('PING\r\n')
    await until(text => text.includes('NOAUTH'))
    vi.advanceTimersByTime(9000)
    socket.write('PING\r\n')
    vi.advanceTimersByTime(4000)
    await ended
    const known = await client(server)
    known.socket.write(`AUTH ${JSON.stringify(String(secret))}\r\n`)
    expect(await known.until(text => text !== '')).toBe('+OK\r\n')
    vi.advanceTimersByTime(60_000)
    expect(server.connections).toBe(1)
  })

  it('a client that reads nothing keeps a bound of answers, and is ended after ten seconds', async () => {
    const server = await serve()
    const { socket } = await client(server)
    socket.pause()
    const message = Buffer.from(`*2\r\n$4\r\nECHO\r\n$60000\r\n${'e'.repeat(60_000)}\r\n`)
    const other = await client(server)
    for (let sent = 0; sent < 400; sent++) socket.write(message)
    await nextTurn()
    other.socket.write('PING\r\n')
    expect(await other.until(text => text !== '')).toBe('+PONG\r\n')
    // the server reads no further, so that the client cannot write either
    const written = () => socket.bytesWritten - socket.writableLength
    await turns(() => false)
    expect(written()).toBeLessThan(400 * message.length)
    vi.advanceTimersByTime(1000)
    vi.advanceTimersByTime(12_000)
    await turns(() => server.connections === 1)
    expect(server.connections).toBe(1)
  })

  it('a client that reads late gets every answer, in order', async () => {
    const server = await serve()
    const { socket } = await client(server)
    socket.pause()
    const count = 300
    for (let at = 0; at < count; at++)
      socket.write(`*2\r\n$4\r\nECHO\r\n$20005\r\n${String(at).padStart(20_005, '.')}\r\n`)
    for (let turn = 0; turn < 500; turn++) await nextTurn()
    let text = ''
    socket.removeAllListeners('data')
    socket.on('data', piece => {
      text += piece
    })
    socket.resume()
    await turns(() => text.length === count * (20_005 + 10))
    expect(
      text.split('\r\n').flatMap(line => (line.startsWith('.') ? [Number(line.replaceAll('.', ''))] : [])),
    ).toEqual(Array.from({ length: count }, (_, at) => at))
  })

  it('a pipeline whose answers are beyond the bound of those that wait is answered whole', async () => {
    const server = await serve()
    for (const [command, answer] of [
      ['INFO\r\n', 'role:master'],
      ['COMMAND\r\n', 'cl.throttle'],
    ] as const) {
      const count = 6000
      const { socket, until } = await client(server)
      socket.write(command.repeat(count))
      const text = await until(said => said.split(answer).length > count)
      expect(text.split(answer)).toHaveLength(count + 1)
    }
  })

  const bodies = ['DIANA.RESET all\r\n', 'AUTH x\r\nDIANA.CHECK all\r\n', '*2\r\n$11\r\nDIANA.CHECK\r\n$3\r\nall\r\n']
  const heads = ['GET', 'POST', 'PUT', 'OPTIONS', 'post', 'PRI', 'X'].flatMap(method => [
    `${method} / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: text/plain\r\n\r\n`,
    `${method} /?a HTTP/1.0\n\n`,
    `${method} * HTTP/2.0\r\n\r\nSM\r\n\r\n`,
  ])
  const lines = [
    ...heads,
    '\x16\x03\x01\x02\x00\n',
    'EHLO a\r\n',
    'PING / HTTP/1.1\r\nHost: a\r\n\r\n',
    '>2\r\n',
    '$4\r\n',
  ]
  it.each([true, false])(
    'the body of a request of another protocol is not read as commands, with users: %s',
    async isAsked => {
      const server = await serve(isAsked ? { users: users() } : {})
      for (const line of lines) {
        for (const body of bodies) {
          const { socket, until, ended } = await client(server)
          socket.write(`${line}${body}PING done\r\n`)
          await ended
          const text = await until(() => true)
          expect(text, line).toMatch(/^(-[^\r\n]*\r\n)+$/)
        }
      }
      const { socket, until } = await client(server)
      socket.write(isAsked ? `AUTH "${secret}"\r\nDIANA.PEEK all\r\n` : 'DIANA.PEEK all\r\n')
      expect(await until(text => text.includes(':'))).toContain('*5\r\n:0\r\n:10\r\n:10\r\n')
    },
  )

  it('a full port gives the place of the oldest client that has not said who it is to the next', async () => {
    const server = await serve({ users: users(), connections: 4 })
    const known = await client(server)
    known.socket.write(`AUTH "${secret}"\r\n`)
    await known.until(text => text !== '')
    const strangers = []
    for (let at = 0; at < 12; at++) strangers.push(await client(server))
    await Promise.all(strangers.slice(0, -3).map(({ ended }) => ended))
    const next = await client(server)
    next.socket.write(`AUTH "${secret}"\r\nPING\r\n`)
    expect(await next.until(text => text.includes('PONG'))).toBe('+OK\r\n+PONG\r\n')
    known.socket.write('PING\r\n')
    expect(await known.until(text => text.includes('PONG'))).toBe('+OK\r\n+PONG\r\n')
    // all who are there are known: there is no place
    const more = [await client(server), await client(server)]
    for (const { socket, until } of more) {
      socket.write(`AUTH "${secret}"\r\n`)
      await until(text => text !== '')
    }
    const last = await client(server)
    expect(await last.until(text => text !== '')).toMatch(/^-ERR max number of clients/)
    expect(server.connections).toBe(4)
  })

  it('a client that forgets who it is has ten seconds to say so again', async () => {
    const server = await serve({ users: users() })
    const { socket, until } = await client(server)
    socket.write(`AUTH "${secret}"\r\n`)
    await until(text => text.includes('OK'))
    vi.advanceTimersByTime(60_000)
    socket.write('RESET\r\n')
    await until(text => text.includes('RESET'))
    vi.advanceTimersByTime(5000)
    socket.write(`AUTH "${secret}"\r\nPING\r\n`)
    expect(await until(text => text.includes('PONG'))).toBe('+OK\r\n+RESET\r\n+OK\r\n+PONG\r\n')
    socket.write('RESET\r\n')
    await until(text => text.split('RESET').length === 3)
    vi.advanceTimersByTime(12_000)
    await turns(() => server.connections === 0)
    expect(server.connections).toBe(0)
  })

  it('a name that could not be listed is refused by HELLO as by CLIENT SETNAME', async () => {
    const server = await serve()
    const { socket, until } = await client(server)
    socket.write('HELLO 3 SETNAME "a\\r\\nb"\r\nCLIENT SETNAME "a b"\r\nCLIENT GETNAME\r\n')
    const refusal = '-ERR Client names cannot contain spaces, newlines or special characters.\r\n'
    expect(await until(text => text.endsWith('$-1\r\n'))).toBe(`${refusal}${refusal}$-1\r\n`)
  })

  it('a peer that is not trusted, and one connection too many, get an error', async () => {
    const stranger = await client(await serve({ mayAsk: false }))
    expect(await stranger.until(text => text !== '')).toMatch(/^-NOPERM .*trustProxy\r\n$/)
    await stranger.ended
    const server = await serve({ connections: 1 })
    const one = await client(server)
    await turns(() => server.connections === 1)
    const other = await client(server)
    expect(await other.until(text => text !== '')).toMatch(/^-ERR max number of clients/)
    await other.ended
    one.socket.write('PING\r\n')
    expect(await one.until(text => text !== '')).toBe('+PONG\r\n')
    expect(refused).toHaveLength(2)
  })

  it('commands before QUIT, and before the server ends, are answered', async () => {
    const server = await serve()
    const one = await client(server)
    one.socket.write('PING a\r\nDIANA.PEEK all\r\nQUIT\r\nPING b\r\n')
    await one.ended
    expect(await one.until(() => true)).toBe('$1\r\na\r\n*5\r\n:0\r\n:10\r\n:10\r\n:-1\r\n:0\r\n+OK\r\n')
    const other = await client(server)
    other.socket.write('DIANA.CHECK all\r\n')
    await other.until(text => text !== '')
    await server.close()
    await other.ended
  })
})
