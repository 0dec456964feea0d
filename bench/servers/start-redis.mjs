import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { Redis } from 'ioredis'

/** Starts a redis-server of its own on a Unix socket, without persistence, and a client of it. */
export async function startRedis() {
  const folder = await mkdtemp(join(tmpdir(), 'diana-bench-'))
  const path = join(folder, 'redis.sock')
  const args = ['--port', '0', '--unixsocket', path, '--save', '', '--appendonly', 'no', '--dir', folder]
  const child = spawn('redis-server', args, { stdio: 'ignore' })
  const kill = () => child.kill('SIGKILL')
  process.once('exit', kill)
  const client = new Redis(path, { lazyConnect: true, retryStrategy: () => 20, maxRetriesPerRequest: null })
  client.on('error', () => undefined)
  while ((await client.ping().catch(() => undefined)) !== 'PONG') await setTimeout(20)
  return {
    path,
    client,
    freeze: () => child.kill('SIGSTOP'),
    async cpuSeconds() {
      const info = await client.info('cpu')
      return ['user', 'sys'].reduce((sum, part) => sum + Number(info.match(`used_cpu_${part}:([\\d.]+)`)[1]), 0)
    },
    /** The CPU time of the thread that answers commands, as Linux counts it. */
    async busyMs() {
      const counted = await readFile(`/proc/${child.pid}/task/${child.pid}/schedstat`, 'utf8')
      return Number(counted.split(' ')[0]) / 1e6
    },
    async stop() {
      process.removeListener('exit', kill)
      client.disconnect()
      child.kill('SIGKILL')
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
      await rm(folder, { recursive: true })
    },
  }
}
