import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { adminOf } from '../../packages/limiter/src/admin/limiter-admin.ts'
import { createLimiter } from '../../packages/limiter/src/create/create-limiter.ts'
import type { Limiter } from '../../packages/limiter/src/limiter.ts'
import { measures } from '../../packages/limiter/src/metrics/measure.ts'
import { freePort, type Program, startProgram } from '../helpers/servers/program.ts'
import { type RedisServer, startRedis } from '../helpers/servers/redis-server.ts'

let server: RedisServer
let replica: RedisServer
let tls: Program
let tlsPort: number
const folder = mkdtempSync(join(tmpdir(), 'diana-start-'))
const http = createServer((_, response) => response.end('hello')).listen(0, '127.0.0.1')
const warnings: (Error & { code?: string })[] = []
const hear = (warning: Error): unknown => warnings.push(warning)
const closing: (() => Promise<unknown>)[] = []

beforeAll(async () => {
  process.on('warning', hear)
  ;[server, replica] = await Promise.all([startRedis(), startRedis()])
  await replica.client.replicaof(...(server.authority.split(':') as [string, string]))
  await server.client.call('ACL', 'SETUSER', 'no-scripts', 'on', '>x', '~*', '+@all', '-eval', '-evalsha')
  await server.client.call('ACL', 'SETUSER', 'no-keys', 'on', '>x', '~other:*', '+@all')
  const [key, certificate] = [join(folder, 'key.pem'), join(folder, 'certificate.pem')]
  const subject = ['-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1']
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2']
  execFileSync('openssl', ['req', '-x509', ...curve, ...subject, '-keyout', key, '-out', certificate], {
    stdio: 'ignore',
  })
  tlsPort = await freePort()
  const files = ['--tls-cert-file', certificate, '--tls-key-file', key, '--tls-auth-clients', 'no']
  const isReady = async (): Promise<boolean> => {
    const socket = connect(tlsPort, '127.0.0.1')
    await once(socket, 'connect').finally(() => socket.destroy())
    return true
  }
  const args = ['--bind', '127.0.0.1', '--port', '0', '--tls-port', String(tlsPort), ...files, '--save', '']
  tls = await startProgram('redis-server', [...args, '--dir', folder], isReady)
}, 60_000)
afterAll(async () => {
  process.removeListener('warning', hear)
  http.close()
  await Promise.all([server.close(), replica.close(), tls.stop()])
  rmSync(folder, { recursive: true })
})
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

async function start(redis: string): Promise<Limiter> {
  const limiter = await createLimiter({ store: { redis }, rules: [{ id: 'all', limit: '5/h' }] })
  closing.push(() => limiter.close())
  return limiter
}

const ask = (limiter: Limiter) => limiter.check({ method: 'GET', path: '/' })

const troubles = (limiter: Limiter) =>
  measures.find(({ name }) => name === 'diana_store_trouble')!.read(adminOf(limiter).stats(), limiter.status())

