import { execFileSync } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort, type Program, startProgram } from '@test/servers/program'
import { type RedisCluster, startCluster } from '@test/servers/redis-cluster'
import { type RedisServer, startRedis } from '@test/servers/redis-server'
import { Redis } from 'ioredis'
import { createClient, createCluster } from 'redis'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { fixedWindow } from '../../../algorithms/fixed-window.ts'
import { redisCharge } from '../counter.ts'
import { RedisStore } from '../redis-store.ts'
import { connectRedis, type RedisTarget } from './client.ts'

let server: RedisServer
let cluster: RedisCluster
const closing: (() => unknown)[] = []

beforeAll(async () => {
  ;[server, cluster] = await Promise.all([startRedis(), startCluster()])
  await server.client.config('SET', 'appendonly', 'no')
}, 60_000)
afterAll(() => Promise.all([server.close(), cluster.close()]))
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

/** Counts three calls of two rules over a connection; answers what is left of ten. */
async function countOver(target: RedisTarget): Promise<number[]> {
  const { send, isCluster, close } = await connectRedis(target)
  const store = new RedisStore(send, { isCluster, prefix: `p${Math.random()}` })
  closing.push(close, () => store.close())
  const counters = ['one', 'other'].map(id => {
    const meters = [fixedWindow.meter({ count: 10, periodMs: 86_400_000 }, {})]
    return store.createCounter({ id, meters, algorithm: 'fixed-window', enforced: true })
  })
  const take = () => {
    const charges = counters.map(counter => ({ ...redisCharge(counter), key: 'someone', cost: 1 }))
    return store.take(charges).then(() => charges.map(({ remaining }) => remaining[0]!))
  }
  // a client that Diana opened refuses commands until it is connected
  await vi.waitFor(take, { timeout: 5000 })
  await take()
  return await take()
}

