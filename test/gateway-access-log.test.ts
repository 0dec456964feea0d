import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { GatewayRig, sendRaw, statusesIn } from './rigs/gateway-rig.ts'

const rig = new GatewayRig()
afterEach(() => rig.close())

interface Line {
  readonly method?: string
  readonly path?: string
  readonly status: number
  readonly end: string
  readonly bytesIn: number
  readonly bytesOut: number
  readonly [name: string]: unknown
}

/** What a call should leave in the log: its status and how it ended. */
type Expected = `${number} ${'complete' | 'aborted' | 'broken'}`

function linesOf(path: string): Line[] {
  const text = readFileSync(path, 'latin1')
  expect(text).toMatch(/^([\x20-\x7e]+\n)*$/)
  return text
    .split('\n')
    .slice(0, -1)
    .map(line => JSON.parse(line) as Line)
}

/** The first bytes of an answer, or nothing if the connection ended before. */
async function firstBytes(socket: Socket): Promise<string> {
  socket.on('error', () => {})
  const [piece] = await Promise.race([once(socket, 'data'), once(socket, 'close').then(() => [''])])
  return String(piece)
}

async function startAll() {
  const folder = rig.folder()
  const path = join(folder, 'access.log')
  const service = await rig.serve((incoming, response) => {
    const url = incoming.url ?? ''
    incoming.resume()
    if (url.includes('hang')) return
    if (url.includes('endless')) response.write('x'.repeat(1000))
    else if (url.includes('broken')) {
      response.writeHead(200, { 'Content-Length': '1000' })
      response.write('half', () => response.destroy())
    } else if (url.includes('teapot')) response.writeHead(418).end('teapot')
    else response.end('served')
  })
  service.server.on('upgrade', (incoming, socket: Socket) => {
    if (incoming.url?.includes('declined')) {
      socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno')
    } else {
      socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
      socket.on('data', piece => socket.write(piece))
    }
    socket.on('error', () => {})
    socket.on('end', () => socket.end())
  })
  const dead = await rig.serve()
  dead.server.close()
  const guarded = await rig.guard({
    rules: [
      { id: 'none', match: { path: '/limited/**' }, limit: '0/h' },
      { id: 'watched', match: { path: '/shadowed/**' }, limit: '0/h', whenFull: 'shadow' },
    ],
    gateway: {
      accessLog: { to: path },
      limits: { headers: '4KiB' },
      routes: [
        { path: '/a', to: service.url },
        { path: '/limited', to: service.url },
        { path: '/shadowed', to: service.url },
        { path: '/retried', to: [dead.url, service.url], health: { failures: 1000 } },
        { path: '/dead', to: dead.url },
      ],
    },
  })
  return { path, service, dead, ...guarded }
}

/** Kinds of calls whose target is not known, or not a path. */
const withoutPath = ['garbage', 'large', 'tunnel']

