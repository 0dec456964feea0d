// Counting in Redis: by one rule and by three at once, with 1 to 512 calls in flight, from 1 to 8 processes. Every measurement
// has a redis-server of its own on a Unix socket, without persistence.

import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { flood } from '../load/flood.mjs'
import { calls as publicCalls } from '../redis-calls.mjs'
import { subjects as stores } from '../redis-subjects.mjs'
import { startRedis } from '../servers/start-redis.mjs'

const WARM_MS = 1500
const FLOOD_MS = 800

const subjects = { ...stores, ...publicCalls }
const oneRule = ['diana check, one rule', 'rate-limiter-flexible consume, one rule']
const threeRules = ['diana check, three rules', 'rate-limiter-flexible, union of three']
const withFloor = ['bare EVALSHA', ...oneRule]
const busyOne = ['diana check, busy caller, leased', 'rate-limiter-flexible consume, busy caller']
const busyThree = [
  'diana check, busy caller, three rules, leased',
  'rate-limiter-flexible, busy caller, union of three',
]
const otherAlgorithms = ['diana check, sliding-window', 'diana check, token-bucket']
const inner = ['bare EVALSHA', 'diana store, one rule', 'rate-limit-redis store', 'diana store, three rules']

export const programs = ['redis-server']
export const peers = ['ioredis', 'rate-limiter-flexible', 'rate-limit-redis']

export const about = `What a user calls: \`limiter.check\` of a limiter whose rules are counted in Redis (with its deadline, its fallback in this process
and its verdict), compared with the peers' own calls. Each measurement has a redis-server of its own, on a Unix socket and without
persistence, called through an ioredis client by a thousand accounts in turn; so many calls are in flight, each awaited. The floor
is a bare \`EVALSHA\` that adds one and sets an expiry, once per call. All count in a fixed window of a minute unless another
algorithm is named. Diana sends the calls of one turn of the event loop together, the others one by one. Several processes are
measured with 64 calls in flight each.

Unless a row says "leased", Diana's rules have \`lease: off\`, so that every call asks Redis, as with the peers. "Leased" is the
default: permits of callers that a process meets often are reserved in Redis in advance ([leases](distributed.md#leases)). A busy caller
is a single account.

- rate-limiter-flexible: \`RateLimiterRedis\` on the same kind of client, as in its documentation; \`RateLimiterUnion\` for three
  limits of one account, which charges all of them even when one refuses.

"Inner stores" are not calls that users make: they are the parts that count, without deadline, fallback and verdict. The one of
express-rate-limit is rate-limit-redis, with \`sendCommand\` as in its README.
`

const unit = 'ns/op'
const marked = { 1: 1, 16: 0.6, 64: 0.35, 128: 0.3 }
const nameOf = (rules, inFlight) => `${rules}, ${inFlight} in flight`

export const cases = [
  ...[1, 16, 64, 128, 512].flatMap(inFlight => [
    {
      name: nameOf('one rule', inFlight),
      unit,
      inFlight,
      // what has no target shows how it grows
      rounds: marked[inFlight] === undefined ? 1 : undefined,
      subjects: inFlight === 64 ? [...withFloor, ...otherAlgorithms, 'diana check, one rule, leased'] : withFloor,
    },
    {
      name: nameOf('three rules', inFlight),
      unit,
      inFlight,
      rounds: inFlight === 64 || inFlight === 128 ? undefined : 1,
      subjects: inFlight === 64 ? [...threeRules, 'diana check, three rules, leased'] : threeRules,
    },
  ]),
  { name: 'a busy caller, one rule', unit, inFlight: 64, subjects: busyOne },
  { name: 'a busy caller, three rules', unit, inFlight: 64, subjects: busyThree },
  ...[2, 4, 8].map(processes => {
    return { name: `one rule, ${processes} processes`, unit, inFlight: 64, processes, rounds: 1, subjects: withFloor }
  }),
  ...[1, 64].map(inFlight => ({ name: nameOf('inner store', inFlight), unit, inFlight, rounds: 1, subjects: inner })),
]

export const charted = [
  'one rule, 1 in flight',
  'one rule, 64 in flight',
  'three rules, 64 in flight',
  'a busy caller, one rule',
  'one rule, 8 processes',
]

/** What design asks for: `ours` must not take more than `times` of what `theirs` takes. */
export const marks = [
  ...Object.entries(marked).map(([inFlight, times]) => {
    return { case: nameOf('one rule', inFlight), ours: oneRule[0], theirs: oneRule[1], times }
  }),
  ...[64, 128].map(inFlight => {
    return { case: nameOf('three rules', inFlight), ours: threeRules[0], theirs: threeRules[1], times: 0.22 }
  }),
  { case: 'a busy caller, one rule', ours: busyOne[0], theirs: busyOne[1], times: 0.05 },
  { case: 'a busy caller, three rules', ours: busyThree[0], theirs: busyThree[1], times: 0.05 },
]

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
  const script = fileURLToPath(new URL('../load/flood-process.mjs', import.meta.url))
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
