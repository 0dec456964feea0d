import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

/** Sends a command by redis-benchmark in a process of its own; `key:__rand_int__` is one of 1,000 keys. */
export async function redisLoad(where, command, calls, { connections = 50, pipeline = 1 } = {}) {
  const load = ['-n', String(calls), '-c', String(connections), '-P', String(pipeline), '-r', '1000', '--csv']
  const { stdout } = await promisify(execFile)('redis-benchmark', [...where, ...load, ...command])
  const [names, values] = stdout
    .trim()
    .split('\n')
    .slice(-2)
    .map(line => line.replaceAll('"', '').split(','))
  const read = name => Number(values[names.indexOf(name)])
  return { calls, callsPerSecond: read('rps'), p50Ms: read('p50_latency_ms'), p99Ms: read('p99_latency_ms') }
}