/** Every kind of call, each with its own way to make one; `target` is where most of them go. */
function callers(port: number): Record<string, (id: number) => Promise<Expected>> {
  const head = (target: string, more = '') => `GET ${target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${more}\r\n`
  const status = async (text: string): Promise<Expected> => {
    const [code] = statusesIn(await sendRaw(port, text)).filter(one => one !== 100)
    return `${code!} complete`
  }
  const leave = async (target: string, answer: RegExp, code: number): Promise<Expected> => {
    const socket = connect(port, '127.0.0.1')
    socket.write(head(target))
    socket.on('error', () => {})
    if (code === 499) await once(socket, 'connect').then(() => new Promise(done => setTimeout(done, 30)))
    else expect(await firstBytes(socket)).toMatch(answer)
    socket.destroy()
    return `${code} aborted` as Expected
  }
  const upgrade = 'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n'
  return {
    passed: id => status(head(`/a/${id}`)),
    query: id => status(head(`/a/${id}?token=secret`)),
    unusual: id => status(head(`/a/teapot/${id}`)),
    posted: id => status(`POST /a/${id} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello`),
    asking: id =>
      status(
        `POST /a/${id} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello`,
      ),
    odd: id => status(`PROPFIND /a/${id} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`),
    refused: id => status(head(`/limited/${id}`)),
    shadowed: id => status(head(`/shadowed/${id}`)),
    unrouted: id => status(head(`/nowhere/${id}`)),
    retried: id => status(head(`/retried/${id}`)),
    dead: id => status(head(`/dead/${id}`)),
    target: id => status(head(`/a/%zz/${id}`)),
    hostless: id => status(`GET /a/${id} HTTP/1.1\r\nConnection: close\r\n\r\n`),
    hosts: id => status(`GET /a/${id} HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n\r\n`),
    traced: id => status(`TRACE /a/${id} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`),
    expecting: id => status(head(`/a/${id}`, 'Expect: the-unexpected\r\n')),
    tunnel: () => status('CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n'),
    garbage: () => status('\x16\x03\x01 nonsense\r\n\r\n'),
    large: id => status(head(`/a/${id}`, `X-Large: ${'x'.repeat(5000)}\r\n`)),
    chunks: id =>
      status(`POST /a/hang/${id} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nnonsense\r\n`),
    offered: id => status(head(`/a/${id}`, 'Upgrade: h2c\r\n').replace('close', 'close, Upgrade')),
    upgraded: async id => {
      const socket = connect(port, '127.0.0.1')
      socket.write(`GET /a/${id} HTTP/1.1\r\nHost: a\r\n${upgrade}\r\n`)
      expect(await firstBytes(socket)).toMatch(/^HTTP\/1.1 101/)
      socket.write('frame')
      expect(await firstBytes(socket)).toBe('frame')
      socket.end()
      await once(socket, 'close')
      return '101 complete'
    },
    declined: id => status(`GET /a/declined/${id} HTTP/1.1\r\nHost: a\r\n${upgrade}\r\n`),
    left: id => leave(`/a/hang/${id}`, /^$/, 499),
    halfRead: id => leave(`/a/endless/${id}`, /^HTTP\/1.1 200/, 200),
    broken: async id => {
      expect(statusesIn(await sendRaw(port, head(`/a/broken/${id}`)))).toEqual([200])
      return '200 broken'
    },
  }
}

