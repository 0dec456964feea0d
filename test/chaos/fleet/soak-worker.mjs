// One process of a soak: asks without pause, holds places, and tells now and then how much it keeps.
import { setTimeout as pause } from 'node:timers/promises'
import { createLimiter } from 'diana-limiter'

const IN_FLIGHT = 32
const KEYS = 500
const TURNS = 200

let rejections = 0
process.on('unhandledRejection', () => rejections++)
process.once('disconnect', () => process.exit())
process.once('message', options => soak(options))

async function soak(options) {
  const limiter = await createLimiter(options)
  const tally = { calls: 0, allowed: 0, failures: 0 }
  let isOver = false
  let turns = 0
  const callers = Array.from({ length: IN_FLIGHT }, async (_, i) => {
    for (let n = i; !isOver; n += IN_FLIGHT) {
      try {
        const call = { method: 'GET', path: n % 7 ? '/' : '/places', headers: { 'x-account-id': `u${n % KEYS}` } }
        const verdict = await limiter.check(call)
        tally.calls++
        if (verdict.allowed) tally.allowed++
        if (verdict.holds) await pause(1)
        verdict.release()
      } catch {
        tally.failures++
      }
      // refusals that need no answer from elsewhere would leave no room for anything else
      if (++turns % TURNS === 0) await pause(1)
    }
  })
  const kept = () => {
    globalThis.gc()
    const resources = process.getActiveResourcesInfo().filter(name => name !== 'Immediate')
    return { heap: process.memoryUsage().heapUsed, resources: resources.length, ...tally, rejections }
  }
  process.on('message', async question => {
    if (question === 'kept') process.send(kept())
    if (question !== 'stop') return
    isOver = true
    await Promise.all(callers)
    await pause(2000)
    const places = await limiter.peek({ method: 'GET', path: '/places', headers: {} })
    const held = places.decisions.map(({ limit, remaining }) => limit - remaining)
    const store = limiter.status().store
    await limiter.close()
    process.send({ ...kept(), held, healthy: store.healthy, fleet: store.fleet.size }, () => process.exit(0))
  })
  process.send({ ready: true })
}
