// One process of the fleet: makes a limiter, offers calls at an even pace until told to stop, and reports all of them.
import { setTimeout as pause } from 'node:timers/promises'
import { createLimiter, RateLimiter } from 'diana-limiter'
import { moment } from './clock.mjs'

const TICK_MS = 5

process.once('disconnect', () => process.exit())
process.once('message', job =>
  takePart(job).catch(error => process.send({ error: error.stack }, () => process.exit(1))),
)

async function takePart({ limiter: options, offers, pace }) {
  const report = { path: [], start: [], end: [], allowed: [], failures: [], events: [], rejections: 0, lags: [] }
  process.on('unhandledRejection', () => report.rejections++)
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
  const paced = pacer && followPace(pacer, offers.length, report, () => isOver)
  const since = moment()
  const offered = offers.map(() => 0)
  while (!isOver) {
    const elapsed = (moment() - since) / 1000
    offers.forEach(({ path, perSecond }, i) => {
      for (; offered[i] < elapsed * perSecond; offered[i]++) {
        const call = ask(limiter, path, i, report)
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
async function followPace(pacer, path, report, isOver) {
  while (!isOver()) {
    await pacer.acquire()
    const at = moment()
    report.path.push(path)
    report.start.push(at)
    report.end.push(at)
    report.allowed.push(1)
  }
}

async function ask(limiter, path, i, report) {
  const start = moment()
  try {
    const { allowed } = await limiter.check({ method: 'GET', path })
    report.path.push(i)
    report.start.push(start)
    report.end.push(moment())
    report.allowed.push(allowed ? 1 : 0)
  } catch (error) {
    report.failures.push(String(error))
  }
}
