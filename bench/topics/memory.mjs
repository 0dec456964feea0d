// Counting in this process: one decision by each store, a whole check by four rules, refusals, pacing, bytes per key, growth.

import { flood } from '../flood.mjs'
import { subjects } from '../memory-subjects.mjs'
import { timeCalls } from '../time-calls.mjs'

// flat text, as a header's value is
const keyOf = (i, count) => Buffer.from(`user-${(i * 7919) % count}-key`).toString('latin1')
const keysOf = count => Array.from({ length: count }, (_, i) => keyOf(i, count))
const spelled = count => count.toLocaleString('en').replaceAll(',', ' ')

export const about = `One decision by each library's store in memory, called as its own middleware calls it, without a framework. All count in a
window of a minute whose limit is never reached, unless a case states otherwise; for comparison there are also a token bucket and Diana's
sliding window (its default, which no peer here has). The floor is a \`Map\` of numbers that is read and written once.

- express-rate-limit and hono-rate-limiter: their \`MemoryStore\`, with \`windowMs\` set and nothing else.
- rate-limiter-flexible: \`RateLimiterMemory\` with points and duration; four of them, asked at once, for four limits.
- limiter: \`tryRemoveTokens\` of a \`RateLimiter\` per key, kept in a \`Map\`, since it has no keys; it never deletes one.
- pacing jobs: a permit that is available already, requested by 500 jobs at once; \`limiter\` with \`removeTokens\`,
  \`bottleneck\` with a reservoir, which starts job after job from a timer.
`

export const peers = ['express-rate-limit', 'hono-rate-limiter', 'rate-limiter-flexible', 'limiter', 'bottleneck']

const stores = [
  'bare Map',
  'diana fixed-window',
  'diana token-bucket',
  'diana sliding-window',
  'express-rate-limit',
  'hono-rate-limiter',
  'rate-limiter-flexible',
  'limiter, one per key in a Map',
]
// the floor, Diana's default and the peer that takes least
const growing = ['bare Map', 'diana sliding-window', 'diana token-bucket', 'hono-rate-limiter']

const BYTES = 'bytes per live key, 1 000 000 keys, beyond its text'

export const cases = [
  { name: 'one decision, 1 000 keys', unit: 'ns/op', keys: 1000, subjects: stores },
  { name: 'one decision, 50 000 keys', unit: 'ns/op', keys: 50_000, subjects: stores },
  {
    name: 'a check by four rules',
    unit: 'ns/op',
    keys: 1000,
    subjects: ['diana check, 4 rules', 'rate-limiter-flexible, 4 limiters'],
  },
  {
    name: 'a refusal',
    unit: 'ns/op',
    keys: 1000,
    subjects: ['diana fixed-window', 'diana fixed-window, refusing', 'rate-limiter-flexible, refusing'],
  },
  {
    name: 'pacing jobs that need not wait, 500 at once',
    unit: 'ns/op',
    atOnce: 500,
    subjects: ['diana RateLimiter.acquire', 'limiter removeTokens', 'bottleneck schedule'],
  },
  { name: BYTES, unit: 'bytes', keys: 1_000_000, rounds: 1, subjects: stores },
  ...[1000, 10_000, 100_000, 1_000_000, 10_000_000].map(keys => ({
    name: `growth, ${spelled(keys)} keys`,
    unit: 'ns/op',
    keys,
    rounds: 1,
    grown: true,
    // the peers' heaps would outgrow what Node allows by default
    subjects: keys > 1_000_000 ? growing.filter(subject => !subject.includes('-limiter')) : growing,
  })),
]

export const charted = [
  'one decision, 1 000 keys',
  'one decision, 50 000 keys',
  'a check by four rules',
  'pacing jobs that need not wait, 500 at once',
  BYTES,
]

/** What design asks for: `ours` must not take more than `times` of what `theirs` takes. */
export const marks = [
  ...['one decision, 1 000 keys', 'one decision, 50 000 keys'].flatMap(name => [
    { case: name, ours: 'diana fixed-window', theirs: 'bare Map', times: 1.5 },
    { case: name, ours: 'diana fixed-window', theirs: 'express-rate-limit', times: 1 },
    { case: name, ours: 'diana fixed-window', theirs: 'hono-rate-limiter', times: 1 },
    { case: name, ours: 'diana fixed-window', theirs: 'rate-limiter-flexible', times: 1 / 3 },
  ]),
  {
    case: 'a check by four rules',
    ours: 'diana check, 4 rules',
    theirs: 'rate-limiter-flexible, 4 limiters',
    times: 1 / 2,
  },
  { case: 'a refusal', ours: 'diana fixed-window, refusing', theirs: 'diana fixed-window', times: 1.1 },
  ...['fixed-window', 'token-bucket'].map(name => ({ case: BYTES, ours: `diana ${name}`, most: 64 })),
  { case: BYTES, ours: 'diana sliding-window', most: 144 },
]

/** Measures one subject in this process, which does nothing else. */
export async function measure({ unit, keys, grown, atOnce }, subject) {
  const decide = await subjects[subject]()
  if (atOnce) return pacing(decide, atOnce)
  if (unit === 'bytes') return bytesPerKey(decide, keys)
  if (grown) return growth(decide, keys)
  for (const key of keysOf(keys)) await decide(key, 0)
  // a request never brings the very string that was stored, only one that reads the same
  return timeDecisions(decide, keysOf(keys))
}

const timeDecisions = (decide, keys) => timeCalls(i => decide(keys[i % keys.length], i))

// some start every job from a timer, so jobs are not awaited one by one
async function pacing(acquire, inFlight) {
  await flood(acquire, { inFlight, ms: 300 })
  const cpu = process.cpuUsage()
  const { calls, ns } = await flood(acquire, { inFlight, ms: 500 })
  const { user, system } = process.cpuUsage(cpu)
  return { value: ns / calls, 'CPU, ns': ((user + system) * 1000) / calls }
}

const memoryUsed = () => {
  for (let i = 0; i < 4; i++) globalThis.gc()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

async function bytesPerKey(decide, count) {
  const empty = memoryUsed()
  const texts = keysOf(count)
  const pointer = 8
  const textBytes = memoryUsed() - empty - count * pointer
  texts.length = 0
  const before = memoryUsed()
  for (let i = 0; i < count; i++) await decide(keyOf(i, count), i)
  return { value: (memoryUsed() - before - textBytes) / count }
}

/** A decision among so many keys, of which some are asked for, and what a key takes with its text. */
async function growth(decide, count) {
  const before = memoryUsed()
  for (let i = 0; i < count; i++) await decide(keyOf(i, count), i)
  const bytes = (memoryUsed() - before) / count
  const asked = Math.min(count, 200_000)
  const spread = Array.from({ length: asked }, (_, i) => keyOf(i, count))
  return { ...(await timeDecisions(decide, spread)), 'bytes/key': bytes }
}
