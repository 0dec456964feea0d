// One process of the fleet: makes a limiter, offers calls at an even pace until told to stop, and reports all of them.
import { setTimeout as pause } from 'node:timers/promises'
import { createLimiter, RateLimiter } from 'diana-limiter'
import { subjects } from '../rules.mjs'
import { moment } from './clock.mjs'
import { recordTrace } from './trace.mjs'

const TICK_MS = 5

process.once('disconnect', () => process.exit())
process.once('message', job =>
  takePart(job).catch(error => process.send({ error: error.stack }, () => process.exit(1))),
)

async function takePart({ limiter: options, pace, beforeMs, callersMove, index, processes }) {
  const report = {
    ...{ path: [], caller: [], start: [], end: [], released: [], allowed: [] },
    ...{ failures: [], events: [], rejections: 0, lags: [] },
  }
  process.on('unhandledRejection', () => report.rejections++)
  report.trace = recordTrace()
  const limiter = await createLimiter(options)
  limiter.events.on('store', ({ healthy, kind, trouble }) => {
    report.events.push({ at: moment(), healthy, kind, trouble })
  })
  report.startedHealthy = limiter.status().store?.healthy
  process.send({ ready: true })
  let isOver = false
  process.once('message', () => {
    isOver = true
  })
  const pending = new Set()
  const pacer =
    pace && RateLimiter.create(pace.perSecond, { ...pace, name: 'chaos', store: { redis: options.store.redis } })
  const paced = pacer && followPace(pacer, report, () => isOver)
  const since = moment()
  const offered = subjects.map(() => 0)
  while (!isOver) {
    const elapsedMs = moment() - since
    subjects.forEach(({ perSecond, fromMs = -beforeMs, callers = 1 }, path) => {
      const due = ((elapsedMs - Math.max(0, beforeMs + fromMs)) / 1000) * perSecond
      for (; offered[path] < due; offered[path]++) {
        const caller = offered[path] % callers
        const home = (caller + (elapsedMs > beforeMs ? 1 : 0)) % processes
        if (callersMove && callers > 1 && home !== index) continue
        const call = ask(limiter, { path, caller }, report)
        pending.add(call)
        call.finally(() => pending.delete(call))
      }
    })
    const before = moment()
    await pause(TICK_MS)
    report.lags.push(moment() - before - TICK_MS)
  }
  await Promise.all(pending)
  await paced
  await pacer?.close()
  report.status = limiter.status()
  await limiter.close()
  process.send({ report }, () => process.exit(0))
}

/** Takes permits all the time, and reports when each passed. */
async function followPace(pacer, report, isOver) {
  while (!isOver()) {
    await pacer.acquire()
    const at = moment()
    note(report, { path: subjects.length, caller: 0, start: at, end: at, released: at, allowed: true })
  }
}

async function ask(limiter, { path, caller }, report) {
  const { rule, holdMs = 0 } = subjects[path]
  const start = moment()
  try {
    const verdict = await limiter.check({ method: 'GET', path: `/${rule.id}`, ip: `192.0.2.${caller + 1}` })
    const end = moment()
    if (verdict.allowed && holdMs > 0) await pause(holdMs)
    const released = moment()
    verdict.end({ status: 200 })
    note(report, { path, caller, start, end, released, allowed: verdict.allowed })
  } catch (error) {
    report.failures.push(String(error))
  }
}

function note(report, { path, caller, start, end, released, allowed }) {
  report.path.push(path)
  report.caller.push(caller)
  report.start.push(start)
  report.end.push(end)
  report.released.push(released)
  report.allowed.push(allowed ? 1 : 0)
}
