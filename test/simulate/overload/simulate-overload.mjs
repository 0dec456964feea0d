// Callers, an adaptive limit and a service, in virtual time.
import { seededRandom } from '../../helpers/seeded-random.mjs'
import { VirtualTime } from '../virtual-time.mjs'

const START_MS = 1_000_000

/**
 * Runs one scene: `service(time, random)` makes the service; `rate(ms, service)` is how many calls come in a second at that moment; `events` is a list
 * of [ms, service => void]. `levels` gives calls priorities: [share, priority]. Without a `meter`, all calls are admitted.
 */
export function simulateOverload({
  meter,
  service: create,
  rate,
  seconds,
  seed = 1,
  events = [],
  levels = [[1, 0]],
  abort,
}) {
  const time = new VirtualTime()
  const random = seededRandom(seed)
  const service = create(time, random)
  const state = new Float64Array(meter?.slots ?? 0)
  const run = {
    seconds: [],
    latencies: [],
    offered: 0,
    refused: 0,
    byLevel: levels.map(() => ({ offered: 0, refused: 0 })),
    limits: [],
  }
  const nowUs = () => Math.round((START_MS + time.now) * 1000)
  const second = () => {
    const index = Math.floor(time.now / 1000)
    run.seconds[index] ??= { good: 0, refused: 0, offered: 0, latencies: [] }
    return run.seconds[index]
  }
  const arrive = () => {
    const level = levelOf(levels, random())
    const [, priority] = levels[level]
    const now = nowUs()
    run.offered++
    run.byLevel[level].offered++
    second().offered++
    if (meter && meter.delay(state, 0, now, 1, priority) > 0) {
      run.refused++
      run.byLevel[level].refused++
      second().refused++
    } else {
      meter?.take(state, 0, now, 1, 0, priority)
      const began = time.now
      let isOver = false
      const end = ending => {
        if (isOver) return
        isOver = true
        meter?.held.learns.end(state, 0, nowUs(), 1, now, ending)
        if (ending !== 'answered') return
        const entry = second()
        entry.good++
        entry.latencies.push(time.now - began)
        run.latencies.push([time.now, time.now - began])
      }
      service.call(status => end(status < 500 ? 'answered' : 'failed'))
      if (abort && random() < abort.share) time.after(abort.afterMs * random() * 2, () => end('unknown'))
    }
    next()
  }
  const next = () => {
    const perSecond = rate(time.now, service)
    time.after((-Math.log(1 - random()) / perSecond) * 1000, arrive)
  }
  const look = () => {
    if (meter) run.limits.push([time.now, meter.held.learns.estimate(state, 0, nowUs())])
    time.after(100, look)
  }
  for (const [ms, change] of events) time.at(ms, () => change(service, time, random))
  next()
  look()
  time.runSync(seconds * 1000)
  return { ...run, service }
}

function levelOf(levels, draw) {
  let left = draw
  for (let i = 0; i < levels.length; i++) {
    left -= levels[i][0]
    if (left < 0) return i
  }
  return levels.length - 1
}

/** Answers per second from one moment to another, and the 99th percentile of their time. */
export function figures({ latencies }, fromMs, untilMs) {
  const chosen = latencies.filter(([at]) => at >= fromMs && at < untilMs).map(([, ms]) => ms)
  chosen.sort((a, b) => a - b)
  const percentile = part => chosen[Math.min(chosen.length - 1, Math.floor(part * chosen.length))] ?? Number.NaN
  return { perSecond: (chosen.length / (untilMs - fromMs)) * 1000, p50: percentile(0.5), p99: percentile(0.99) }
}
