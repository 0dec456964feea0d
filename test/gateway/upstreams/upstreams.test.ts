import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { request } from 'undici'
import { afterEach, describe, expect, test } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { readUpstreams } from '../../../packages/gateway/src/telemetry/server-reports.ts'
import { GatewayRig, type Service } from '../../helpers/gateway-rig.ts'

const rig = new GatewayRig()
afterEach(() => rig.close())

interface Answer {
  readonly status: number
  readonly text: string
  readonly cookies: readonly string[]
}

async function call(url: string, options: Parameters<typeof request>[1] = {}): Promise<Answer> {
  const { statusCode, headers, body } = await request(url, options)
  const cookies = headers['set-cookie'] ?? []
  return { status: statusCode, text: await body.text(), cookies: Array.isArray(cookies) ? cookies : [cookies] }
}

async function named(...names: string[]): Promise<Service[]> {
  return await Promise.all(
    names.map(name =>
      rig.serve(async (incoming, response) => {
        let bytes = 0
        for await (const piece of incoming) bytes += (piece as Buffer).length
        response.end(`${name} ${incoming.method} ${bytes}`)
      }),
    ),
  )
}

const patient = { failures: 99 }

describe('a call of which nothing was sent', () => {
  test.each(['POST', 'PATCH', 'PUT', 'DELETE', 'GET', 'MKCOL'])(
    'a call of which nothing was sent goes to another address with its body, if it is a %s',
    async method => {
      const [good] = await named('good')
      const to = [rig.nowhere(), rig.nowhere(), good!.url]
      const { url } = await rig.guard({ gateway: { routes: [{ to, health: patient }] } })
      for (const size of [0, 5, 300_000]) {
        const body = method === 'GET' || size === 0 ? null : Buffer.alloc(size, 'x')
        const answers = await Promise.all(
          Array.from({ length: 6 }, () => call(url, { method: method as 'POST', body })),
        )
        for (const { status, text } of answers)
          expect([status, text]).toEqual([200, `good ${method} ${body?.length ?? 0}`])
      }
    },
  )

  test('a call of which nothing was sent is not tried twice with only one address', async () => {
    const { url } = await rig.guard({ gateway: { routes: [{ to: rig.nowhere() }] } })
    expect((await call(url, { method: 'POST', body: 'x' })).status).toBe(502)
  })

  test('a call of which nothing was sent is not limited by the retry budget', async () => {
    const [good] = await named('good')
    const to = [rig.nowhere(), good!.url]
    const { url } = await rig.guard({
      gateway: { routes: [{ to, retryBudget: { percent: 0, perSecond: 0 } }] },
    })
    const answers = await Promise.all(Array.from({ length: 200 }, () => call(url, { method: 'POST', body: 'x' })))
    expect(answers.filter(({ status }) => status !== 200)).toEqual([])
  })

  test('a call of which nothing was sent goes to another address if it asks for a WebSocket', async () => {
    const { server, url: good } = await rig.serve()
    const sockets = new WebSocketServer({ server })
    sockets.on('connection', socket => socket.send('hello'))
    const to = [rig.nowhere(), rig.nowhere(), good]
    const { url } = await rig.guard({ gateway: { routes: [{ to, health: patient }] } })
    for (let i = 0; i < 6; i++) {
      const socket = new WebSocket(url.replace('http', 'ws'))
      const [message] = await once(socket, 'message')
      expect(String(message)).toBe('hello')
      socket.terminate()
    }
  })

  test('a call of which nothing was sent goes to another address if it asks for a WebSocket and a black hole does not connect', async () => {
    const { server, url: good } = await rig.serve()
    new WebSocketServer({ server }).on('connection', socket => socket.send('hello'))
    const route = { to: [await blackHole(), good], timeouts: { connect: '200ms' } }
    const { url } = await rig.guard({ gateway: { routes: [route] } })
    for (let i = 0; i < 2; i++) {
      const socket = new WebSocket(url.replace('http', 'ws'))
      const [message] = await once(socket, 'message', { signal: AbortSignal.timeout(5000) })
      expect(String(message)).toBe('hello')
      socket.terminate()
    }
  })

  test('a call of which a part was sent is not sent again', async () => {
    let reached = 0
    const resetting = await rig.serveRaw(socket =>
      socket.once('data', () => {
        reached++
        socket.resetAndDestroy()
      }),
    )
    const [good] = await named('good')
    const { url } = await rig.guard({ gateway: { routes: [{ to: [resetting, good!.url], health: patient }] } })
    for (let i = 0; i < 4; i++) await call(url, { method: 'POST', body: Buffer.alloc(100_000) }).catch(() => {})
    expect([reached, good!.received.length]).toEqual([2, 2])
  })
})

