// Counting in Redis: calls per second by one rule and by three at once, with 1 to 128 calls in flight. Every measurement
// has a redis-server of its own on a Unix socket, without persistence, and peers run with their recommended settings: a
// fixed window of a minute on ioredis.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { algorithms } from '../../packages/limiter/dist/algorithms/index.js'
import { RedisStore } from '../../packages/limiter/dist/stores/redis.js'
import { redisCharge } from '../../packages/limiter/dist/stores/redis-counter.js'

const MINUTE = 60_000
const PLENTY = 50_000_000
const KEYS = 1000
const RULES = ['whole', 'account', 'resource']

const keyOf = (i, rule) => (rule === 'whole' ? 'all' : `user-${(i * 7919) % KEYS}-key`)

/** A decision by Diana's store, fed as her judge feeds it. */
function diana(client, rules, algorithm = 'fixed-window') {
  const store = new RedisStore(([command, ...args]) => client.call(command, ...args))
  const limit = { count: PLENTY, periodMs: MINUTE }
  const meter = algorithms.find(({ name }) => name === algorithm).meter(limit, {})
  const counters = rules.map(id => store.createCounter({ id, algorithm, enforced: true, meters: [meter] }))
  return i => {
    const charges = counters.map((counter, rule) => {
      const charge = redisCharge(counter)
      charge.key = keyOf(i, rules[rule])
      charge.cost = 1
      return charge
    })
    return store.take(charges)
  }
}

async function flexible(client, rules) {
  const { RateLimiterRedis, RateLimiterUnion } = (await import('rate-limiter-flexible')).default
  const limiters = rules.map(keyPrefix => {
    return new RateLimiterRedis({ storeClient: client, keyPrefix, points: PLENTY, duration: MINUTE / 1000 })
  })
  if (limiters.length === 1) return i => limiters[0].consume(keyOf(i, rules[0]))
  const union = new RateLimiterUnion(...limiters)
  return i => union.consume(keyOf(i, 'account'))
}

const subjects = {
  'diana, one rule': client => diana(client, ['account']),
  'diana sliding-window, one rule': client => diana(client, ['account'], 'sliding-window'),
  'diana token-bucket, one rule': client => diana(client, ['account'], 'token-bucket'),
  'rate-limiter-flexible, one rule': client => flexible(client, ['account']),
  'diana, three rules': client => diana(client, RULES),
  'rate-limiter-flexible, union of three': client => flexible(client, RULES),
}

const one = ['diana, one rule', 'rate-limiter-flexible, one rule']
const three = ['diana, three rules', 'rate-limiter-flexible, union of three']
const others = ['diana sliding-window, one rule', 'diana token-bucket, one rule']

export const title = 'redis'

export const cases = [
  ...[1, 16, 64, 128].flatMap(inFlight => [
    {
      name: `one rule, ${inFlight} in flight`,
      unit: 'ns/op',
      inFlight,
      subjects: inFlight === 64 ? [...one, ...others] : one,
    },
    { name: `three rules, ${inFlight} in flight`, unit: 'ns/op', inFlight, subjects: three },
  ]),
  { name: 'CPU of the server, 64 in flight', unit: 'server ns/op', inFlight: 64, subjects: [...one, ...three] },
]

/** What design asks for: `ours` must not take more than `times` of what `theirs` takes. */
export const marks = [64, 128].flatMap(inFlight => [
  { case: `one rule, ${inFlight} in flight`, ours: one[0], theirs: one[1], times: 1 / 3 },
  { case: `three rules, ${inFlight} in flight`, ours: three[0], theirs: three[1], times: 1 / 5 },
])

/** Measures one subject in this process, which does nothing else. */
export async function measure({ unit, inFlight }, subject) {
  const server = await startServer()
  try {
    const decide = await subjects[subject](server.client)
    const calls = inFlight === 1 ? 20_000 : 200_000
    await flood(decide, inFlight, calls / 4)
    const usedBefore = await server.cpuSeconds()
    const cpu = process.cpuUsage()
    const started = process.hrtime.bigint()
    await flood(decide, inFlight, calls)
    const elapsedNs = Number(process.hrtime.bigint() - started) / calls
    const { user, system } = process.cpuUsage(cpu)
    const serverNs = ((await server.cpuSeconds()) - usedBefore) * (1e9 / calls)
    return unit === 'ns/op' ? { value: elapsedNs, cpuNs: ((user + system) * 1000) / calls } : { value: serverNs }
  } finally {
    await server.stop()
  }
}

/** Makes calls, so many at a time. */
async function flood(decide, inFlight, calls) {
  let next = 0
  const caller = async () => {
    while (next < calls) await decide(next++)
  }
  await Promise.all(Array.from({ length: inFlight }, caller))
}

async function startServer() {
  const { Redis } = await import('ioredis')
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
    client,
    async cpuSeconds() {
      const info = await client.info('cpu')
      return ['user', 'sys'].reduce((sum, part) => sum + Number(info.match(`used_cpu_${part}:([\\d.]+)`)[1]), 0)
    },
    async stop() {
      process.removeListener('exit', kill)
      client.disconnect()
      child.kill('SIGTERM')
      await once(child, 'exit')
      await rm(folder, { recursive: true })
    },
  }
}
