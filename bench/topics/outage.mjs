// Redis gone: how long a caller waits for a decision when nothing listens at its address, and when it has frozen.

import { setTimeout } from 'node:timers/promises'
import { DIANA_TIMEOUT_MS, subjects } from '../outage-subjects.mjs'
import { startRedis } from '../servers/start-redis.mjs'

const PATIENCE_MS = 3000
// enough for any client to have connected, so that what freezes is a connection in use
const CONNECT_MS = 500
const NEXT_CALLS = 50
const NEXT_EVERY_MS = 20
// what a timer may be late by, on top of the deadline
const LATE_MS = 15

export const programs = ['redis-server']
export const peers = ['ioredis', 'rate-limiter-flexible', 'rate-limit-redis']

export const about = `How long the caller waits for a decision: the first one when nothing listens at Redis' address, the first one after a working
Redis was frozen (SIGSTOP), and the slowest of the ${NEXT_CALLS} decisions of the second after that. No call waits longer than
${PATIENCE_MS} ms here: that figure means "still waiting". The time until an answer of any kind is measured, also an error: a limiter that fails
at once leaves it to the application to admit the call.

- Diana: \`store: { redis, timeout: ${DIANA_TIMEOUT_MS}ms }\`; it continues to count in this process.
- rate-limiter-flexible: ioredis with \`enableOfflineQueue: false\`, as its documentation requires; it rejects. "Insured" has an
  \`insuranceLimiter\` in memory.
- express-rate-limit with rate-limit-redis: an ioredis client with its defaults, as in its README.
`

const unit = 'ms'
const all = Object.keys(subjects)

export const cases = [
  { name: 'nothing listens, the first decision', unit, phase: 'refused', rounds: 1, subjects: all },
  { name: 'frozen, the first decision', unit, phase: 'first', rounds: 1, subjects: all },
  { name: 'frozen, the slowest of the next second', unit, phase: 'next', rounds: 1, subjects: all },
]

export const charted = cases.map(({ name }) => name)

export const marks = [
  { case: cases[0].name, ours: 'diana', most: 50 },
  { case: cases[1].name, ours: 'diana', most: DIANA_TIMEOUT_MS + LATE_MS },
  { case: cases[2].name, ours: 'diana', most: LATE_MS },
]

/** Measures one subject in this process, which does nothing else. */
export async function measure({ phase }, subject) {
  // port 1 is reserved, and nothing listens there
  if (phase === 'refused') return { value: await waited(await subjects[subject]('redis://127.0.0.1:1')) }
  const redis = await startRedis()
  try {
    const decide = await subjects[subject](redis.path)
    await setTimeout(CONNECT_MS)
    await decide()
    redis.freeze()
    const first = await waited(decide)
    return { value: phase === 'first' ? first : await slowest(decide) }
  } finally {
    await redis.stop()
  }
}

async function slowest(decide) {
  const waits = []
  for (let i = 0; i < NEXT_CALLS; i++) {
    waits.push(waited(decide))
    await setTimeout(NEXT_EVERY_MS)
  }
  return Math.max(...(await Promise.all(waits)))
}

async function waited(decide) {
  const started = performance.now()
  await Promise.race([decide().catch(() => undefined), setTimeout(PATIENCE_MS)])
  return Math.min(performance.now() - started, PATIENCE_MS)
}
