// The decision server: questions of Envoy over gRPC, and nginx that asks before it passes a request on.

import { grpcLoad } from '../load/grpc-load.mjs'
import { redisLoad } from '../load/redis-load.mjs'
import { sample, warmUp } from '../load/under-load.mjs'
import { startAskingNginx } from '../servers/start-nginx.mjs'
import { startRedis } from '../servers/start-redis.mjs'
import { startServer } from '../servers/start-server.mjs'

const CONNECTIONS = 64
const SLICES_PER_ROUND = 4
const SLICE_SECONDS = 1
const empty = 'empty service on node:http2'
const library = 'empty service, @grpc/grpc-js'
const limited = 'diana serve, four rules'
const gateway = 'diana gateway, four rules'
const alone = 'nginx alone'
const floor = 'nginx asks an empty node:http'
const asking = 'nginx asks diana serve, four rules'
const get = 'redis-server, GET'
const throttle = 'diana serve, CL.THROTTLE'
const byRule = 'diana serve, DIANA.CHECK'
const redisCommands = {
  [get]: ['GET', 'key:__rand_int__'],
  [throttle]: ['CL.THROTTLE', 'key:__rand_int__', '999999', '1000000', '60'],
  [byRule]: ['DIANA.CHECK', 'account', 'key:__rand_int__'],
}

export const programs = ['wrk', 'h2load', 'nginx', 'redis-server', 'redis-benchmark']
export const peers = []

export const about = `\`diana serve\` with four rules: the whole domain, each address, each account, each path. Load, server and what stands between
them share this machine's cores, so the figure to compare is CPU per call; all subjects run throughout and are called in turn, for a
second each.

- ShouldRateLimit: \`h2load\` over 4 connections with 32 streams each sends a descriptor with three entries. The empty services read a message and
  answer with 20 bytes: what \`node:http2\` costs by itself, and what gRPC's own library costs. The gateway has the same rules and
  forwards to a service on \`node:http\`, called by \`wrk\`.
- nginx: \`wrk\` over ${CONNECTIONS} connections through nginx with one worker, before the same service. The CPU is that of nginx and of what it asks.
- Redis protocol: \`redis-benchmark\` with 1,000 keys, over 50 connections with pipelines of 16, and over ${CONNECTIONS} connections without. Beside it a
  \`redis-server\` on a Unix socket of its own that is asked \`GET\` of keys that are not there; Diana is asked over TCP.
`

export const cases = [
  {
    name: 'ShouldRateLimit',
    unit: 'CPU µs/call',
    subjects: [empty, library, limited, gateway],
    longestMs: 600_000,
  },
  {
    name: 'Redis protocol, pipelines of 16',
    unit: 'CPU µs/call',
    subjects: [get, throttle, byRule],
    longestMs: 600_000,
  },
  {
    name: 'Redis protocol, 64 connections',
    unit: 'µs/call',
    subjects: [get, throttle, byRule],
    longestMs: 600_000,
  },
  { name: 'a request through nginx', unit: 'CPU µs/call', subjects: [alone, floor, asking], longestMs: 600_000 },
]

export const charted = cases.map(({ name }) => name)

export const marks = [
  { case: cases[0].name, ours: limited, theirs: gateway, times: 1 / 3 },
  { case: cases[1].name, ours: throttle, most: 6 },
  { case: cases[2].name, ours: throttle, theirs: get, times: 2 },
  { case: cases[3].name, ours: asking, theirs: floor, times: 1.25 },
]

/** Measures all subjects of a case in turn. */
export async function measureTogether({ name, subjects }, rounds) {
  const service = await startServer('servers/proxies.mjs', 'service')
  const started = []
  try {
    for (const subject of subjects) started.push({ subject, ...(await start(subject, service.port, name)) })
    for (const one of started) await one.warmUp()
    const samples = Object.fromEntries(subjects.map(subject => [subject, []]))
    for (let slice = 0; slice < rounds * SLICES_PER_ROUND; slice++) {
      for (const one of started) samples[one.subject].push(await one.sample())
    }
    return samples
  } finally {
    await Promise.all([...started, service].map(one => one.stop()))
  }
}

async function start(subject, servicePort, name) {
  if (subject === get) {
    const redis = await startRedis()
    const cpuMicroseconds = async () => (await redis.cpuSeconds()) * 1e6
    return byRedis({ where: ['-s', redis.path], cpuMicroseconds, stop: () => redis.stop() }, subject, name)
  }
  if (subject in redisCommands) {
    const server = await startServer('servers/decisions.mjs', 'diana serve, Redis protocol')
    return byRedis({ ...server, where: ['-p', String(server.port)] }, subject, name)
  }
  if (subject === gateway) {
    return byHttp(await startServer('servers/proxies.mjs', subject, { upstream: `http://127.0.0.1:${servicePort}` }))
  }
  if (subject === alone) return byHttp(await startAskingNginx({ servicePort }))
  if (subject === floor || subject === asking) {
    const asked = await startServer('servers/decisions.mjs', subject)
    const nginx = await startAskingNginx({ servicePort, asked: asked.port })
    return byHttp({
      port: nginx.port,
      cpuMicroseconds: async () => (await nginx.cpuMicroseconds()) + (await asked.cpuMicroseconds()),
      stop: () => Promise.all([nginx.stop(), asked.stop()]),
    })
  }
  return byGrpc(await startServer('servers/decisions.mjs', subject))
}

const byHttp = server => ({
  ...server,
  warmUp: () => warmUp(server, CONNECTIONS),
  sample: () => sample(server, CONNECTIONS, SLICE_SECONDS),
})

const byGrpc = server => ({
  ...server,
  warmUp: () => grpcLoad(server.port, 40_000),
  async sample() {
    const before = await server.cpuMicroseconds()
    const { calls, callsPerSecond, p50Ms, p99Ms } = await grpcLoad(server.port, 30_000)
    const value = ((await server.cpuMicroseconds()) - before) / calls
    return { value, 'calls/s': callsPerSecond, 'p50, ms': p50Ms, 'p99, ms': p99Ms }
  },
})

const byRedis = (server, subject, name) => {
  const isPipelined = name === cases[1].name
  const load = calls =>
    redisLoad(
      server.where,
      redisCommands[subject],
      calls,
      isPipelined ? { pipeline: 16 } : { connections: CONNECTIONS },
    )
  return {
    ...server,
    warmUp: () => load(50_000),
    async sample() {
      const before = await server.cpuMicroseconds()
      const { calls, callsPerSecond, p50Ms, p99Ms } = await load(isPipelined ? 100_000 : 30_000)
      const cpu = ((await server.cpuMicroseconds()) - before) / calls
      const others = { 'calls/s': callsPerSecond, 'p50, ms': p50Ms, 'p99, ms': p99Ms }
      return isPipelined ? { value: cpu, ...others } : { value: 1e6 / callsPerSecond, 'CPU, µs': cpu, ...others }
    },
  }
}
