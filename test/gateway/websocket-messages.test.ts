import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { GatewayRig } from '../helpers/gateway-rig.ts'

const rig = new GatewayRig()
const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
  await rig.close()
})

/** An echo service behind a gateway with these rules; `got` is what it has received. */
async function echo(rules: readonly object[], options: object = {}) {
  const service = new WebSocketServer({ port: 0, host: '127.0.0.1', ...options })
  await once(service, 'listening')
  const got: string[] = []
  const closes: number[] = []
  service.on('connection', socket => {
    socket.on('close', code => closes.push(code))
    socket.on('message', (data, isBinary) => {
      got.push(String(data))
      socket.send(data, { binary: isBinary })
    })
  })
  closing.push(() => service.close())
  const { port } = service.address() as AddressInfo
  const guarded = await rig.guard({ rules: rules as never, gateway: { routes: [{ to: `http://127.0.0.1:${port}` }] } })
  const open = async (headers: Record<string, string> = {}, more: object = {}): Promise<WebSocket> => {
    const socket = new WebSocket(guarded.url.replace('http', 'ws'), { headers, ...more })
    closing.push(() => socket.terminate())
    await once(socket, 'open')
    return socket
  }
  return { got, closes, open, guarded }
}

const messages = { match: { websocket: 'messages' }, by: 'header:x-user' }

async function collect(socket: WebSocket, count: number): Promise<string[]> {
  const echoed: string[] = []
  socket.on('message', data => echoed.push(String(data)))
  await expect.poll(() => echoed.length, { timeout: 5000 }).toBe(count)
  return echoed
}