test('timeouts of a month work for waiting calls and WebSockets', async () => {
  const held: (() => void)[] = []
  const { url: service, server } = await rig.serve((_request, response) => void held.push(() => response.end('ok')))
  new WebSocketServer({ server }).on('connection', socket => socket.send('hello'))
  const timeouts = { connect: '30d', headers: '30d', body: '30d' }
  const connections = { max: 1, queue: { timeout: '30d' }, idle: '30d', maxAge: '30d' }
  const { url } = await rig.guard({ gateway: { routes: [{ to: service, timeouts, connections }] } })
  const calls = [call(url), call(url)]
  await expect.poll(() => held.length).toBe(1)
  held[0]!()
  await expect.poll(() => held.length).toBe(2)
  held[1]!()
  expect((await Promise.all(calls)).map(({ status }) => status)).toEqual([200, 200])
  const socket = new WebSocket(url.replace('http', 'ws'))
  expect(String((await once(socket, 'message'))[0])).toBe('hello')
  socket.terminate()
})

describe('retries', () => {
  test('retries are bounded by the budget, so that an outage does not double the load', async () => {
    let reached = 0
    const resetting = () =>
      rig.serveRaw(socket =>
        socket.once('data', () => {
          reached++
          socket.destroy()
        }),
      )
    const to = [await resetting(), await resetting()]
    const { url } = await rig.guard({
      gateway: { routes: [{ to, health: patient, retryBudget: { percent: 10, perSecond: 1 } }] },
    })
    for (let i = 0; i < 60; i++) expect((await call(url)).status).toBe(502)
    expect(reached).toBe(60 + 16)
  })

  test('retries use a new connection', async () => {
    // every connection dies at its second call, as those of a service that was replaced do
    const url = await rig.serveRaw(socket => {
      socket.once('data', () => {
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
        socket.once('data', () => socket.destroy())
      })
    })
    const guarded = await rig.guard({ gateway: { routes: [{ to: url, health: patient }] } })
    await Promise.all([call(guarded.url), call(guarded.url), call(guarded.url)])
    for (let i = 0; i < 3; i++) expect((await call(guarded.url)).status).toBe(200)
  })
})

describe('a service that closes idle connections with a 408', () => {
  /** Answers the first call of a connection, and then, to the next one, as HAProxy and Apache do at the end of their patience. */
  const impatient = () =>
    rig.serveRaw(socket => {
      socket.once('data', () => {
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst')
        socket.once('data', () =>
          socket.end('HTTP/1.1 408 Request Time-out\r\nContent-Length: 0\r\nConnection: close\r\n\r\n'),
        )
      })
    })

  test.each(['GET', 'HEAD', 'DELETE'] as const)(
    'a service that closes idle connections with a 408 is asked again for a %s that met it',
    async method => {
      const { url } = await rig.guard({ gateway: { routes: [{ to: await impatient() }] } })
      for (let i = 0; i < 4; i++) expect((await call(url, { method })).status).toBe(200)
    },
  )

  test('a 408 is passed on for a call that must not be repeated, and on a new connection', async () => {
    const { url } = await rig.guard({ gateway: { routes: [{ to: await impatient() }] } })
    expect((await call(url)).status).toBe(200)
    expect((await call(url, { method: 'POST', body: 'x' })).status).toBe(408)
    let reached = 0
    const slow = await rig.serve((_request, response) => {
      reached++
      response.writeHead(408, { connection: 'close' }).end()
    })
    const other = await rig.guard({ gateway: { routes: [{ to: slow.url }] } })
    expect((await call(other.url)).status).toBe(408)
    expect(reached).toBe(1)
  })
})