describe('Redis is reached', () => {
  it('Redis is reached by a URL', async () => {
    expect(await countOver(`redis://${server.authority}`)).toEqual([7, 7])
  })

  it('Redis is reached by a URL with a database', async () => {
    await countOver(`redis://${server.authority}/3`)
    expect(await server.client.info('keyspace')).toContain('db3:')
  })

  it('Redis is reached by a URL with a user, and not with a wrong password', async () => {
    await server.client.call('ACL', 'SETUSER', 'diana', 'on', '>p@ss', '~*', '+@all')
    expect(await countOver(`redis://diana:p%40ss@${server.authority}`)).toEqual([7, 7])
    const { send, close } = await connectRedis(`redis://diana:wrong@${server.authority}`)
    closing.push(close)
    await expect(vi.waitFor(() => send(['PING']), { timeout: 300 })).rejects.toThrow()
  })

  it('Redis is reached by a user who may do no more than is needed', async () => {
    const may = ['~diana:*', '~p0*', '+evalsha', '+eval', '+mget', '+set', '+unlink', '+time', '+info']
    await server.client.call('ACL', 'SETUSER', 'little', 'on', '>secret', ...may)
    expect(await countOver(`redis://little:secret@${server.authority}`)).toEqual([7, 7])
  })

  it('Redis is reached by the path of a socket', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'diana-socket-'))
    const path = join(folder, 'redis.sock')
    const probe = new Redis(path, { lazyConnect: true, retryStrategy: () => 20 })
    probe.on('error', () => undefined)
    const isReady = async () => (await probe.ping()) === 'PONG'
    const args = ['--port', '0', '--unixsocket', path, '--save', '', '--dir', folder]
    const program = await startProgram('redis-server', args, isReady)
    probe.disconnect()
    closing.push(
      () => rm(folder, { recursive: true }),
      () => program.stop(),
    )
    expect(await countOver(path)).toEqual([7, 7])
  })

  it('Redis is reached by a URL over TLS if the certificate is trusted', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'diana-tls-'))
    const [key, certificate] = [join(folder, 'key.pem'), join(folder, 'certificate.pem')]
    const subject = ['-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1']
    const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2']
    execFileSync('openssl', ['req', '-x509', ...curve, ...subject, '-keyout', key, '-out', certificate], {
      stdio: 'ignore',
    })
    const port = await freePort()
    const ca = await readFile(certificate)
    const probe = new Redis({ port, host: '127.0.0.1', tls: { ca }, lazyConnect: true, retryStrategy: () => 20 })
    probe.on('error', () => undefined)
    const files = ['--tls-cert-file', certificate, '--tls-key-file', key, '--tls-auth-clients', 'no']
    const args = ['--port', '0', '--tls-port', String(port), ...files, '--save', '', '--dir', folder]
    const program = await startProgram('redis-server', args, async () => (await probe.ping()) === 'PONG')
    closing.push(
      () => rm(folder, { recursive: true }),
      () => program.stop(),
      () => probe.disconnect(),
    )
    expect(await countOver(probe)).toEqual([7, 7])
    const { send, close } = await connectRedis(`rediss://127.0.0.1:${port}`)
    closing.push(close)
    await expect(vi.waitFor(() => send(['PING']), { timeout: 300 })).rejects.toThrow()
    vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0')
    closing.push(() => vi.unstubAllEnvs())
    expect(await countOver(`rediss://127.0.0.1:${port}`)).toEqual([7, 7])
  })

  it('Redis is reached by the URLs of a Cluster', async () => {
    expect(await countOver(cluster.urls)).toEqual([7, 7])
  })

  it('Redis is reached by an ioredis client of the application', async () => {
    expect(await countOver(server.client)).toEqual([7, 7])
    expect(server.client.status).toBe('ready')
  })

  it('Redis is reached by an ioredis Cluster of the application', async () => {
    expect(await countOver(cluster.client)).toEqual([7, 7])
  })

  it('Redis is reached by a node-redis client of the application', async () => {
    const client = createClient({ url: `redis://${server.authority}` })
    await client.connect()
    closing.push(() => client.close())
    expect(await countOver(client)).toEqual([7, 7])
  })

  it('Redis is reached by a node-redis cluster of the application', async () => {
    const client = createCluster({ rootNodes: cluster.urls.map(url => ({ url })) })
    await client.connect()
    closing.push(() => client.close())
    expect(await countOver(client)).toEqual([7, 7])
  })

  it('Redis is reached by a function', async () => {
    expect(await countOver(([name, ...args]) => server.client.call(name!, ...args))).toEqual([7, 7])
  })

  it('Redis is reached by Sentinels', async () => {
    const { url, stop } = await startSentinel(server)
    closing.push(stop)
    expect(await countOver(url)).toEqual([7, 7])
  })
})

describe('a target that cannot be used', () => {
  it.each([
    '',
    'http://127.0.0.1',
    'redis://:bad port',
    'redis+sentinel://',
    [],
    ['redis://127.0.0.1:1', 'x'],
    {},
    undefined,
    7,
  ])('a target that cannot be used is a clear error: %j', async target => {
    await expect(connectRedis(target as unknown as RedisTarget)).rejects.toThrow('store.redis must be a URL such as')
  })

  it('a server that is away fails at once', async () => {
    const { send, close } = await connectRedis(`redis://127.0.0.1:${await freePort()}`)
    closing.push(close)
    const started = performance.now()
    await expect(send(['PING'])).rejects.toThrow()
    expect(performance.now() - started).toBeLessThan(500)
  })
})

async function startSentinel(master: RedisServer): Promise<{ url: string; stop: () => Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'diana-sentinel-'))
  const port = await freePort()
  const file = join(folder, 'sentinel.conf')
  const [host, masterPort] = master.authority.split(':')
  await writeFile(file, `port ${port}\nbind 127.0.0.1\nsentinel monitor main ${host} ${masterPort} 1\n`)
  const probe = new Redis({
    port,
    host: '127.0.0.1',
    lazyConnect: true,
    retryStrategy: () => 20,
    enableReadyCheck: false,
  })
  probe.on('error', () => undefined)
  const isReady = async () => (await probe.ping()) === 'PONG'
  const program: Program = await startProgram('redis-server', [file, '--sentinel', '--dir', folder], isReady)
  probe.disconnect()
  const stop = async () => {
    await program.stop()
    await rm(folder, { recursive: true })
  }
  return { url: `redis+sentinel://127.0.0.1:${port}/main`, stop }
}
