import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { freePort, onFreePorts, type Program, startProgram } from './program.ts'

/** A real Redis, and a client of it for tests. */
export interface RedisServer {
  readonly authority: string
  readonly client: Redis
  stop(signal?: NodeJS.Signals): Promise<void>
  start(): Promise<void>
  /** Stops it and deletes its data. */
  close(): Promise<void>
}

export const startRedis = (): Promise<RedisServer> => onFreePorts(startOnce)

async function startOnce(): Promise<RedisServer> {
  const folder = await mkdtemp(join(tmpdir(), 'diana-redis-'))
  const port = await freePort()
  // data is on disk at once, so that a stop loses nothing
  const args = ['--bind', '127.0.0.1', '--port', `${port}`, '--dir', folder, '--appendonly', 'yes']
  const client = new Redis({ port, host: '127.0.0.1', lazyConnect: true, retryStrategy: () => 20 })
  client.on('error', () => undefined)
  let program: Program | undefined
  const start = async () => {
    const isReady = async () => (await client.ping()) === 'PONG'
    program = await startProgram('redis-server', [...args, '--save', '', '--appendfsync', 'always'], isReady)
  }
  const stop = async (signal?: NodeJS.Signals) => {
    await program?.stop(signal)
    program = undefined
  }
  await start().catch(error => {
    client.disconnect()
    throw error
  })
  return {
    authority: `127.0.0.1:${port}`,
    client,
    start,
    stop,
    async close() {
      client.disconnect()
      await stop()
      await rm(folder, { recursive: true })
    },
  }
}