describe('statuses that count as failures', () => {
  test('failure statuses are hidden while another address can serve, and suspend the address', async () => {
    const bad = await rig.serve((_request, response) => response.writeHead(503).end('away'))
    const [good] = await named('good')
    const { url } = await rig.guard({
      gateway: {
        routes: [{ to: [bad.url, good!.url], health: { failures: 3, rest: '1m', failStatuses: [502, 503] } }],
      },
    })
    for (let i = 0; i < 20; i++) expect((await call(url)).status).toBe(200)
    expect(bad.received).toHaveLength(3)
  })

  test('failure statuses send a WebSocket request to another address, and count against the first', async () => {
    const bad = await rig.serve()
    bad.server.on('upgrade', (incoming, socket) => {
      bad.received.push(incoming)
      socket.end('HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\naway')
    })
    const good = await rig.serve()
    new WebSocketServer({ server: good.server }).on('connection', socket => socket.send('hello'))
    const health = { failures: 2, rest: '1m', failStatuses: 503 }
    const { url } = await rig.guard({ gateway: { routes: [{ to: [bad.url, good.url], health }] } })
    for (let i = 0; i < 8; i++) {
      const socket = new WebSocket(url.replace('http', 'ws'))
      expect(String((await once(socket, 'message'))[0])).toBe('hello')
      socket.terminate()
    }
    expect(bad.received).toHaveLength(2)
  })

  test('statuses that count as failures are passed on with their body if the call may not be repeated, or no other address is there', async () => {
    const bad = await rig.serve((_request, response) => response.writeHead(503).end('away'))
    const { url } = await rig.guard({
      gateway: { routes: [{ to: bad.url, health: { failStatuses: 503 } }] },
    })
    expect(await call(url)).toMatchObject({ status: 503, text: 'away' })
    expect(await call(url, { method: 'POST', body: 'x' })).toMatchObject({ status: 503, text: 'away' })
    expect(bad.received).toHaveLength(2)
  })

  test('unlisted statuses are not failures', async () => {
    const bad = await rig.serve((_request, response) => response.writeHead(503).end())
    const [good] = await named('good')
    const { url } = await rig.guard({ gateway: { routes: [{ to: [bad.url, good!.url], health: { failures: 1 } }] } })
    const statuses: number[] = []
    for (let i = 0; i < 6; i++) statuses.push((await call(url)).status)
    expect(statuses).toEqual([503, 200, 503, 200, 503, 200])
  })
})

