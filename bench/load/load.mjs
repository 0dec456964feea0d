import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const script = fileURLToPath(new URL('load.lua', import.meta.url))

/**
 * Calls a server as fast as it answers, from wrk in a process of its own; any answer but 2xx is a failure. There may be
 * no call at all, if the machine is busy and the server has just started.
 */
export async function load(port, { seconds, connections }) {
  const args = ['-t1', `-c${connections}`, `-d${seconds}s`, '-s', script, `http://127.0.0.1:${port}/orders`]
  const { stdout } = await promisify(execFile)('wrk', args)
  const { calls, microseconds, failed, p50, p99 } = JSON.parse(stdout.split('\n').at(-1))
  if (failed > 0) throw new Error(`${failed} of ${calls} calls failed`)
  return { calls, callsPerSecond: calls / (microseconds / 1e6), p50Ms: p50 / 1000, p99Ms: p99 / 1000 }
}
