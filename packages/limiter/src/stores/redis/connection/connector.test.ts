import dns from 'node:dns/promises'
import { startBlackHole } from '@test/servers/black-hole'
import { type RedisServer, startRedis } from '@test/servers/redis-server'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { connectRedis } from './client.ts'
import { RedisConnector } from './connector.ts'

let server: RedisServer
let port: number
const closing: (() => unknown)[] = []

beforeAll(async () => {
  server = await startRedis()
  port = Number(server.authority.split(':')[1])
}, 30_000)
afterAll(() => server.close())
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
  vi.restoreAllMocks()
})

/** The name redis.test stands for these addresses. */
function resolveTo(...addresses: string[]): void {
  const found = addresses.map(address => ({ address, family: 4 }))
  vi.spyOn(dns, 'lookup').mockResolvedValue(found as never)
}

async function answersWithin(url: string, ms: number): Promise<void> {
  const { send, close } = await connectRedis(url)
  closing.push(close)
  await expect.poll(() => send(['PING']).catch(String), { timeout: ms, interval: 10 }).toBe('PONG')
}

describe('a name of several addresses', () => {
  it('a name of several addresses reaches Redis though its first address neither accepts nor refuses', async () => {
    const hole = await startBlackHole('127.0.0.2', port)
    closing.push(() => hole.close())
    resolveTo('127.0.0.2', '127.0.0.1')
    await answersWithin(`redis://redis.test:${port}`, 900)
  })

  it('a name of several addresses reaches Redis at once though its first addresses refuse', async () => {
    resolveTo('127.0.0.3', '127.0.0.4', '127.0.0.1')
    await answersWithin(`redis://redis.test:${port}`, 300)
  })
})

describe('a connect', () => {
  it('a connect fails at once when every address refuses', async () => {
    resolveTo('127.0.0.3', '127.0.0.4')
    const connector = new RedisConnector({ host: 'redis.test', port })
    const since = performance.now()
    const socket = await connector.connect()
    expect(performance.now() - since).toBeLessThan(200)
    expect(socket.destroyed).toBe(true)
    expect(connector.firstError?.message).toContain('ECONNREFUSED')
  })

  it('a connect fails after a second when nothing answers, and leaves no socket behind', async () => {
    const hole = await startBlackHole('127.0.0.2', port)
    closing.push(() => hole.close())
    const connector = new RedisConnector({ host: '127.0.0.2', port })
    const since = performance.now()
    expect((await connector.connect()).destroyed).toBe(true)
    expect(performance.now() - since).toBeLessThan(1300)
    expect(connector.firstError?.message).toBe('connect ETIMEDOUT')
  })

  it('a connect that is closed meanwhile is given up', async () => {
    const hole = await startBlackHole('127.0.0.2', port)
    closing.push(() => hole.close())
    const connector = new RedisConnector({ host: '127.0.0.2', port })
    const connecting = connector.connect()
    connector.disconnect()
    expect((await connecting).destroyed).toBe(true)
  })

  it('a connect reports a name that cannot be resolved', async () => {
    vi.spyOn(dns, 'lookup').mockRejectedValue(Object.assign(new Error('getaddrinfo ENOTFOUND redis.test')))
    const connector = new RedisConnector({ host: 'redis.test', port })
    expect((await connector.connect()).destroyed).toBe(true)
    expect(connector.firstError?.message).toContain('ENOTFOUND')
  })
})
