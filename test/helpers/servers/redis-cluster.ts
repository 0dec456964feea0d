import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { promisify } from 'node:util'
import { Cluster, Redis } from 'ioredis'
import { freePort, onFreePorts, type Program, startProgram } from './program.ts'

/** A real Redis Cluster of three masters. */
export interface RedisCluster {
  readonly urls: readonly string[]
  readonly client: Cluster
  readonly nodes: readonly Redis[]
  readonly anyNode: Redis
  close(): Promise<void>
}

export async function startCluster(): Promise<RedisCluster> {
  const folder = await mkdtemp(join(tmpdir(), 'diana-cluster-'))
  const starting = ['a', 'b', 'c'].map(name => onFreePorts(() => startNode(folder, name)))
  const started = await Promise.all(starting).catch(async error => {
    for (const one of await Promise.allSettled(starting)) if (one.status === 'fulfilled') await stopNode(one.value)
    throw error
  })
  const authorities = started.map(({ port }) => `127.0.0.1:${port}`)
  await promisify(execFile)('redis-cli', ['--cluster', 'create', ...authorities, '--cluster-yes'])
  const nodes = started.map(({ client }) => client)
  for (const node of nodes) {
    while (!String(await node.cluster('INFO')).includes('cluster_state:ok')) await setTimeout(20)
  }
  const client = new Cluster(started.map(({ port }) => ({ host: '127.0.0.1', port })))
  client.on('error', () => undefined)
  return {
    urls: authorities.map(authority => `redis://${authority}`),
    client,
    nodes,
    anyNode: nodes[0]!,
    async close() {
      client.disconnect()
      await Promise.all(started.map(stopNode))
      await rm(folder, { recursive: true })
    },
  }
}

interface Node {
  readonly port: number
  readonly client: Redis
  readonly program: Program
}

function stopNode({ client, program }: Node): Promise<void> {
  client.disconnect()
  return program.stop()
}

async function startNode(folder: string, name: string): Promise<Node> {
  const port = await freePort()
  const busPort = await freePort()
  const args = ['--bind', '127.0.0.1', '--port', `${port}`, '--cluster-port', `${busPort}`, '--dir', folder]
  const client = new Redis({ port, host: '127.0.0.1', lazyConnect: true, retryStrategy: () => 20 })
  client.on('error', () => undefined)
  const program = await startProgram(
    'redis-server',
    [...args, '--cluster-enabled', 'yes', '--cluster-config-file', `${name}.conf`, '--save', ''],
    async () => (await client.ping()) === 'PONG',
  ).catch(error => {
    client.disconnect()
    throw error
  })
  return { port, client, program }
}
