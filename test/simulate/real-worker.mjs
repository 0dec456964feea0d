// Some limiters of a large fleet in one process; reports when all know the fleet, and when all are back after an outage.
import { setTimeout as pause } from 'node:timers/promises'
import { createLimiter } from 'diana-limiter'

const [url, count, fleet, callsPerSecond] = [process.argv[2], ...process.argv.slice(3).map(Number)]
process.once('disconnect', () => process.exit())

const limiters = await Promise.all(
  Array.from({ length: count }, () => {
    return createLimiter({
      store: { redis: url, timeout: '200ms', fleet },
      rules: [{ id: 'each', by: 'account', limit: '1000000/h' }],
    })
  }),
)
const recovered = new Map()
const noticed = new Set()
for (const limiter of limiters) {
  limiter.events.on('store', ({ healthy }) => {
    if (healthy) recovered.set(limiter, Date.now())
    else {
      recovered.delete(limiter)
      noticed.add(limiter)
      if (noticed.size === count) process.send({ what: 'noticed' })
    }
    if (recovered.size === count) process.send({ what: 'back', recovered: [...recovered.values()], lateMs })
  })
}
let lateMs = 0
void callNowAndThen()
while (!limiters.every(limiter => limiter.status().store.healthy && limiter.status().store.fleet.size === fleet)) {
  await pause(50)
}
recovered.clear()
noticed.clear()
lateMs = 0
process.send({ what: 'ready' })

async function callNowAndThen() {
  for (let i = 0; ; i++) {
    const before = performance.now()
    void limiters[i % count].check({ method: 'GET', path: '/', attributes: { account: `a${i % 100}` } })
    const pauseMs = 1000 / (callsPerSecond * count)
    await pause(pauseMs)
    lateMs = Math.max(lateMs, performance.now() - before - pauseMs)
  }
}
