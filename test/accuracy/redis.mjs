import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { startCluster as startNodes } from '../chaos/redis.mjs'

/** Starts a Redis of our own that writes nothing to disk; it ends with this process, or when closed. */
export async function startRedis() {
  const folder = mkdtempSync(join(tmpdir(), 'diana-accuracy-'))
  const socket = join(folder, 'redis.sock')
  const args = ['--port', '0', '--unixsocket', socket, '--dir', folder, '--save', '', '--appendonly', 'no']
  const server = spawn('redis-server', args, { stdio: 'ignore' })
  const end = () => {
    server.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  }
  process.once('exit', end)
  const client = new Redis(socket, { lazyConnect: true, retryStrategy: () => 20, maxRetriesPerRequest: 500 })
  client.on('error', () => {})
  const missing = once(server, 'error').then(([error]) => {
    throw new Error(`redis-server cannot be started (${error.code}); install it and put it on the PATH`)
  })
  const exited = once(server, 'exit').then(([code]) => {
    throw new Error(`redis-server ended with code ${code}`)
  })
  await Promise.race([missing, exited, client.ping()])
  missing.catch(() => {})
  exited.catch(() => {})
  return {
    target: { socket },
    client,
    clear: () => client.flushall(),
    async close() {
      process.removeListener('exit', end)
      client.disconnect()
      end()
      while (server.exitCode === null && server.signalCode === null) await pause(5)
    },
  }
}

/** Starts a Cluster of three masters that write nothing to disk. */
export async function startCluster() {
  const { nodes } = await startNodes()
  const onAll = act => Promise.all(nodes.map(act))
  await onAll(({ client }) => client.config('SET', 'appendonly', 'no'))
  return {
    target: { ports: nodes.map(({ port }) => port) },
    clear: () => onAll(({ client }) => client.flushall()),
    close: () => onAll(node => node.close()),
  }
}