describe('limits on messages of WebSockets', () => {
  it('a message beyond the limit closes the connection with 1013, and other callers go on', async () => {
    const { open, got, closes } = await echo([{ id: 'chat', limit: '3/h', ...messages }])
    const [ann, bob] = [await open({ 'x-user': 'ann' }), await open({ 'x-user': 'bob' })]
    for (let i = 0; i < 9; i++) ann.send(`ann ${i}`)
    const heard = collect(bob, 1)
    bob.send('bob')
    const [code, reason] = (await once(ann, 'close')) as [number, Buffer]
    expect([code, String(reason)]).toEqual([1013, 'too many messages'])
    expect(await heard).toEqual(['bob'])
    await expect.poll(() => got.toSorted()).toEqual(['ann 0', 'ann 1', 'ann 2', 'bob'])
    await expect.poll(() => closes).toEqual([1001])
    // the connection of the same caller is new, and the limit is not
    const again = await open({ 'x-user': 'ann' })
    again.send('more')
    expect((await once(again, 'close'))[0]).toBe(1013)
  })

  it('messages beyond the limit are dropped whole, and those after them arrive', async () => {
    const { open, got } = await echo([
      { id: 'chat', limit: '2/300ms', algorithm: 'fixed-window', align: 'first-call', whenFull: 'drop', ...messages },
    ])
    const socket = await open({ 'x-user': 'ann' })
    socket.send('one')
    socket.send('two')
    socket.send('frag', { fin: false })
    socket.send('ment', { fin: true })
    socket.send(Buffer.alloc(200_000))
    await new Promise(resolve => setTimeout(resolve, 400))
    socket.send('fra', { fin: false })
    socket.send('gment', { fin: true })
    await expect.poll(() => got).toEqual(['one', 'two', 'fragment'])
  })

  it('messages wait in order with whenFull: wait, and pings behind them are answered at once', async () => {
    const { open, got } = await echo([
      {
        id: 'chat',
        limit: '10/s',
        algorithm: 'leaky-bucket',
        burst: 1,
        whenFull: 'wait',
        queue: { timeout: '10s' },
        ...messages,
      },
    ])
    const socket = await open({ 'x-user': 'ann' })
    for (let i = 0; i < 5; i++) socket.send(String(i))
    const begin = performance.now()
    const ponged = once(socket, 'pong')
    socket.ping()
    await ponged
    expect(performance.now() - begin).toBeLessThan(300)
    expect(got.length).toBeLessThan(5)
    await expect.poll(() => got.length, { timeout: 5000 }).toBe(5)
    expect(got).toEqual(['0', '1', '2', '3', '4'])
    expect(performance.now() - begin).toBeGreaterThan(350)
  })

  it('a close frame does not overtake messages that wait', async () => {
    const { open, got, closes } = await echo([
      {
        id: 'chat',
        limit: '20/s',
        algorithm: 'leaky-bucket',
        burst: 1,
        whenFull: 'wait',
        queue: { timeout: '10s' },
        ...messages,
      },
    ])
    const socket = await open({ 'x-user': 'ann' })
    for (let i = 0; i < 4; i++) socket.send(String(i))
    socket.close(4000)
    await expect.poll(() => closes).toEqual([4000])
    expect(got).toEqual(['0', '1', '2', '3'])
  })

  it('the compression of a connection stays, and messages that it needs are not dropped', async () => {
    const text = 'again and again '.repeat(200)
    const { open, got } = await echo([{ id: 'chat', limit: '3/h', whenFull: 'drop', ...messages }], {
      perMessageDeflate: { threshold: 0 },
    })
    const socket = await open({ 'x-user': 'ann' }, { perMessageDeflate: { threshold: 0 } })
    for (let i = 0; i < 4; i++) socket.send(`${i} ${text}`)
    expect((await once(socket, 'close'))[0]).toBe(1013)
    await expect.poll(() => got).toEqual([0, 1, 2].map(i => `${i} ${text}`))
  })

  it('rules about messages do not count the call that opens a WebSocket, and other rules do not count messages', async () => {
    const { open, guarded, got } = await echo([
      { id: 'calls', limit: '2/h' },
      { id: 'chat', limit: '1/h', whenFull: 'drop', ...messages },
    ])
    const socket = await open({ 'x-user': 'ann' })
    for (let i = 0; i < 5; i++) socket.send(String(i))
    await expect.poll(() => got).toEqual(['0'])
    expect((await fetch(guarded.url)).status).not.toBe(503)
    expect((await fetch(guarded.url)).status).toBe(503)
  })

  it('bytes in any pieces are read as the same frames', async () => {
    const { open, got } = await echo([{ id: 'chat', limit: '1000/s', ...messages }])
    const socket = await open({ 'x-user': 'ann' })
    const raw = (socket as unknown as { _socket: { write(bytes: Buffer): void } })._socket
    const payload = Buffer.alloc(70_000, 'x')
    const frames = Buffer.concat([frameOf(Buffer.from('short')), frameOf(Buffer.alloc(300, 'y')), frameOf(payload)])
    const sizes = [1, 1, 1, 2, 3, 5, 7, 100, 211, 1, 1, 1, 1, 1, 1, 1, 1, 30_000, 70_000]
    let at = 0
    for (const size of sizes) {
      raw.write(frames.subarray(at, at + size))
      at += size
      await new Promise(resolve => setImmediate(resolve))
    }
    await expect.poll(() => got.map(text => text.length)).toEqual([5, 300, 70_000])
  })
})

/** A text frame of a client, masked. */
function frameOf(payload: Buffer): Buffer {
  const { length } = payload
  const head = length < 126 ? Buffer.from([0x81, 0x80 | length]) : Buffer.alloc(length < 65_536 ? 4 : 10)
  if (length >= 126) {
    head[0] = 0x81
    head[1] = 0x80 | (length < 65_536 ? 126 : 127)
    if (length < 65_536) head.writeUInt16BE(length, 2)
    else head.writeBigUInt64BE(BigInt(length), 2)
  }
  const mask = Buffer.from([1, 2, 3, 4])
  return Buffer.concat([head, mask, Buffer.from(payload.map((byte, i) => byte ^ mask[i % 4]!))])
}