describe('balancing over several addresses', () => {
  test('each address gets its weight, and one with the weight 0 gets nothing', async () => {
    const services = await named('a', 'b', 'c')
    const [a, b, c] = services.map(({ url }) => url)
    const to = [{ url: a, weight: 3 }, { url: b, weight: 0 }, c]
    const { url } = await rig.guard({ gateway: { routes: [{ to }] } })
    for (let i = 0; i < 8; i++) await call(url)
    expect(services.map(({ received }) => received.length)).toEqual([6, 0, 2])
  })

  test('the address with the fewest open calls is next, if the route says so', async () => {
    const held: (() => void)[] = []
    const slow = await rig.serve((_request, response) => void held.push(() => response.end('slow')))
    const [quick] = await named('quick')
    const { url } = await rig.guard({
      gateway: { routes: [{ to: [slow.url, quick!.url], balance: 'least-connections' }] },
    })
    const first = call(url)
    await expect.poll(() => slow.received.length).toBe(1)
    for (let i = 0; i < 9; i++) expect((await call(url)).text).toBe('quick GET 0')
    held[0]!()
    expect((await first).text).toBe('slow')
  })

  test('a full address is skipped while another has room', async () => {
    const held: (() => void)[] = []
    const slow = await rig.serve((_request, response) => void held.push(() => response.end('slow')))
    const [quick] = await named('quick')
    const { url } = await rig.guard({
      gateway: { routes: [{ to: [slow.url, quick!.url], connections: { max: 1, queue: { size: 0 } } }] },
    })
    const first = call(url)
    await expect.poll(() => slow.received.length).toBe(1)
    for (let i = 0; i < 6; i++) expect((await call(url)).status).toBe(200)
    held[0]!()
    await first
  })

  test('a call that waited in vain for one address goes to another with room', async () => {
    const held: (() => void)[][] = [[], []]
    const services = await Promise.all(
      held.map(list => rig.serve((_request, response) => void list.push(() => response.end()))),
    )
    const connections = { max: 1, queue: { size: 1, timeout: '1s' } }
    const guarded = await rig.guard({ gateway: { routes: [{ to: services.map(one => one.url), connections }] } })
    const { url } = guarded
    const waiting = () => readUpstreams(guarded.limiter)[0]!.addresses.map(one => one.waiting)
    const first = [call(url), call(url)]
    rig.later(() => {
      for (const end of held.flat()) end()
    })
    await expect.poll(() => held.flat().length).toBe(2)
    // the address that it waits for stays busy; the other one becomes free
    const third = call(url, { method: 'POST', body: 'x' })
    await expect.poll(() => Math.max(...waiting())).toBe(1)
    const other = waiting().indexOf(0)
    held[other]![0]!()
    await expect.poll(() => held[other]!.length, { timeout: 5000 }).toBe(2)
    held[other]![1]!()
    held[1 - other]![0]!()
    const answers = await Promise.all([...first, third])
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
  })

  test('a silent address, a dead one and one that is killed and restarted lose no call', {
    timeout: 60_000,
  }, async () => {
    const good = await rig.serve()
    const moody = await rig.serve()
    const { port } = new URL(moody.url)
    const hole = await blackHole()
    const others = { timeouts: { connect: '300ms' }, health: { failures: 2, rest: '200ms' } }
    const dead = rig.nowhere()
    const { url } = await rig.guard({
      gateway: {
        routes: [
          { to: [hole, dead, good.url, moody.url], ...others },
          // a POST that was sent on a kept connection is lost with the service: none goes there
          { path: '/post', to: [hole, dead, good.url], ...others },
        ],
      },
    })
    const statuses: number[] = []
    let isDone = false
    rig.later(() => {
      isDone = true
    })
    const callers = Array.from({ length: 8 }, async (_, at) => {
      const isPost = at % 2 === 0
      const options = isPost ? ({ method: 'POST', body: 'x'.repeat(at) } as const) : {}
      while (!isDone) {
        const answer = call(isPost ? `${url}/post` : url, options)
        statuses.push((await answer.catch(() => ({ status: 0 }))).status)
      }
    })
    for (let round = 0; round < 3; round++) {
      moody.server.close()
      moody.server.closeAllConnections()
      const before = good.received.length
      await expect.poll(() => good.received.length - before, { timeout: 10_000 }).toBeGreaterThan(20)
      moody.server.listen(Number(port), '127.0.0.1')
      await once(moody.server, 'listening')
      const back = moody.received.length
      await expect.poll(() => moody.received.length - back, { timeout: 10_000 }).toBeGreaterThan(20)
    }
    isDone = true
    await Promise.all(callers)
    expect(statuses.filter(status => status !== 200)).toEqual([])
    expect(statuses.length).toBeGreaterThan(100)
  })
})

