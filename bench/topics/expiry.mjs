// Callers who have gone: how long Redis stands still while a million callers of one rule expire, with no process left that
// could help. Redis frees what expires in the thread that answers commands.

import { setTimeout } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { algorithms } from '../../packages/limiter/dist/algorithms/index.js'
import { redisCharge } from '../../packages/limiter/dist/stores/redis/counter.js'
import { RedisStore } from '../../packages/limiter/dist/stores/redis/redis-store.js'
import { startRedis } from '../servers/start-redis.mjs'

const CALLERS = 1_000_000
// longer than it takes until all of them have called
const PERIOD_MS = 600_000
const AT_ONCE = 512
const PING_EVERY_MS = 1
const SIZE_EVERY_MS = 1000

export const programs = ['redis-server']
export const peers = ['ioredis']

export const about = `A million callers call once each, by a rule whose counts are in Redis. Then the process closes its store, and all hashes are
left to expire; their expiry is shortened by the same time for all of them, so that the measurement does not take as long. Meanwhile a client sends a \`PING\` every
millisecond. The figure is the longest time that Redis was busy, by the CPU time of its main thread, while one \`PING\` waited: time
that other programs take on a busy machine does not count. \`LATENCY\` is the longest event that Redis itself recorded, including that time.
`

const subjects = { 'diana token-bucket': 'token-bucket', 'diana sliding-window': 'sliding-window' }
const name = 'a million callers expire'

export const cases = [{ name, unit: 'ms', rounds: 1, longestMs: 1_200_000, subjects: Object.keys(subjects) }]
export const charted = [name]
export const allOurs = true
export const marks = Object.keys(subjects).map(ours => ({ case: name, ours, most: 5 }))

/** Measures one subject in this process, which does nothing else. */
export async function measure(_case, subject) {
  const server = await startRedis()
  const probe = new Redis(server.path)
  try {
    await fill(server.client, subjects[subject])
    const hashes = await hurry(server.client)
    await server.client.config('SET', 'latency-monitor-threshold', '1')
    const { longestMs, lastedMs } = await watch(server, probe)
    const events = await server.client.latency('LATEST')
    const noted = Math.max(0, ...events.map(([, , , longest]) => longest))
    return { value: longestMs, 'LATENCY, ms': noted, hashes, 'expired in, s': lastedMs / 1000 }
  } finally {
    probe.disconnect()
    await server.stop()
  }
}

async function fill(client, algorithm) {
  const store = new RedisStore(([command, ...args]) => client.call(command, ...args))
  const meter = algorithms.find(one => one.name === algorithm).meter({ count: 1, periodMs: PERIOD_MS }, {})
  const counter = store.createCounter({ id: 'rule', algorithm, enforced: true, meters: [meter] })
  for (let first = 0; first < CALLERS; first += AT_ONCE) {
    const length = Math.min(AT_ONCE, CALLERS - first)
    const calls = Array.from({ length }, (_, i) => {
      return store.take([{ ...redisCharge(counter), key: `caller-${first + i}`, cost: 1 }])
    })
    await Promise.all(calls)
  }
  store.close()
}

/** Lets all keys expire earlier, by the time that is left to the first of them; returns how many there are. */
async function hurry(client) {
  // it outlives the counts, and the measurement ends when Redis is empty
  await client.del('diana:era')
  const keys = await client.keys('*')
  const left = []
  for (let first = 0; first < keys.length; first += AT_ONCE) {
    left.push(...(await Promise.all(keys.slice(first, first + AT_ONCE).map(key => client.pttl(key)))))
  }
  const sooner = left.reduce((least, one) => Math.min(least, one), Number.POSITIVE_INFINITY) - 1000
  for (let first = 0; first < keys.length; first += AT_ONCE) {
    const some = keys.slice(first, first + AT_ONCE)
    await Promise.all(some.map((key, i) => client.pexpire(key, left[first + i] - sooner)))
  }
  return keys.length
}

async function watch(server, probe) {
  const started = performance.now()
  let longestMs = 0
  for (let sizeAt = 0; ; ) {
    const [before, sent] = [await server.busyMs(), performance.now()]
    await probe.ping()
    const waited = performance.now() - sent
    longestMs = Math.max(longestMs, Math.min(waited, (await server.busyMs()) - before))
    if (performance.now() > sizeAt) {
      if ((await probe.dbsize()) === 0) return { longestMs, lastedMs: performance.now() - started }
      sizeAt = performance.now() + SIZE_EVERY_MS
    }
    await setTimeout(PING_EVERY_MS)
  }
}
