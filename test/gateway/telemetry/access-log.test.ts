import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { request, type ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterEach, describe, expect, test } from 'vitest'
import { freePort } from '../../helpers/free-port.mjs'
import { GatewayRig, sendRaw, statusesIn } from '../../helpers/gateway-rig.ts'

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

/** A real nginx in front of the service, which logs as it does by default; its port. */
async function startNginx(folder: string, log: string, service: string): Promise<number> {
  const port = await freePort()
  const config = join(folder, 'nginx.conf')
  writeFileSync(
    config,
    `daemon off; worker_processes 1; pid ${folder}/nginx.pid; error_log ${folder}/error.log;
     events {} http { access_log ${log} combined; client_body_temp_path ${folder}/b; proxy_temp_path ${folder}/p;
     fastcgi_temp_path ${folder}/f; uwsgi_temp_path ${folder}/u; scgi_temp_path ${folder}/s;
     server { listen 127.0.0.1:${port}; location / { proxy_pass ${service}; proxy_http_version 1.1; } } }`,
  )
  const child = spawn('/usr/sbin/nginx', ['-c', config, '-e', join(folder, 'error.log')], { stdio: 'ignore' })
  rig.later(async () => {
    child.kill('SIGTERM')
    await once(child, 'close')
  })
  await expect
    .poll(
      async () =>
        await fetch(`http://127.0.0.1:${port}/`, { method: 'HEAD' }).then(
          () => true,
          () => false,
        ),
    )
    .toBe(true)
  // nginx writes the line of that call after its answer
  await expect.poll(() => readFileSync(log, 'latin1')).toContain('\n')
  writeFileSync(log, '')
  return port
}

