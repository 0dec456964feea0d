// One process of the fleet: makes a limiter, offers its calls when told to, and reports what became of each.
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises'
import { createLimiter } from 'diana-limiter'
import { Cluster, Redis } from 'ioredis'
import { slotOf } from '../../packages/limiter/dist/stores/redis/slot.js'
import { arrivals } from './arrivals.mjs'
import { clockUs, RedisClockProbe } from './redis-clock-probe.mjs'

/** So few begin in one turn that Diana judges them in one script. */
const PER_TURN = 32
/** A process that is so late stops offering, and the case counts as not offered. */
const GRACE_US = 1e6
/** Whoever joins late makes his limiter so long before his first call. */
const JOINING_US = 250_000
const CALL = { method: 'GET', path: '/' }
/** Refuses every call to its path. Each caller is new, so that Redis is asked; on a Cluster they are in many slots. */
const ELSEWHERE = {
  id: 'elsewhere',
  match: { path: '/elsewhere' },
  by: 'header:x-caller',
  limit: '0/h',
  algorithm: 'token-bucket',
}

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
  const { limiter, clockProbe, client, failures, raise } = member ?? (await join(job))
  if (job.before) until(startAt + job.changeMs * 1000).then(() => raise(job.rule))
  const { calls, missed, refused } = await offer(job, limiter, clockProbe, startAt, startAt + endMs * 1000)
  const slipped = (await Promise.all(refused)).filter(({ allowed }) => allowed).length
  await Promise.all(calls.map(({ done }) => done))
  // what was given back last is on its way
  await nextTurn()
  await nextTurn()
  await client.ping()
  await limiter.close()
  client.disconnect()
  process.send({ columns: columnsOf(calls, clockProbe.aheadUs), missed, slipped, failures }, () => process.exit(0))
}

async function join({ redis, rule, before = rule, isRefusedElsewhere }) {
  const { client, clientOf } = await connect(redis)
  const clockProbe = new RedisClockProbe(clientOf)
  const others = isRefusedElsewhere ? [ELSEWHERE] : []
  const { source, tell } = createSource(before, others)
  const limiter = await createLimiter({
    store: { redis: { call: (...command) => clockProbe.send(command), isCluster: client.isCluster }, timeout: '5s' },
    rules: [],
    remote: { told: 'here' },
    sources: [source],
  })
  const failures = []
  limiter.events.on('store', ({ healthy, trouble }) => healthy || failures.push(trouble))
  // the connection is there and the script is known before the first call comes
  await limiter.peek(CALL)
  return { limiter, clockProbe, client, failures, raise: tell }
}

/** A connection to one Redis, or to a Cluster, where each command goes to the node that has its key. */
async function connect({ socket, ports }) {
  const client = socket
    ? new Redis(socket, { maxRetriesPerRequest: 0 })
    : new Cluster(ports.map(port => ({ host: '127.0.0.1', port })))
  // the command that fails reports it
  client.on('error', () => {})
  if (socket) return { client, clientOf: () => client }
  await once(client, 'ready')
  const nodes = new Map(client.nodes('master').map(node => [`${node.options.host}:${node.options.port}`, node]))
  const keyOf = command => (command[0].startsWith('EVAL') ? command[3] : command[1])
  return { client, clientOf: command => nodes.get(client.slots[slotOf(keyOf(command))][0]) }
}

/** A source of rules in this process: one rule at first, and another one when told. */
function createSource(first, others) {
  let tell
  const next = new Promise(resolve => {
    tell = resolve
  })
  async function* watch() {
    yield { text: JSON.stringify({ rules: [first, ...others] }), version: '1' }
    yield { text: JSON.stringify({ rules: [await next, ...others] }), version: '2' }
    await new Promise(() => {})
  }
  return { tell, source: { name: 'told', options: {}, create: () => ({ name: 'told', watch }) } }
}

async function until(at) {
  const leftMs = (at - clockUs()) / 1000
  if (leftMs > 0) await pause(leftMs)
}

async function offer({ plan, rule, holdMs, refundAfterMs, isRefusedElsewhere }, limiter, clockProbe, startAt, endAt) {
  const calls = []
  const refused = []
  // calls that wait, or hold a slot, are never decided from leases
  const isLeased = rule.lease !== 'off' && rule.whenFull !== 'wait' && rule.algorithm !== 'concurrency'
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
    if (isRefusedElsewhere && refused.length <= calls.length) {
      refused.push(limiter.check({ ...CALL, path: '/elsewhere', headers: { 'x-caller': randomUUID() } }))
      continue
    }
    calls.push(begin({ due }, limiter, clockProbe, { holdMs, refundAfterMs, isLeased }))
  }
  return { calls, missed, refused }
}

function begin(call, limiter, clockProbe, ending) {
  call.startedAt = clockUs()
  clockProbe.note(turn => {
    call.judged ??= turn
  })
  call.done = limiter.check(CALL).then(verdict => finish(call, verdict, clockProbe, ending))
  return call
}

async function finish(call, verdict, clockProbe, { holdMs, refundAfterMs, isLeased }) {
  call.passedAt = clockUs()
  // a key that is known to be empty is refused here, and one that has a lease is admitted here: Redis is not asked. A call that has
  // waited for permits may have been decided by a later command than the first one after it
  const { least, most } = clockProbe.aheadUs
  const isAnswered = Number.isFinite(call.judged?.latest)
  if (isLeased || !isAnswered) {
    const earliest = isAnswered ? call.judged.earliest : call.startedAt + least
    call.judged = { earliest, latest: call.passedAt + most }
  }
  call.granted = clockProbe.answered
  call.allowed = verdict.allowed
  call.resetMs = verdict.decisions[0].resetAfterMs
  if (verdict.allowed && refundAfterMs !== undefined) {
    await pause(refundAfterMs)
    verdict.end({ status: 200 })
  }
  if (!verdict.allowed || holdMs === undefined) return
  await pause(holdMs)
  clockProbe.note(turn => {
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
