import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, it } from 'vitest'
import { createLimiter } from '../../packages/limiter/src/create/create-limiter.ts'
import type { Limiter } from '../../packages/limiter/src/index.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

type Answer = (response: ServerResponse, request: IncomingMessage) => unknown

/** A server whose answers change, and a limiter that asks it for limits again after 50 ms. */
async function start(first: Answer) {
  let answer = first
  let open = 0
  const asked: string[] = []
  const server = createServer((request, response) => {
    asked.push(request.url!)
    answer(response, request)
  })
  server.on('connection', socket => {
    open++
    socket.on('close', () => open--).on('error', () => {})
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closing.push(() => {
    server.closeAllConnections()
    server.close()
  })
  const warnings: string[] = []
  const hear = (warning: Error) => warnings.push(warning.message)
  process.on('warning', hear)
  closing.push(() => process.off('warning', hear))
  const from = `http://127.0.0.1:${(server.address() as AddressInfo).port}/limits/{account}?by=diana`
  const limit = { from, refresh: '50ms', default: '3/h' }
  const limiter = await createLimiter({ rules: [{ id: 'each', by: 'account', limit }] })
  closing.push(() => limiter.close())
  const say = (next: Answer) => {
    answer = next
  }
  return { limiter, asked, warnings, say, openSockets: () => open }
}

const limitOf = async (limiter: Limiter, account = 'ann') => (await limiter.get('each', account)).decisions[0]!.limit
const until = { timeout: 3000, interval: 10 }

it('a limit of an HTTP server is used as soon as it is known, and again when it has changed', async () => {
  const { limiter, asked, say } = await start(response => response.end('8/h'))
  const [rule] = await limiter.explain({ method: 'GET', path: '/', attributes: { account: 'a/b c' } })
  expect([rule!.limits[0]!.count, rule!.limitFrom]).toEqual([3, 'default'])
  await expect.poll(() => limitOf(limiter, 'a/b c'), until).toBe(8)
  expect(asked[0]).toBe('/limits/a%2Fb%20c?by=diana')
  say(response => response.end('{"limit":"9/h","until":"2999-01-01T00:00:00Z"}'))
  await expect.poll(() => limitOf(limiter, 'a/b c'), until).toBe(9)
  say(response => response.writeHead(404).end('no such customer'))
  await expect.poll(() => limitOf(limiter, 'a/b c'), until).toBe(3)
})

it.each<[string, Answer, string]>([
  ['fails', response => response.writeHead(500).end('8/h'), 'answered HTTP 500'],
  ['redirects', response => response.writeHead(302, { location: '/elsewhere' }).end('8/h'), 'answered HTTP 302'],
  ['answers garbage', response => response.end('<html>lots</html>'), 'which is no limit'],
  ['answers bytes that are no text', response => response.end(Buffer.from([0xff, 0xfe])), 'not UTF-8'],
  ['answers without an end', response => flood(response), 'answered more than 1024 bytes'],
  ['hangs up', (_, request) => request.socket.destroy(), 'failed'],
])('a server of limits that %s leaves the last good limit, and is reported once', async (_, answer, trouble) => {
  const { limiter, asked, warnings, say, openSockets } = await start(response => response.end('8/h'))
  await expect.poll(() => limitOf(limiter), until).toBe(8)
  say(answer)
  const before = asked.length
  await expect.poll(async () => [await limitOf(limiter), asked.length > before + 2], until).toEqual([8, true])
  await expect.poll(() => warnings.length, until).toBe(1)
  expect(warnings[0]).toContain(trouble)
  expect(await limitOf(limiter, 'new')).toBe(3)
  expect(asked.filter(path => !path.startsWith('/limits/'))).toEqual([])
  expect(openSockets()).toBeLessThan(5)
  say(response => response.end('9/h'))
  await expect.poll(() => limitOf(limiter), until).toBe(9)
})

it('no call waits for a slow server of limits, which is asked once at a time for each caller', async () => {
  const { limiter, asked } = await start(() => {})
  const startedMs = performance.now()
  for (let turn = 0; turn < 20; turn++) expect(await limitOf(limiter)).toBe(3)
  expect(performance.now() - startedMs).toBeLessThan(1000)
  await expect.poll(() => asked.length, until).toBe(1)
})

it('a name that would change the path of the question is not asked for', async () => {
  const { limiter, asked } = await start(response => response.end('8/h'))
  for (const account of ['.', '..']) expect(await limitOf(limiter, account)).toBe(3)
  await expect.poll(() => limitOf(limiter, '../..'), until).toBe(8)
  expect(new Set(asked)).toEqual(new Set(['/limits/..%2F..?by=diana']))
})

function flood(response: ServerResponse): void {
  const chunk = Buffer.alloc(65_536, '8')
  const more = (): void => {
    while (!response.destroyed && response.write(chunk));
  }
  response.on('drain', more)
  more()
}
