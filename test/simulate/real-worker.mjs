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
const recovered = []
for (const { events } of limiters) {
  events.on('store', ({ healthy }) => {
    if (healthy) recovered.push(Date.now())
    if (recovered.length === count) process.send({ what: 'back', recovered, lateMs })
  })
}
let lateMs = 0
void callNowAndThen()
while (!limiters.every(limiter => limiter.status().store.healthy && limiter.status().store.fleet.size === fleet)) {
  await pause(50)
}
recovered.length = 0
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