describe('the access log', () => {
  test('has exactly one line for each call of any kind, and the metrics count the same calls', async () => {
    const { path, port, gateway, httpFigures } = await startAll()
    const kinds = Object.entries(callers(port))
    const expected: string[] = []
    let id = 0
    // three calls of each kind in an order that differs each time, eight at a time
    const calls = [...kinds, ...kinds, ...kinds]
      .map(kind => ({ kind, at: Math.random() }))
      .sort((one, other) => one.at - other.at)
      .map(({ kind: [name, call] }) => async () => {
        const number = id++
        expected.push(`${withoutPath.includes(name) ? '' : number} ${await call(number)}`)
      })
    await Promise.all(
      Array.from({ length: 8 }, async () => {
        for (let call = calls.pop(); call !== undefined; call = calls.pop()) await call()
      }),
    )
    await expect.poll(() => httpFigures().inProgress).toBe(0)
    await gateway.close()
    const lines = linesOf(path)
    const logged = lines.map(({ path: target = '', status, end }) => {
      return `${/\/(\d+)(?:\?|$)/.exec(target)?.[1] ?? ''} ${status} ${end}`
    })
    expect(logged.sort()).toEqual(expected.sort())
    expect(lines.length).toBe(kinds.length * 3)

    const { traffic } = httpFigures()
    const sum = (read: (one: (typeof traffic)[number]) => number): number =>
      traffic.reduce((total, one) => total + read(one), 0)
    expect(sum(one => Object.values(one.calls).reduce((a, b) => a + b, 0))).toBe(lines.length)
    expect(sum(one => one.duration.counts.reduce((a, b) => a + b, 0))).toBe(lines.length)
    expect(sum(one => one.bytesIn)).toBe(lines.reduce((total, one) => total + one.bytesIn, 0))
    expect(sum(one => one.bytesOut)).toBe(lines.reduce((total, one) => total + one.bytesOut, 0))
  })

  test('tells of a call that passed: where it went, how long it took, who called and by which id', async () => {
    const { path, url, service, gateway } = await startAll()
    const answer = await fetch(`${url}/a/1?b=c`, { headers: { 'user-agent': 'agent', referer: 'http://r/?x=y' } })
    await answer.text()
    await gateway.close()
    const [line] = linesOf(path)
    expect(line).toMatchObject({
      ...{ address: '127.0.0.1', method: 'GET', path: '/a/1?b=c', protocol: 'HTTP/1.1', host: new URL(url).host },
      ...{ status: 200, end: 'complete', route: '/a', upstream: service.url, tries: 1, verdict: 'passed' },
      ...{ userAgent: 'agent', referer: 'http://r/?x=y', requestId: answer.headers.get('x-request-id') },
    })
    expect(service.received[0]!.headers['x-request-id']).toBe(line!.requestId)
    for (const name of ['ms', 'queueMs', 'upstreamFirstByteMs', 'upstreamMs']) expect(line![name]).toBeTypeOf('number')
    expect(line!.ms).toBeGreaterThanOrEqual(line!.upstreamMs as number)
    expect(line!.bytesIn).toBeGreaterThan(50)
    expect(line!.bytesOut).toBeGreaterThan('served'.length)
    expect(Math.abs(Date.parse(String(line!.time)) - Date.now())).toBeLessThan(10_000)
  })

  test('names the rule that refused a call, the shadow rule that would have, and the second try', async () => {
    const { path, url, service, gateway } = await startAll()
    for (const target of ['/limited/1', '/shadowed/1', '/retried/1', '/retried/2']) {
      await (await fetch(url + target)).text()
    }
    await gateway.close()
    const [refused, shadowed, ...retried] = linesOf(path)
    expect(refused).toMatchObject({ verdict: 'refused', rule: 'none', status: 503 })
    expect(refused).not.toHaveProperty('upstream')
    expect(shadowed).toMatchObject({ verdict: 'passed', shadow: 'watched', status: 200 })
    expect(retried.map(({ tries }) => tries)).toEqual([2, 2])
    expect(retried.every(({ upstream }) => upstream === service.url)).toBe(true)
  })

  test('counts the bytes of each call on a kept connection as its own', async () => {
    const { path, port, gateway } = await startAll()
    const post = (body: string, more = '') =>
      `POST /a/1 HTTP/1.1\r\nHost: a\r\n${more}Content-Length: ${body.length}\r\n\r\n${body}`
    const pieces = [post('x'.repeat(20)), post('x'.repeat(3000)), post('', 'Connection: close\r\n')]
    const socket = connect(port, '127.0.0.1')
    const ended = once(socket, 'close')
    let received = ''
    for (const [at, piece] of pieces.entries()) {
      socket.write(piece)
      if (at < 2) received += await firstBytes(socket)
    }
    socket.on('data', piece => {
      received += piece
    })
    await ended
    await gateway.close()
    const lines = linesOf(path)
    expect(lines.map(({ bytesIn }) => bytesIn)).toEqual(pieces.map(piece => piece.length))
    expect(lines.reduce((sum, { bytesOut }) => sum + bytesOut, 0)).toBe(received.length)
  })
})

test('an aborted upload leaves a line with status 499', async () => {
  const { path, port, gateway, httpFigures } = await startAll()
  const upload = request({ port, method: 'POST', path: '/a/hang', headers: { 'content-length': 1000 } })
  upload.on('error', () => {})
  upload.write('half')
  await expect.poll(() => httpFigures().upstreams.some(({ inProgress }) => inProgress > 0)).toBe(true)
  upload.destroy()
  await expect.poll(() => httpFigures().inProgress).toBe(0)
  await gateway.close()
  expect(linesOf(path)).toMatchObject([{ status: 499, end: 'aborted', method: 'POST' }])
})
