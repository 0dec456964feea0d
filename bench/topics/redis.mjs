// Counting in Redis: by one rule and by three at once, with 1 to 512 calls in flight, from 1 to 8 processes. Every measurement
// has a redis-server of its own on a Unix socket, without persistence.

import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { flood } from '../flood.mjs'
import { subjects } from '../redis-subjects.mjs'
import { startRedis } from '../start-redis.mjs'

const WARM_MS = 1500
const FLOOD_MS = 800

const one = ['diana, one rule', 'rate-limiter-flexible, one rule']
const three = ['diana, three rules', 'rate-limiter-flexible, union of three']
const onePeers = ['bare EVALSHA', ...one, 'express-rate-limit, rate-limit-redis']
const others = ['diana sliding-window, one rule', 'diana token-bucket, one rule']

export const programs = ['redis-server']
export const peers = ['ioredis', 'rate-limiter-flexible', 'rate-limit-redis']

export const about = `A redis-server of its own for every measurement, on a Unix socket and without persistence, called through ioredis by a
thousand accounts in turn. The floor is a bare \`EVALSHA\` that adds one and sets an expiry, once per call. Peers count in a fixed
window of a minute, and so does Diana unless another algorithm is named; it sends the calls of one turn of the event loop
together, the others one by one. Several processes are measured with 64 calls in flight each.

- rate-limiter-flexible: \`RateLimiterRedis\` on ioredis as in its documentation; \`RateLimiterUnion\` for three limits, which
  charges all of them even when one refuses.
- express-rate-limit with rate-limit-redis: the store alone, without the framework, with \`sendCommand\` as in its README.
`

export const cases = [
  ...[1, 16, 64, 128, 512].flatMap(inFlight => {
    // the marks are set between 64 and 128; the rest shows how it grows
    const rounds = inFlight === 64 || inFlight === 128 ? undefined : 1
    return [
      {
        name: `one rule, ${inFlight} in flight`,
        unit: 'ns/op',
        inFlight,
        rounds,
        subjects: inFlight === 64 ? [...onePeers, ...others] : onePeers,
      },
      { name: `three rules, ${inFlight} in flight`, unit: 'ns/op', inFlight, rounds, subjects: three },
    ]
  }),
  ...[2, 4, 8].map(processes => {
    return {
      name: `one rule, ${processes} processes`,
      unit: 'ns/op',
      inFlight: 64,
      processes,
      rounds: 1,
      subjects: onePeers,
    }
  }),
]

export const charted = [
  'one rule, 1 in flight',
  'one rule, 64 in flight',
  'three rules, 64 in flight',
  'one rule, 8 processes',
]

/** What design asks for: `ours` must not take more than `times` of what `theirs` takes. */
export const marks = [64, 128].flatMap(inFlight => [
  { case: `one rule, ${inFlight} in flight`, ours: one[0], theirs: one[1], times: 1 / 3 },
  { case: `three rules, ${inFlight} in flight`, ours: three[0], theirs: three[1], times: 1 / 5 },
])

/** Measures one subject in this process, which does nothing else, or in several. */
export async function measure({ inFlight, processes }, subject) {
  const server = await startRedis()
  try {
    return processes === undefined
      ? await floodHere(server, subject, inFlight)
      : await floodFrom(processes, server, subject, inFlight)
  } finally {
    await server.stop()
  }
}

async function floodHere(server, subject, inFlight) {
  const decide = await subjects[subject](server.client)
  await flood(decide, { inFlight, ms: WARM_MS })
  const usedBefore = await server.cpuSeconds()
  const cpu = process.cpuUsage()
  const { calls, ns } = await flood(decide, { inFlight, ms: FLOOD_MS })
  const { user, system } = process.cpuUsage(cpu)
  const serverNs = ((await server.cpuSeconds()) - usedBefore) * (1e9 / calls)
  return { value: ns / calls, 'CPU, ns': ((user + system) * 1000) / calls, 'CPU of Redis, ns': serverNs }
}

async function floodFrom(processes, server, subject, inFlight) {
  const script = fileURLToPath(new URL('../flood-process.mjs', import.meta.url))
  const args = [server.path, subject, String(inFlight), String(FLOOD_MS)]
  const children = Array.from({ length: processes }, () => fork(script, args, { execArgv: [] }))
  await Promise.all(children.map(child => once(child, 'message')))
  const usedBefore = await server.cpuSeconds()
  const answers = children.map(child => once(child, 'message').then(([flooded]) => flooded))
  for (const child of children) child.send('go')
  const flooded = await Promise.all(answers)
  const perSecond = flooded.reduce((sum, { calls, ns }) => sum + calls / ns, 0)
  const calls = flooded.reduce((sum, one) => sum + one.calls, 0)
  const serverNs = ((await server.cpuSeconds()) - usedBefore) * (1e9 / calls)
  return { value: 1 / perSecond, 'CPU of Redis, ns': serverNs }
}
