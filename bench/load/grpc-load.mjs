import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const path = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit'

const field = (number, data) => Buffer.concat([Buffer.from([(number << 3) | 2, data.length]), data])
const entry = (key, value) => field(1, Buffer.concat([field(1, Buffer.from(key)), field(2, Buffer.from(value))]))
const entries = { remote_address: '203.0.113.9', account: 'account-1', path: '/orders' }
const descriptor = Buffer.concat(Object.entries(entries).map(([key, value]) => entry(key, value)))
const message = Buffer.concat([field(1, Buffer.from('edge')), field(2, descriptor)])
const frame = Buffer.concat([Buffer.from([0, 0, 0, 0, message.length]), message])

/** Asks a rate limit service by h2load in a process of its own; with `rate`, so many times a second. */
export async function grpcLoad(port, calls, { connections = 4, streams = 32, rate } = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'diana-bench-'))
  try {
    await writeFile(join(folder, 'body'), frame)
    const log = join(folder, 'log')
    const pace = rate === undefined ? [] : [`--rps=${rate / connections}`]
    const { stdout } = await promisify(execFile)('h2load', [
      ...[`-n${calls}`, `-c${connections}`, `-m${streams}`, '-t1', '-d', join(folder, 'body'), `--log-file=${log}`],
      ...[...pace, '-H', 'content-type: application/grpc', '-H', 'te: trailers', `http://127.0.0.1:${port}${path}`],
    ])
    const [, succeeded] = /(\d+) succeeded/.exec(stdout)
    if (Number(succeeded) !== calls) throw new Error(`${calls - succeeded} of ${calls} calls failed`)
    const times = (await readFile(log, 'utf8'))
      .trim()
      .split('\n')
      .map(line => Number(line.split('\t')[2]) / 1000)
    times.sort((one, other) => one - other)
    const at = share => times[Math.floor(times.length * share)]
    const callsPerSecond = Number(/([\d.]+) req\/s/.exec(stdout)[1])
    return { calls, callsPerSecond, p50Ms: at(0.5), p99Ms: at(0.99) }
  } finally {
    await rm(folder, { recursive: true })
  }
}
