import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { expect } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { openBrowser } from '../browser/stage.ts'
import { type Client, packageFolder, someBytes, versionOf } from './client.ts'

function installed(name: string): string | undefined {
  const folder = packageFolder()
  if (folder === undefined) return undefined
  try {
    return `${name} ${JSON.parse(readFileSync(join(folder, name, 'package.json'), 'utf8')).version}`
  } catch {
    return undefined
  }
}

// these packages are not in the set-up, and neither are their types
// biome-ignore lint/suspicious/noExplicitAny: the packages are optional
const load = (name: string): any => createRequire(join(packageFolder()!, 'x.js'))(name)

const ws: Client = {
  name: 'ws',
  isInstalledBySetUp: true,
  version: () => `ws ${createRequire(import.meta.url)('ws/package.json').version}`,
  async use(rig) {
    const server = createServer()
    const sockets = new WebSocketServer({ server, perMessageDeflate: true, maxPayload: 1e8 })
    sockets.on('connection', socket =>
      socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary })),
    )
    const { port } = await rig.guard({ gateway: { routes: [{ to: await rig.listen(server) }] } })
    const socket = new WebSocket(`ws://127.0.0.1:${port}`, { perMessageDeflate: true, maxPayload: 1e8 })
    await once(socket, 'open')
    const large = someBytes(10_000_000)
    socket.send(large)
    expect(large.equals((await once(socket, 'message'))[0])).toBe(true)
    socket.ping()
    await once(socket, 'pong')
    socket.close(4001, 'done')
    expect((await once(socket, 'close'))[0]).toBe(4001)
  },
}

const socketIo: Client = {
  name: 'Socket.IO',
  isInstalledBySetUp: false,
  version: () => installed('socket.io'),
  async use(rig) {
    const server = createServer()
    const io = new (load('socket.io').Server)(server)
    // biome-ignore lint/suspicious/noExplicitAny: the packages are optional
    io.on('connection', (socket: any) => socket.on('say', (text: unknown, done: (text: unknown) => void) => done(text)))
    const { url } = await rig.guard({ gateway: { routes: [{ to: await rig.listen(server) }] } })
    for (const transports of [['polling'], ['websocket'], ['polling', 'websocket']]) {
      const client = load('socket.io-client').io(url, { transports, forceNew: true })
      rig.later(() => client.close())
      await new Promise((resolve, reject) => client.on('connect', resolve).on('connect_error', reject))
      expect(await client.timeout(5000).emitWithAck('say', 'hello')).toBe('hello')
      expect(await client.timeout(5000).emitWithAck('say', 'x'.repeat(500_000))).toHaveLength(500_000)
      client.close()
    }
    io.close()
  },
}

const graphqlWs: Client = {
  name: 'GraphQL subscriptions (graphql-ws)',
  isInstalledBySetUp: false,
  version: () => installed('graphql-ws'),
  async use(rig) {
    const { GraphQLObjectType, GraphQLSchema, GraphQLString } = load('graphql')
    async function* greetings() {
      for (const word of ['one', 'two', 'three']) yield { greetings: word }
    }
    const text = { type: GraphQLString }
    const schema = new GraphQLSchema({
      query: new GraphQLObjectType({ name: 'Query', fields: { hello: { ...text, resolve: () => 'hello' } } }),
      subscription: new GraphQLObjectType({
        name: 'Subscription',
        fields: { greetings: { ...text, subscribe: greetings } },
      }),
    })
    const server = createServer()
    const sockets = new WebSocketServer({ server, handleProtocols: () => 'graphql-transport-ws' })
    load('graphql-ws/use/ws').useServer({ schema }, sockets)
    const { port } = await rig.guard({ gateway: { routes: [{ to: await rig.listen(server) }] } })
    const client = load('graphql-ws').createClient({ url: `ws://127.0.0.1:${port}`, webSocketImpl: WebSocket })
    const words: unknown[] = []
    for await (const { data } of client.iterate({ query: 'subscription { greetings }' })) words.push(data.greetings)
    expect(words).toEqual(['one', 'two', 'three'])
    await client.dispose()
  },
}

const chromium: Client = {
  name: 'Chromium (EventSource, fetch across origins, WebSocket)',
  isInstalledBySetUp: true,
  version: () => versionOf('chromium', ['--version', '--no-sandbox']),
  async use(rig) {
    const server = createServer((incoming, response) => {
      if (incoming.url === '/events') {
        response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
        setTimeout(() => response.end('data: one\n\ndata: two\n\n'), 300)
      } else incoming.pipe(response.setHeader('x-mine', '1'))
    })
    const sockets = new WebSocketServer({ server })
    sockets.on('connection', socket => socket.on('message', data => socket.send(String(data))))
    const to = await rig.listen(server)
    const page = await rig.serve((_, response) =>
      response.setHeader('content-type', 'text/html').end('<!doctype html><title>a</title>'),
    )
    const rules = [{ id: 'put', match: { path: '/limited' }, limit: '1/h' }]
    const { url } = await rig.guard({ rules, gateway: { cors: { origins: [page.url] }, routes: [{ to }] } })
    const browser = await openBrowser()
    rig.later(() => browser.close())
    const tab = await browser.newPage()
    await tab.goto(page.url)
    const seen = await tab.evaluate(async address => {
      const put = async (path: string) => {
        const answer = await fetch(address + path, { method: 'PUT', body: 'hi', headers: { 'x-custom': '1' } })
        return [answer.status, answer.headers.get('retry-after') !== null, await answer.text()]
      }
      const events = new EventSource(`${address}/events`)
      const opened = await new Promise(resolve => events.addEventListener('open', () => resolve(true)))
      const heard: string[] = []
      await new Promise<void>(resolve =>
        events.addEventListener('message', event => {
          heard.push(event.data)
          if (heard.length === 2) resolve()
        }),
      )
      events.close()
      const socket = new globalThis.WebSocket(address.replace('http', 'ws'))
      await new Promise(resolve => socket.addEventListener('open', resolve))
      const echoed = new Promise(resolve => socket.addEventListener('message', event => resolve(event.data)))
      socket.send('hello')
      return { opened, heard, first: await put('/limited'), second: await put('/limited'), echoed: await echoed }
    }, url)
    expect(seen).toEqual({
      opened: true,
      heard: ['one', 'two'],
      first: [200, false, 'hi'],
      second: [503, true, expect.stringContaining('Too many calls')],
      echoed: 'hello',
    })
  },
}

/** Clients that keep a connection open. */
export const liveClients: readonly Client[] = [ws, socketIo, graphqlWs, chromium]
