// One process of the fleet: makes a limiter, offers its calls when told to, and reports what became of each.
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises'
import { createLimiter } from 'diana-limiter'
import { Redis } from 'ioredis'
import { arrivals } from './arrivals.mjs'
import { clockUs, Witness } from './witness.mjs'

/** So few begin in one turn that Diana judges them in one script. */
const PER_TURN = 32
/** A process that is so late stops offering, and the case counts as not offered. */
const GRACE_US = 1e6
/** Whoever joins late makes his limiter so long before his first call. */
const JOINING_US = 250_000
const CALL = { method: 'GET', path: '/' }

process.once('disconnect', () => process.exit())
process.once('message', job => takePart(job).catch(fail))

function fail(error) {
  process.send({ error: error.stack }, () => process.exit(1))
}

function told() {
  return new Promise(resolve => process.once('message', resolve))
}

async function takePart(job) {
  const { joinMs, endMs } = job
  const member = joinMs === 0 ? await join(job) : undefined
  process.send({ ready: true })
  const { startAt } = await told()
  if (!member) await until(startAt + joinMs * 1000 - JOINING_US)
  const { limiter, witness, client, failures, raise } = member ?? (await join(job))
  if (job.before) until(startAt + job.changeMs * 1000).then(() => raise(job.rule))
  const { calls, missed } = await offer(job, limiter, witness, startAt, startAt + endMs * 1000)
  await Promise.all(calls.map(({ done }) => done))
  // what was given back last is on its way
  await nextTurn()
  await nextTurn()
  await client.ping()
  await limiter.close()
  client.disconnect()
  process.send({ columns: columnsOf(calls, witness.aheadUs), missed, failures }, () => process.exit(0))
}

async function join({ socket, rule, before = rule }) {
  const client = new Redis(socket, { maxRetriesPerRequest: 0 })
  // the command that fails tells of it
  client.on('error', () => {})
  const witness = new Witness(client)
  const { source, tell } = createSource(before)
  const limiter = await createLimiter({
    store: { redis: witness.send, timeout: '5s' },
    rules: [],
    remote: { told: 'here' },
    sources: [source],
  })
  const failures = []
  limiter.events.on('store', ({ healthy, trouble }) => healthy || failures.push(trouble))
  // the connection is there and the script is known before the first call comes
  await limiter.peek(CALL)
  return { limiter, witness, client, failures, raise: tell }
}

/** A source of rules in this process: one rule at first, and another one when told. */
function createSource(first) {
  let tell
  const next = new Promise(resolve => {
    tell = resolve
  })
  async function* watch() {
    yield { text: JSON.stringify({ rules: [first] }), version: '1' }
    yield { text: JSON.stringify({ rules: [await next] }), version: '2' }
    await new Promise(() => {})
  }
  return { tell, source: { name: 'told', options: {}, create: () => ({ name: 'told', watch }) } }
}

async function until(at) {
  const leftMs = (at - clockUs()) / 1000
  if (leftMs > 0) await pause(leftMs)
}

async function offer({ plan, holdMs, refundAfterMs }, limiter, witness, startAt, endAt) {
  const calls = []
  let begun = 0
  let missed = 0
  for (const atMs of arrivals(plan)) {
    const due = startAt + atMs * 1000
    while (clockUs() < due || begun === PER_TURN) {
      begun = 0
      const leftMs = (due - clockUs()) / 1000
      await (leftMs > 0 ? pause(leftMs) : nextTurn())
    }
    if (clockUs() > endAt + GRACE_US) {
      missed++
      continue
    }
    begun++
    calls.push(begin({ due }, limiter, witness, { holdMs, refundAfterMs }))
  }
  return { calls, missed }
}

function begin(call, limiter, witness, ending) {
  witness.note(turn => {
    call.judged ??= turn
  })
  call.done = limiter.check(CALL).then(verdict => finish(call, verdict, witness, ending))
  return call
}

async function finish(call, verdict, witness, { holdMs, refundAfterMs }) {
  call.passedAt = clockUs()
  // a key that is known to be empty is refused here, and Redis is not asked
  call.judged ??= { earliest: call.passedAt + witness.aheadUs.least, latest: call.passedAt + witness.aheadUs.most }
  call.granted = witness.answered
  call.allowed = verdict.allowed
  call.resetMs = verdict.decisions[0].resetAfterMs
  if (verdict.allowed && refundAfterMs !== undefined) {
    await pause(refundAfterMs)
    verdict.end({ status: 200 })
  }
  if (!verdict.allowed || holdMs === undefined) return
  await pause(holdMs)
  witness.note(turn => {
    call.ended = turn
  })
  verdict.release()
}

/**
 * Everything by the clock of Redis: when each call was due; when it was judged first (a span), and how long after that
 * its limit is untouched again; when it surely had its place, surely had passed, and surely had not yet ended.
 */
function columnsOf(calls, { least, most }) {
  const column = read => Float64Array.from(calls, read)
  return {
    due: column(({ due }) => due + (least + most) / 2),
    earliest: column(({ judged }) => judged?.earliest ?? Number.NaN),
    latest: column(({ judged }) => judged?.latest ?? Number.NaN),
    allowed: column(({ allowed }) => (allowed ? 1 : 0)),
    resetUs: column(({ resetMs }) => Math.round(resetMs * 1000)),
    granted: column(({ granted }) => granted?.latest ?? Number.NaN),
    passed: column(({ passedAt }) => passedAt + Math.max(least, most)),
    ended: column(({ ended }) => ended?.earliest ?? Number.NaN),
  }
}