async function startAll({ accessLog = {}, limits = {} }: { accessLog?: object; limits?: object } = {}) {
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
  const dead = rig.nowhere()
  const guarded = await rig.guard({
    rules: [
      { id: 'none', match: { path: '/limited/**' }, limit: '0/h' },
      { id: 'watched', match: { path: '/shadowed/**' }, limit: '0/h', whenFull: 'shadow' },
    ],
    gateway: {
      accessLog: { to: path, ...accessLog },
      limits: { headers: '4KiB', ...limits },
      routes: [
        { path: '/a', to: service.url },
        { path: '/limited', to: service.url },
        { path: '/shadowed', to: service.url },
        { path: '/retried', to: [dead, service.url], health: { failures: 1000 } },
        { path: '/dead', to: dead },
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
  test('the access log has exactly one line for each call of any kind, and the metrics count the same calls', async () => {
    const { path, port, gateway, httpStats } = await startAll()
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
    await expect.poll(() => httpStats().inProgress).toBe(0)
    await gateway.close()
    const lines = linesOf(path)
    const logged = lines.map(({ path: target = '', status, end }) => {
      return `${/\/(\d+)(?:\?|$)/.exec(target)?.[1] ?? ''} ${status} ${end}`
    })
    expect(logged.sort()).toEqual(expected.sort())
    expect(lines.length).toBe(kinds.length * 3)

    const { traffic } = httpStats()
    const sum = (read: (one: (typeof traffic)[number]) => number): number =>
      traffic.reduce((total, one) => total + read(one), 0)
    expect(sum(one => Object.values(one.calls).reduce((a, b) => a + b, 0))).toBe(lines.length)
    expect(sum(one => one.duration.counts.reduce((a, b) => a + b, 0))).toBe(lines.length)
    expect(sum(one => one.bytesIn)).toBe(lines.reduce((total, one) => total + one.bytesIn, 0))
    expect(sum(one => one.bytesOut)).toBe(lines.reduce((total, one) => total + one.bytesOut, 0))
  })

  test('the access log has route, duration, caller and id of an admitted call', async () => {
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

  test('the access log names the refusing rule, the shadow rule, and retries', async () => {
    const { path, url, service, gateway } = await startAll()
    for (const target of ['/limited/1', '/shadowed/1', '/retried/1']) {
      await (await fetch(url + target)).text()
    }
    await gateway.close()
    const [refused, shadowed, retried] = linesOf(path)
    expect(refused).toMatchObject({ verdict: 'refused', rule: 'none', status: 503 })
    expect(refused).not.toHaveProperty('upstream')
    expect(shadowed).toMatchObject({ verdict: 'passed', shadow: 'watched', status: 200 })
    expect(retried).toMatchObject({ tries: 2, upstream: service.url, status: 200 })
  })

  test('the access log counts the bytes of calls that were sent at once as those of each answer', async () => {
    const { path, port, gateway } = await startAll()
    const get = (target: string, more = '') => `GET ${target} HTTP/1.1\r\nHost: a\r\n${more}\r\n`
    // the second is answered in the turn of the event loop in which the first ends
    const last = get('/nowhere', 'Connection: close\r\n')
    const answer = await sendRaw(port, get('/a/1') + get('/a/%zz') + get('/limited/1') + last)
    await gateway.close()
    const answers = answer.split(/(?=HTTP\/1\.1 )/)
    expect(linesOf(path).map(({ status, bytesOut }) => [status, bytesOut])).toEqual(
      answers.map(text => [statusesIn(text)[0], text.length]),
    )
    expect(answers).toHaveLength(4)
  })

  test('the access log counts the bytes of each call on a kept connection as its own', async () => {
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

describe('hostile bytes', () => {
  test('hostile bytes never make a second line or break one, in either format', async () => {
    const service = await rig.serve()
    const texts = [
      '\\"} \\n{\\"status\\":200}',
      '" 200 0 "-" "-"',
      '\x80\t\xff[31m',
      '\u0085\u00a0\u00ad',
      "'; drop table logs; --",
      '%0d%0aforged',
      '\\',
      'x'.repeat(3000),
      '"'.repeat(1000),
    ]
    for (const format of ['json', 'combined']) {
      const path = join(rig.folder(), 'access.log')
      const { port, gateway } = await rig.guard({
        gateway: { accessLog: { to: path, format }, routes: [{ to: service.url }] },
      })
      for (const text of texts) {
        const headers = `Host: a\r\nUser-Agent: ${text}\r\nReferer: ${text}\r\nX-Request-Id: ${text}\r\nTraceparent: ${text}\r\n`
        const target = `/${text.replaceAll(/[^\x21-\x7e]/g, '')}`
        const bytes = Buffer.from(`GET ${target} HTTP/1.1\r\nConnection: close\r\n${headers}\r\n`, 'latin1')
        expect(statusesIn(await sendRaw(port, bytes))).toHaveLength(1)
      }
      await gateway.close()
      const log = readFileSync(path, 'latin1')
      expect(log).toMatch(/^(?:[\x20-\x7e]{1,4095}\n)*$/)
      const lines = log.split('\n').slice(0, -1)
      expect(lines).toHaveLength(texts.length)
      if (format === 'json') {
        expect(lines.map(line => JSON.parse(line).status)).not.toContain(undefined)
        const agents = lines.map(line => JSON.parse(line).userAgent)
        expect(agents.slice(0, 6)).toEqual(texts.slice(0, 6))
      } else for (const line of lines) expect(line).toMatch(combined)
    }
  })

  test('secrets are not logged: no header but those that are named, and no query where it is left out', async () => {
    const service = await rig.serve()
    const path = join(rig.folder(), 'access.log')
    const { url, gateway } = await rig.guard({
      gateway: { accessLog: { to: path, query: false }, routes: [{ to: service.url }] },
    })
    const headers = {
      authorization: 'Bearer secret',
      cookie: 'a=secret',
      'x-api-key': 'secret',
      referer: 'http://a/?secret',
    }
    await (await fetch(`${url}/a?token=secret`, { headers })).text()
    await gateway.close()
    expect(readFileSync(path, 'utf8')).not.toContain('secret')
    expect(linesOf(path)).toMatchObject([{ path: '/a', referer: 'http://a/' }])
  })
})

/** The combined format, as those who read it take it apart. */
const combined =
  /^(\S+) - - \[(\d\d\/\w{3}\/\d{4}:\d\d:\d\d:\d\d [+-]\d{4})\] "((?:[^"\\]|\\x[\dA-F]{2})*)" (\d{3}) (\d+) "((?:[^"\\]|\\x[\dA-F]{2})*)" "((?:[^"\\]|\\x[\dA-F]{2})*)"$/

test('the combined format is what nginx writes of the same calls', async () => {
  const service = await rig.serve(({ url }, response) => {
    if (url === '/empty') response.end()
    else if (url === '/chunked') response.write('served', () => response.end())
    else response.end('served')
  })
  const folder = rig.folder()
  const [ours, theirs] = [join(folder, 'diana.log'), join(folder, 'nginx.log')]
  const { url, gateway } = await rig.guard({
    gateway: { accessLog: { to: ours, format: 'combined' }, routes: [{ to: service.url }] },
  })
  const nginx = await startNginx(folder, theirs, service.url)
  for (const port of [new URL(url).port, nginx]) {
    const call = (target: string, more = '', method = 'GET') =>
      sendRaw(
        Number(port),
        Buffer.from(`${method} ${target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${more}\r\n`, 'latin1'),
      )
    await call('/a?b=c')
    await call('/a', 'User-Agent: "quoted" \\ \xe9\r\nReferer: http://b/?c\r\n')
    await call('/a', '', 'HEAD')
    await call('/empty', 'User-Agent: \r\n')
    await call('/chunked')
    await call('/%22%20')
  }
  await gateway.close()
  await expect.poll(() => readFileSync(theirs, 'latin1').split('\n').length).toBe(7)
  const comparable = (path: string): (string | undefined)[][] =>
    readFileSync(path, 'latin1')
      .split('\n')
      .slice(0, -1)
      .map(line => {
        const [, address, , ...rest] = combined.exec(line) ?? [line]
        return [address, ...rest]
      })
  expect(comparable(ours)).toEqual(comparable(theirs))
})

test('the request id of a trusted proxy is kept, and any other one is replaced', async () => {
  const service = await rig.serve((_request, response) => response.end())
  const own = /^[\da-f]{32}$/
  for (const trustProxy of [0, 1]) {
    service.received.length = 0
    const { url } = await rig.guard({
      trustProxy,
      rules: [{ id: 'none', match: { path: '/limited' }, limit: '0/h' }],
      gateway: { routes: [{ path: '/a', to: service.url }] },
    })
    const ask = async (id: string, target = '/a') => await fetch(url + target, { headers: { 'x-request-id': id } })
    const answer = await ask('proxy-1:a/b=+@c.d')
    expect(service.received[0]!.headers['x-request-id']).toBe(answer.headers.get('x-request-id'))
    if (trustProxy === 1) expect(answer.headers.get('x-request-id')).toBe('proxy-1:a/b=+@c.d')
    else expect(answer.headers.get('x-request-id')).toMatch(own)
    for (const id of ['', 'x'.repeat(129), 'with space', '<script>', 'a,b', '\xe9']) {
      expect((await ask(id)).headers.get('x-request-id')).toMatch(own)
    }
    for (const target of ['/nowhere', '/limited', '/%zz']) {
      const problem = await ask('of-a-problem', target)
      expect(problem.headers.get('content-type')).toBe('application/problem+json')
      expect(((await problem.json()) as { requestId: string }).requestId).toBe(problem.headers.get('x-request-id'))
    }
  }
})

test('a caller that sends too slowly leaves a line with status 408', async () => {
  const { path, port, gateway, httpStats } = await startAll({ limits: { minRate: '1GiB', grace: '1ms' } })
  const upload = connect(port, '127.0.0.1')
  upload.write('POST /a/hang HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n')
  expect(await firstBytes(upload)).toMatch(/^HTTP\/1.1 408/)
  await expect.poll(() => httpStats().inProgress).toBe(0)
  await gateway.close()
  expect(linesOf(path)).toMatchObject([{ status: 408, method: 'POST', route: '/a' }])
})

test('queueMs is the time in the queue of a rule and in that for a connection', async () => {
  const served: ServerResponse[] = []
  const service = await rig.serve((_request, response) => served.push(response))
  const path = join(rig.folder(), 'access.log')
  const { url, gateway, httpStats } = await rig.guard({
    rules: [
      {
        id: 'one-by-one',
        match: { path: '/rule' },
        limit: 1,
        algorithm: 'concurrency',
        whenFull: 'wait',
        queue: { timeout: '9s' },
      },
    ],
    gateway: { accessLog: { to: path }, routes: [{ to: service.url, connections: { max: 1 } }] },
  })
  for (const target of ['/slot', '/rule']) {
    const call = async () => await (await fetch(url + target)).text()
    const first = call()
    await expect.poll(() => served.length).toBe(1)
    const second = call()
    await expect.poll(() => httpStats().inProgress).toBe(2)
    await pause(60)
    served.shift()!.end()
    await expect.poll(() => served.length).toBe(1)
    served.shift()!.end()
    await Promise.all([first, second])
  }
  await gateway.close()
  const waits = linesOf(path).map(({ queueMs }) => queueMs as number)
  expect(waits).toHaveLength(4)
  expect([waits[0]! < 30, waits[1]! > 30, waits[2]! < 30, waits[3]! > 30]).toEqual([true, true, true, true])
})

test('with a sample, all calls with a status of 400 and above are logged, and a share of the others', async () => {
  const { path, url, gateway } = await startAll({ accessLog: { sample: 0 } })
  for (const target of ['/a/1', '/a/teapot', '/a/2', '/limited/1']) await (await fetch(url + target)).text()
  await gateway.close()
  expect(linesOf(path).map(({ status }) => status)).toEqual([418, 503])
})

test('an aborted upload leaves a line with status 499', async () => {
  const { path, port, gateway, httpStats } = await startAll()
  const upload = request({ port, method: 'POST', path: '/a/hang', headers: { 'content-length': 1000 } })
  upload.on('error', () => {})
  upload.write('half')
  await expect.poll(() => httpStats().upstreams.some(({ inProgress }) => inProgress > 0)).toBe(true)
  upload.destroy()
  await expect.poll(() => httpStats().inProgress).toBe(0)
  await gateway.close()
  expect(linesOf(path)).toMatchObject([{ status: 499, end: 'aborted', method: 'POST' }])
})
