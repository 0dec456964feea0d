import { once } from 'node:events'
import { afterEach, describe, expect, test } from 'vitest'
import { GatewayRig, sendRaw, statusesIn } from '../../helpers/gateway-rig.ts'
import { call, isServed, socketOpener } from './raw-calls.ts'

const rig = new GatewayRig()
afterEach(() => rig.close())

const openSocket = socketOpener(rig)

describe('an unusual target', () => {
  test.each(['OPTIONS', 'GET', 'POST', 'DELETE'])('%s * leaves every connection to the service free', async method => {
    const { url, received } = await rig.serve()
    const guarded = await rig.guard({ gateway: { connections: { max: 2 }, routes: [{ to: url }] } })
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => sendRaw(guarded.port, call('*', ['Connection: close'], method))),
    )
    expect(new Set(answers.flatMap(statusesIn))).toEqual(new Set([method === 'OPTIONS' ? 204 : 400]))
    expect([await isServed(guarded.url), received.length]).toEqual([200, 1])
  })

  test.each(['CONNECT', 'TRACE'])('the unusual target %s is answered, also behind another call', async method => {
    const { url } = await rig.serve()
    const guarded = await rig.guard({ gateway: { routes: [{ to: url }] } })
    const target = method === 'CONNECT' ? 'example.com:443' : '/a'
    const answer = await sendRaw(guarded.port, call('/a') + call(target, ['Connection: close'], method))
    expect(statusesIn(answer)).toEqual([200, 405])
    expect(await isServed(guarded.url)).toBe(200)
  })

  test('an unknown Expect header is answered in order', async () => {
    const { url } = await rig.serve()
    const guarded = await rig.guard({ gateway: { routes: [{ to: url }] } })
    const answer = await sendRaw(
      guarded.port,
      call('/a') + call('/b', ['Expect: tea']) + call('/c', ['Connection: Upgrade, close', 'Upgrade: h2c']),
    )
    expect(statusesIn(answer)).toEqual([200, 417, 200])
  })
})

test.each([
  ['garbage', '\x00\x01\r\n\r\n', 400],
  ['headers that are too large', call('/b', [`X: ${'a'.repeat(20_000)}`]), 431],
  ['two lengths', call('/b', ['Content-Length: 1', 'Content-Length: 2'], 'POST'), 400],
])('%s behind an unanswered call are answered after it', async (_, bytes, status) => {
  const { url } = await rig.serve((_incoming, response) => setTimeout(() => response.end('slow'), 200))
  const guarded = await rig.guard({ gateway: { routes: [{ to: url }] } })
  for (const pieces of [[call('/slow') + bytes], [call('/slow'), bytes]]) {
    const answer = await sendRaw(guarded.port, ...pieces)
    expect(statusesIn(answer)).toEqual([200, status])
  }
})

test('a service gets no forwarding header from an untrusted caller', async () => {
  const { url, received } = await rig.serve()
  const guarded = await rig.guard({ gateway: { routes: [{ to: url }] } })
  const names = ['x-real-ip', 'x-forwarded-port', 'x-forwarded-prefix', 'x-original-url', 'x-rewrite-url', 'forwarded']
  await sendRaw(guarded.port, call('/free', [...names.map(name => `${name}: /hello`), 'Connection: close']))
  expect(names.filter(name => received[0]!.headers[name] === '/hello')).toEqual([])
  // the gateway names the port itself
  expect(names.filter(name => name in received[0]!.headers)).toEqual(['x-forwarded-port'])
})

test('a path with too many segments is refused', async () => {
  const { url } = await rig.serve()
  const guarded = await rig.guard({ gateway: { routes: [{ to: url }] } })
  const answers = await Promise.all(
    [200, 300].map(segments => sendRaw(guarded.port, call('/a'.repeat(segments), ['Connection: close']))),
  )
  expect(answers.flatMap(statusesIn)).toEqual([200, 400])
})

test('a call that its caller makes too large stays counted, since the service may have done its work', async () => {
  const { url, received } = await rig.serve(() => {})
  const rules = [{ id: 'sms', limit: '2/h', countWhen: '2xx' }]
  const guarded = await rig.guard({ rules, gateway: { limits: { body: '1KiB' }, routes: [{ to: url }] } })
  const statuses: number[] = []
  for (let i = 0; i < 4; i++) {
    const socket = openSocket(guarded).setEncoding('latin1')
    socket.write(`${call('/sms', ['Transfer-Encoding: chunked'], 'POST')}5\r\nhello\r\n`)
    await expect.poll(() => received.length > i || i > 1).toBe(true)
    socket.write(`1000\r\n${'x'.repeat(4096)}\r\n`)
    statuses.push(...statusesIn(String((await once(socket, 'data'))[0])))
    socket.destroy()
  }
  expect(statuses).toEqual([413, 413, 503, 503])
})

test.each([
  ['2xx', [504, 504, 504]],
  [
    ['2xx', '504'],
    [504, 504, 503],
  ],
])('countWhen: %j reads the 504 of the gateway as a status like any other', async (countWhen, expected) => {
  const { url } = await rig.serve(() => {})
  const rules = [{ id: 'sms', limit: '2/h', countWhen }]
  const guarded = await rig.guard({ rules, gateway: { routes: [{ to: url, timeouts: { headers: '50ms' } }] } })
  const statuses: number[] = []
  for (let i = 0; i < 3; i++) {
    statuses.push(...statusesIn(await sendRaw(guarded.port, call('/sms', ['Connection: close'], 'POST'))))
  }
  expect(statuses).toEqual(expected)
})

test.each(['/a%7Cb', '/x%5B1%5D', '/%40me', '/%7euser'])('a rule for %s counts every spelling of it', async path => {
  const { url } = await rig.serve()
  const rules = [{ id: 'one', match: { path }, limit: '1/h' }]
  const guarded = await rig.guard({ rules, gateway: { routes: [{ to: url }] } })
  const spellings = [path, path.toLowerCase(), decodeURIComponent(path)]
  const answers: number[] = []
  for (const target of spellings)
    answers.push(...statusesIn(await sendRaw(guarded.port, call(target, ['Connection: close']))))
  expect(answers).toEqual([200, 503, 503])
})