describe('a start without a Redis that can be used', () => {
  it.each([
    ['is not there', async () => `redis://127.0.0.1:${await freePort()}`, 'STORE_REFUSES_CONNECTIONS', 'host and port'],
    ['has an unknown host name', () => 'redis://no-such-host.invalid', 'STORE_NAME_UNKNOWN', 'correct the host'],
    ['has no socket there', () => join(folder, 'none.sock'), 'STORE_UNREACHABLE', 'start Redis'],
    ['speaks no TLS', () => `rediss://${server.authority}`, 'STORE_SPEAKS_NO_TLS', 'redis:// instead of rediss://'],
    [
      'speaks TLS only',
      () => `redis://127.0.0.1:${tlsPort}`,
      'STORE_CLOSES_CONNECTIONS',
      'rediss:// instead of redis://',
    ],
    ['has a certificate of its own', () => `rediss://127.0.0.1:${tlsPort}`, 'STORE_CERTIFICATE', 'NODE_EXTRA_CA_CERTS'],
    [
      'is an HTTP server',
      () => `redis://127.0.0.1:${(http.address() as AddressInfo).port}`,
      'STORE_IS_NOT_REDIS',
      'host and port',
    ],
    ['has another password', () => `redis://no-keys:wrong@${server.authority}`, 'STORE_PASSWORD', 'user and password'],
    ['has no such database', () => `redis://${server.authority}/99`, 'STORE_DATABASE', 'such as /0'],
    ['is a read-only replica', () => `redis://${replica.authority}`, 'STORE_READONLY', 'name the master'],
    ['lets the user run no scripts', () => `redis://no-scripts:x@${server.authority}`, 'STORE_PERMISSION', 'commands'],
    ['lets the user touch no keys', () => `redis://no-keys:x@${server.authority}`, 'STORE_PERMISSION', 'the prefix'],
  ])('createLimiter reports a Redis that %s', async (_, url, code, remedy) => {
    const before = warnings.length
    const limiter = await start(await url())
    expect((await ask(limiter)).allowed).toBe(true)
    await expect.poll(() => limiter.status().store, { timeout: 2000 }).toMatchObject({ healthy: false, code })
    expect(limiter.status().store?.remedy).toContain(remedy)
    expect(troubles(limiter)).toEqual([{ labels: { code }, value: 1 }])
    for (let i = 0; i < 6; i++) await ask(limiter)
    expect((await ask(limiter)).allowed).toBe(false)
    // a cause is reported once in the life of a process, when the event loop has turned
    for (let i = 0; i < 3; i++) await nextTurn()
    const heard = warnings.slice(before).filter(({ message }) => message.includes(code))
    const known = warnings.slice(0, before).some(({ message }) => message.includes(code))
    expect(heard).toHaveLength(known ? 0 : 1)
    if (!known) expect(heard[0]!.message).toContain(remedy)
    expect(warnings.slice(before)).toHaveLength(heard.length)
  })

  it.each(['redis://127.0.0.1/abc', 'redis://127.0.0.1/-1', 'redis://127.0.0.1/1.5'])(
    'createLimiter refuses the database of %s',
    async url => {
      await expect(start(url)).rejects.toThrow('must end with the number of a database or nothing')
    },
  )

  it('a limiter counts nothing in database 0 if its own database does not exist', async () => {
    await server.client.flushall()
    const limiter = await start(`redis://${server.authority}/99`)
    for (let i = 0; i < 5; i++) await ask(limiter)
    await expect.poll(() => limiter.status().store?.code).toBe('STORE_DATABASE')
    expect(await server.client.dbsize()).toBe(0)
  })
})

describe('a Redis that could not be used at the start', () => {
  const untilHealthy = (limiter: Limiter) =>
    expect.poll(() => limiter.status().store?.healthy, { timeout: 5000 }).toBe(true)

  it('Redis is used once the user may run scripts', async () => {
    await server.client.call('ACL', 'SETUSER', 'later', 'on', '>x', '~*', '+@all', '-eval', '-evalsha')
    const limiter = await start(`redis://later:x@${server.authority}`)
    expect(limiter.status().store).toMatchObject({ healthy: false, code: 'STORE_PERMISSION' })
    await server.client.call('ACL', 'SETUSER', 'later', '+eval', '+evalsha')
    await untilHealthy(limiter)
    expect(limiter.status().store?.code).toBeUndefined()
    expect(troubles(limiter)).toEqual([])
  })

  it('Redis is used once the password is right', async () => {
    await server.client.call('ACL', 'SETUSER', 'changing', 'on', '>old', '~*', '+@all')
    const limiter = await start(`redis://changing:new@${server.authority}`)
    expect(limiter.status().store).toMatchObject({ healthy: false, code: 'STORE_PASSWORD' })
    await server.client.call('ACL', 'SETUSER', 'changing', '>new')
    await untilHealthy(limiter)
  })

  it('Redis is used once it replaces another server at the address', async () => {
    const port = await freePort()
    const other = createServer().listen(port, '127.0.0.1')
    await once(other, 'listening')
    const limiter = await start(`redis://127.0.0.1:${port}/17`)
    await expect.poll(() => limiter.status().store?.code).toBe('STORE_IS_NOT_REDIS')
    other.closeAllConnections()
    other.close()
    const run = async (databases: string): Promise<Program> => {
      const client = new Redis({ port, host: '127.0.0.1', lazyConnect: true, retryStrategy: () => 20 })
      client.on('error', () => undefined)
      const args = ['--bind', '127.0.0.1', '--port', `${port}`, '--save', '', '--databases', databases]
      const program = await startProgram('redis-server', args, async () => (await client.ping()) === 'PONG')
      client.disconnect()
      return program
    }
    const small = await run('16')
    await expect.poll(() => limiter.status().store?.code, { timeout: 5000 }).toBe('STORE_DATABASE')
    await small.stop()
    const large = await run('18')
    closing.unshift(() => large.stop())
    await untilHealthy(limiter)
  })
})
