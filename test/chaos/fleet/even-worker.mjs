// One process of a fleet that offers the calls of several rules, each at an even pace, and reports all of them.
import { setTimeout as pause } from 'node:timers/promises'
import { createLimiter } from 'diana-limiter'
import { moment } from './clock.mjs'

const TICK_MS = 5

process.once('disconnect', () => process.exit())
process.once('message', job =>
  takePart(job).catch(error => process.send({ error: error.stack }, () => process.exit(1))),
)

/** `subjects` have an id and the time between two calls of the whole fleet; this process makes each nth of them. */
async function takePart({ limiter: options, subjects, index, processes, beginsAt }) {
  const calls = subjects.map(() => ({ start: [], end: [], allowed: [] }))
  const limiter = await createLimiter(options)
  process.send({ ready: true })
  let isOver = false
  process.once('message', () => {
    isOver = true
  })
  let lagMs = 0
  const pending = new Set()
  const offered = subjects.map(() => index)
  while (!isOver) {
    subjects.forEach(({ id, everyMs }, at) => {
      for (; beginsAt + offered[at] * everyMs <= moment(); offered[at] += processes) {
        const call = ask(limiter, id, calls[at])
        pending.add(call)
        call.finally(() => pending.delete(call))
      }
    })
    const before = moment()
    await pause(TICK_MS)
    if (before > beginsAt) lagMs = Math.max(lagMs, moment() - before - TICK_MS)
  }
  await Promise.all(pending)
  await limiter.close()
  process.send({ report: { calls, lagMs } }, () => process.exit(0))
}

async function ask(limiter, id, { start, end, allowed }) {
  const at = moment()
  const verdict = await limiter.check({ method: 'GET', path: `/${id}` })
  start.push(at)
  end.push(moment())
  allowed.push(verdict.allowed ? 1 : 0)
}