describe('services that fail in random ways', () => {
  type Mood = 'serves' | 'refuses' | 'resets' | 'answers 503' | 'closes with 408'

  /** A service that remembers which calls it has served and which have reached it. */
  class Moody {
    readonly served: string[] = []
    readonly reached: string[] = []
    readonly #calls = new WeakMap<object, number>()
    #mood: Mood = 'serves'
    service!: Service

    async start(): Promise<this> {
      this.service = await rig.serve(async (incoming, response) => {
        for await (const _ of incoming);
        const id = String(incoming.headers['x-id'])
        const calls = this.#calls.get(incoming.socket) ?? 0
        this.#calls.set(incoming.socket, calls + 1)
        this.reached.push(id)
        if (this.#mood === 'resets') incoming.socket.destroy()
        else if (this.#mood === 'answers 503') response.writeHead(503).end()
        else if (this.#mood === 'closes with 408' && calls > 0) response.writeHead(408, { connection: 'close' }).end()
        else {
          this.served.push(id)
          response.end()
        }
      })
      return this
    }

    async become(mood: Mood): Promise<void> {
      const { server, url } = this.service
      if (mood === 'refuses' && this.#mood !== 'refuses') {
        server.close()
        server.closeAllConnections()
        // the gateway learns of it in one of the next turns of the event loop
        for (let turn = 0; turn < 5; turn++) await new Promise(resolve => setImmediate(resolve))
      } else if (mood !== 'refuses' && this.#mood === 'refuses') {
        server.listen(Number(new URL(url).port), '127.0.0.1')
        await once(server, 'listening')
      }
      this.#mood = mood
    }
  }

  test('services that fail in random ways get no POST twice and no GET more than twice, and cost no call that another address could serve', async () => {
    const seed = Math.floor(Math.random() * 2 ** 31)
    let state = seed
    const random = (below: number) => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff
      return (state >>> 8) % below
    }
    const services = await Promise.all([new Moody().start(), new Moody().start(), new Moody().start()])
    const to = services.map(({ service }) => service.url)
    const others = { health: { failures: 99, failStatuses: 503 }, retryBudget: { percent: 100, perSecond: 10_000 } }
    const { url } = await rig.guard({
      gateway: {
        routes: [
          { to, ...others },
          // a POST on a connection that its service closes at that moment is lost: each has a new one
          { path: '/post', to, ...others, connections: { maxAge: '1ms' } },
        ],
      },
    })
    let id = 0
    for (let round = 0; round < 25; round++) {
      // at most one fails calls that it has got, since these are tried twice only; at least one serves
      const faults: Mood[] = ['resets', 'answers 503', 'closes with 408', 'serves']
      const moods: Mood[] = ['serves', random(2) === 0 ? 'serves' : 'refuses', faults[random(4)]!]
      const first = random(3)
      for (const [at, service] of services.entries()) await service.become(moods[(at + first) % 3]!)
      const calls = Array.from({ length: 8 }, async (_, at) => {
        const isPost = at % 2 === 0
        const headers = { 'x-id': `${isPost ? 'post' : 'get'}-${id++}` }
        const options = isPost
          ? ({ method: 'POST', body: Buffer.alloc(random(3) * 70_000), headers } as const)
          : { headers }
        const { status } = await call(isPost ? `${url}/post` : url, options)
        const mayFail = isPost && moods[2] !== 'serves'
        expect(mayFail ? [200, 408, 502, 503] : [200], `${headers['x-id']} with seed ${seed}`).toContain(status)
      })
      await Promise.all(calls)
    }
    const served = services.flatMap(one => one.served)
    expect(new Set(served).size, `seed ${seed}`).toBe(served.length)
    const times = new Map<string, number>()
    for (const one of services.flatMap(({ reached }) => reached)) times.set(one, (times.get(one) ?? 0) + 1)
    for (const [one, count] of times)
      expect(count, `${one} with seed ${seed}`).toBeLessThanOrEqual(one.startsWith('post') ? 1 : 2)
  })
})

test('callers who leave at any moment, also between two tries, leave no call under way and no slot taken', async () => {
  const slow = await rig.serve((_request, response) => void setTimeout(() => response.writeHead(503).end(), 20))
  const resetting = await rig.serveRaw(socket => socket.once('data', () => setTimeout(() => socket.destroy(), 10)))
  const to = [await blackHole(), rig.nowhere(), slow.url, resetting]
  const route = {
    ...{ to, timeouts: { connect: '100ms' }, health: { failures: 99, failStatuses: 503 } },
    connections: { max: 3, queue: { size: 5, timeout: '50ms' } },
  }
  const { url, limiter } = await rig.guard({ gateway: { routes: [route] } })
  const calls = Array.from({ length: 120 }, async (_, at) => {
    const isPost = at % 3 === 0
    const signal = AbortSignal.timeout(1 + ((at * 37) % 150))
    await call(url, { ...(isPost ? { method: 'POST', body: 'x'.repeat(1000) } : {}), signal }).catch(() => {})
  })
  const sockets = Array.from({ length: 20 }, async (_, at) => {
    const socket = new WebSocket(url.replace('http', 'ws')).on('error', () => {})
    setTimeout(() => socket.terminate(), at * 7)
    await new Promise(resolve => socket.on('close', resolve))
  })
  await Promise.all([...calls, ...sockets])
  const busy = () => readUpstreams(limiter)[0]!.addresses.map(({ underWay, waiting }) => underWay + waiting)
  await expect.poll(busy, { timeout: 10_000 }).toEqual([0, 0, 0, 0])
})

/** A port that answers nothing, not even that it is there: a process that has stopped, with a queue of connections that is full. */
async function blackHole(): Promise<string> {
  const program = `require('node:net').createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, function () {
    process.stdout.write(String(this.address().port)) })`
  const child = spawn(process.execPath, ['-e', program])
  rig.later(() => child.kill('SIGKILL'))
  const [text] = await once(child.stdout, 'data')
  const port = Number(String(text))
  child.kill('SIGSTOP')
  const waiting = Array.from({ length: 4 }, () => connect(port, '127.0.0.1').on('error', () => {}))
  rig.later(() => waiting.forEach(socket => void socket.destroy()))
  await once(waiting[1]!, 'connect')
  return `http://127.0.0.1:${port}`
}
