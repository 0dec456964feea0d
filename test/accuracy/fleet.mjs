import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { kinds } from './kinds.mjs'
import { clockUs } from './redis-clock-probe.mjs'

const worker = fileURLToPath(new URL('worker.mjs', import.meta.url))
const START_IN_US = 100_000
/** The part of the time after which a limit is changed. */
export const CHANGED_AT = 0.3

/** What can be wrong with a fleet on purpose, to see that it is found. */
export const faults = {
  more: rule => ({ ...rule, limit: changed(rule.limit, count => count + 1) }),
  less: rule => ({ ...rule, limit: changed(rule.limit, count => Math.floor(count * 0.95)) }),
  apart: (rule, process) => ({ ...rule, id: `${rule.id}-${process}` }),
}

/** Lets a fleet of real processes offer the calls of one case, and returns what became of each. */
export async function runFleet(one, redis, fault) {
  const jobs = jobsOf(one, redis, fault)
  const children = jobs.map(() => fork(worker, { serialization: 'advanced' }))
  try {
    await Promise.all(children.map((child, i) => ask(child, jobs[i])))
    const startAt = startOf(one)
    const reports = await Promise.all(children.map(child => ask(child, { startAt })))
    return {
      startAt,
      calls: reports.flatMap(({ columns }) => rowsOf(columns)),
      missed: reports.reduce((sum, { missed }) => sum + missed, 0),
      slipped: reports.reduce((sum, { slipped }) => sum + slipped, 0),
      failures: reports.flatMap(({ failures }) => failures),
    }
  } finally {
    for (const child of children) child.kill('SIGKILL')
  }
}

async function ask(child, message) {
  child.send(message)
  const answered = once(child, 'message').then(([answer]) => answer)
  // which comes after all it has said
  const ended = once(child, 'disconnect').then(() => ({ error: 'a process of the fleet ended before it had answered' }))
  const answer = await Promise.race([answered, ended])
  if (answer.error) throw new Error(answer.error)
  return answer
}

/** Soon; where there are windows, with one of the clock's. */
function startOf({ kind, limit: { periodUs } }) {
  const soon = clockUs() + START_IN_US
  return kinds[kind].hasWindows ? Math.ceil(soon / periodUs) * periodUs : soon
}

function jobsOf(one, redis, fault = rule => rule) {
  const { kind, limit, spread, holdMs, endMs, seed } = one
  const { words, stay, refundAfterMs, timesBefore, isRefusedElsewhere } = kinds[kind]
  const rule = { id: 'all', limit: stay ? limit.count : limit.text, ...words(limit) }
  return planned(one).map((parts, i) => {
    const plan = { parts, spread, seed: seed * 100 + i }
    const joinMs = parts[0].fromMs
    const isChanged = timesBefore && joinMs < endMs * CHANGED_AT
    const before = isChanged ? { ...rule, limit: changed(rule.limit, count => count * timesBefore) } : undefined
    const changeMs = endMs * CHANGED_AT
    return {
      redis,
      rule: fault(rule, i),
      before,
      changeMs,
      plan,
      joinMs,
      holdMs,
      refundAfterMs,
      isRefusedElsewhere,
      endMs,
    }
  })
}

/** Half of the calls to the first process, a quarter to the second, and so on; the second one comes late. */
function planned({ limit: { count, periodUs }, processes, load, endMs }) {
  const perSecond = (load * count * 1e6) / periodUs
  const share = i => perSecond / 2 ** Math.min(i + 1, processes - 1)
  const joinMs = endMs * 0.4
  return Array.from({ length: processes }, (_, i) => {
    if (i === 1) return [{ fromMs: joinMs, toMs: endMs, perSecond: share(1) }]
    if (i > 1 || processes === 1) return [{ fromMs: 0, toMs: endMs, perSecond: share(i) }]
    return [
      { fromMs: 0, toMs: joinMs, perSecond: share(0) + share(1) },
      { fromMs: joinMs, toMs: endMs, perSecond: share(0) },
    ]
  })
}

function changed(limit, change) {
  return typeof limit === 'number' ? change(limit) : limit.replace(/^\d+/, count => change(Number(count)))
}

function rowsOf(columns) {
  const names = Object.keys(columns)
  return Array.from(columns.due, (_, i) => Object.fromEntries(names.map(name => [name, columns[name][i]])))
}
