import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { Redis } from 'ioredis'
import { freePort } from '../helpers/free-port.mjs'

/** A real Redis that keeps its data on disk at once, unless told to forget. */
export async function startRedis(more = []) {
  const folder = mkdtempSync(join(tmpdir(), 'diana-chaos-'))
  const port = await freePort()
  const args = ['--bind', '127.0.0.1', '--port', `${port}`, '--dir', folder, '--save', '']
  const lasting = ['--appendonly', 'yes', '--appendfsync', 'always']
  const client = new Redis({ port, host: '127.0.0.1', retryStrategy: () => 20, maxRetriesPerRequest: 1000 })
  client.on('error', () => {})
  let server
  const kill = signal => server.kill(signal)
  const end = () => {
    server?.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  }
  process.once('exit', end)
  const redis = {
    port,
    client,
    kill,
    async start({ isEmpty = false, waits = true, args: own = [] } = {}) {
      if (isEmpty) rmSync(join(folder, 'appendonlydir'), { recursive: true, force: true })
      server = spawn('redis-server', [...args, ...lasting, ...more, ...own], { stdio: 'ignore' })
      if (waits) await client.ping()
    },
    async stop(signal = 'SIGKILL') {
      const exited = once(server, 'exit')
      server.kill(signal)
      await exited
    },
    async close() {
      process.removeListener('exit', end)
      client.disconnect()
      if (server.exitCode === null && server.signalCode === null) {
        server.kill('SIGCONT')
        await redis.stop()
      }
      rmSync(folder, { recursive: true, force: true })
    },
  }
  await redis.start()
  return redis
}

/** A Cluster of three masters that notices within a second when one is lost. */
export async function startCluster() {
  const nodes = []
  for (let i = 0; i < 3; i++) {
    const bus = await freePort()
    nodes.push(
      await startRedis(['--cluster-enabled', 'yes', '--cluster-port', `${bus}`, '--cluster-node-timeout', '1000']),
    )
  }
  const authorities = nodes.map(({ port }) => `127.0.0.1:${port}`)
  await promisify(execFile)('redis-cli', ['--cluster', 'create', ...authorities, '--cluster-yes'])
  await untilWhole(nodes)
  return { nodes, urls: authorities.map(authority => `redis://${authority}`) }
}

/** Waits until every node of a Cluster answers for all slots; a master that comes back lets 2 seconds pass before it does. */
export async function untilWhole(nodes) {
  for (const { client } of nodes) {
    while (!String(await client.cluster('INFO').catch(() => '')).includes('cluster_state:ok')) await pause(20)
  }
}
