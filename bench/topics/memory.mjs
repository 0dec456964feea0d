// Counting in this process: public calls of each library, the stores inside them, pacing, bytes per key, growth.

import { flood } from '../load/flood.mjs'
import { timeCalls } from '../load/time-calls.mjs'
import { calls, fourRuleCalls, oneRuleCalls, refusals } from '../memory-calls.mjs'
import { subjects as stores } from '../memory-subjects.mjs'

// flat text, as a header's value is
const keyOf = (i, count) => Buffer.from(`user-${(i * 7919) % count}-key`).toString('latin1')
const keysOf = count => Array.from({ length: count }, (_, i) => keyOf(i, count))
const spelled = count => count.toLocaleString('en').replaceAll(',', ' ')

export const about = `What a user calls, without a framework: \`limiter.decide\` and \`limiter.check\` of a limiter that \`createLimiter\` has made, with
a rule by account (or four rules) and a call whose headers name the account, compared with the peers' own calls. \`decide\` returns
its verdict without a promise, so nothing is awaited; \`check\` and \`consume\` return promises, and each is awaited before the next
call. All count in a window of a minute whose limit is never reached, for the same keys, unless a case states otherwise; for
comparison there are also a token bucket and Diana's sliding window (its default, which no peer here has). "Decisions read"
also reads what is left of the limit, which Diana works out when it is read. The floor is a \`Map\` of numbers that is
read and written once; "clock, bare Map and an answer" is the floor of a decision: it makes the call, reads the clock in
microseconds, looks its key up once and returns an object, and counts nothing.

- rate-limiter-flexible: \`RateLimiterMemory\` with points and duration; four of them, asked at once, for four limits.
- limiter: \`tryRemoveTokens\` of a \`RateLimiter\` per key, kept in a \`Map\`, since it has no keys; it never deletes one.
- pacing jobs: a permit that is available already, requested by 500 jobs at once; \`limiter\` with \`removeTokens\`,
  \`bottleneck\` with a reservoir, which starts job after job from a timer.

"Inner stores" are not calls that users make: they are the parts that count, called as their own library calls them. Diana's
store gets its key and the time; it reads no clock, finds no rules and makes no verdict. express-rate-limit and
hono-rate-limiter are measured by their \`MemoryStore\`, with \`windowMs\` set and nothing else; their public calls are middleware,
which the next topics measure.
`

export const peers = ['express-rate-limit', 'hono-rate-limiter', 'rate-limiter-flexible', 'limiter', 'bottleneck']

const subjects = { ...stores, ...calls }
const storeNames = [
  'bare Map',
  'diana store, fixed-window',
  'diana store, token-bucket',
  'diana store, sliding-window',
  'express-rate-limit store',
  'hono-rate-limiter store',
]
// the floor, Diana's default and the peer that takes least
const growing = ['bare Map', 'diana store, sliding-window', 'diana store, token-bucket', 'hono-rate-limiter store']
const flexible = 'rate-limiter-flexible consume'
const keeping = [...storeNames, flexible, 'limiter tryRemoveTokens, one per key in a Map']

const PUBLIC = [1000, 50_000].map(keys => ({ name: `public call, one rule, ${spelled(keys)} keys`, keys }))
const FOUR_RULES = 'public call, four rules'
const REFUSAL = 'public call, a refusal'
const INNER = [1000, 50_000].map(keys => ({ name: `inner store, ${spelled(keys)} keys`, keys }))
const INNER_REFUSAL = 'inner store, a refusal'
const PACING = 'pacing jobs that need not wait, 500 at once'
const BYTES = 'bytes per live key, 1 000 000 keys, beyond its text'
const unit = 'ns/op'

export const cases = [
  ...PUBLIC.map(one => ({ ...one, unit, subjects: Object.keys(oneRuleCalls) })),
  { name: FOUR_RULES, unit, keys: 1000, subjects: Object.keys(fourRuleCalls) },
  { name: REFUSAL, unit, keys: 1000, subjects: Object.keys(refusals) },
  {
    name: PACING,
    unit,
    atOnce: 500,
    subjects: ['diana RateLimiter.acquire', 'limiter removeTokens', 'bottleneck schedule'],
  },
  ...INNER.map(one => ({ ...one, unit, subjects: storeNames })),
  {
    name: INNER_REFUSAL,
    unit,
    keys: 1000,
    subjects: ['diana store, fixed-window', 'diana store, fixed-window, refusing'],
  },
  { name: BYTES, unit: 'bytes', keys: 1_000_000, rounds: 1, subjects: keeping },
  ...[1000, 10_000, 100_000, 1_000_000, 10_000_000].map(keys => ({
    name: `growth, ${spelled(keys)} keys`,
    unit,
    keys,
    rounds: 1,
    grown: true,
    // the peers' heaps would outgrow what Node allows by default
    subjects: keys > 1_000_000 ? growing.filter(subject => !subject.includes('-limiter')) : growing,
  })),
]

export const charted = [...PUBLIC.map(({ name }) => name), FOUR_RULES, PACING, BYTES]

/** What design asks for: `ours` must not take more than `times` of what `theirs` takes. */
export const marks = [
  ...PUBLIC.flatMap(({ name }) => [
    { case: name, ours: 'diana decide, fixed-window', theirs: flexible, times: 0.3 },
    { case: name, ours: 'diana decide, sliding-window', theirs: flexible, times: 0.35 },
  ]),
  {
    case: FOUR_RULES,
    ours: 'diana check, four rules',
    theirs: 'rate-limiter-flexible, four consume',
    times: 0.3,
  },
  ...INNER.flatMap(({ name }) => [
    { case: name, ours: 'diana store, fixed-window', theirs: 'bare Map', times: 1.5 },
    { case: name, ours: 'diana store, fixed-window', theirs: 'express-rate-limit store', times: 1 },
    { case: name, ours: 'diana store, fixed-window', theirs: 'hono-rate-limiter store', times: 1 },
  ]),
  {
    case: INNER_REFUSAL,
    ours: 'diana store, fixed-window, refusing',
    theirs: 'diana store, fixed-window',
    times: 1.1,
  },
  ...['fixed-window', 'token-bucket'].map(name => ({ case: BYTES, ours: `diana store, ${name}`, most: 64 })),
  { case: BYTES, ours: 'diana store, sliding-window', most: 144 },
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
