import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { createLimiter } from 'diana-limiter'
import { expect, it } from 'vitest'
import { createGateway, gatewaySection } from '../../gateway.ts'

it('a caller who closes their half of a connection leaves the wait for a WebSocket at once, and is not passed on', async () => {
  const asked: string[] = []
  const service = createServer((request, response) => {
    asked.push(request.url!)
    // the first call stays until the test has ended
    if (request.url !== '/first') response.end()
  }).on('upgrade', (request, socket) => {
    asked.push(request.url!)
    socket.destroy()
  })
  await once(service.listen(0, '127.0.0.1'), 'listening')
  const upstream = `http://127.0.0.1:${(service.address() as AddressInfo).port}`
  const limiter = await createLimiter({
    sections: [gatewaySection],
    rules: [{ id: 'one', algorithm: 'concurrency', limit: 1, whenFull: 'wait', queue: { timeout: '20s' } }],
  })
  const gateway = await createGateway({ limiter, upstream })
  try {
    await gateway.listen({ port: 0, host: '127.0.0.1' })
    const { port } = gateway.server.address() as AddressInfo
    const waiting = () => limiter.status().rules[0]!.waiting
    const first = connect(port, '127.0.0.1')
    first.write('GET /first HTTP/1.1\r\nHost: a\r\n\r\n')
    await expect.poll(() => asked).toEqual(['/first'])
    const second = connect(port, '127.0.0.1')
    const words = 'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n'
    second.write(`GET /second HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${words}\r\n`)
    await expect.poll(waiting).toBe(1)
    const closed = once(second.resume(), 'close')
    second.end()
    await expect.poll(waiting).toBe(0)
    await closed
    first.destroy()
    await expect.poll(async () => (await limiter.peek({ method: 'GET', path: '/' })).allowed).toBe(true)
    expect(asked).toEqual(['/first'])
  } finally {
    await gateway.close()
    await limiter.close()
    service.closeAllConnections()
    service.close()
  }
})
