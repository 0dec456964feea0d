// What one call costs in a limit on concurrency, decided and ended.
import { adaptive } from '../../packages/limiter/dist/algorithms/adaptive.js'
import { concurrency } from '../../packages/limiter/dist/algorithms/concurrency.js'

const CALLS = 2_000_000

export function costPerCall() {
  const [, concurrencyNs] = [timeCalls(concurrency), timeCalls(concurrency)]
  const [, adaptiveNs] = [timeCalls(adaptive), timeCalls(adaptive)]
  return { adaptiveNs, concurrencyNs }
}

/** 20 calls in flight, one every 5 microseconds. */
function timeCalls(algorithm) {
  const meter = algorithm.meter({ count: 500, periodMs: 0 }, {})
  const state = new Float64Array(meter.slots)
  let now = 1e12
  const began = process.hrtime.bigint()
  for (let i = 0; i < CALLS; i++) {
    now += 5
    if (meter.delay(state, 0, now, 1) === 0) meter.take(state, 0, now, 1, 0)
    if (i < 20) continue
    if (meter.end) meter.end(state, 0, now + 2, 1, now - 100, 'answered')
    else meter.refund(state, 0, now + 2, 1, now - 100)
  }
  return Number(process.hrtime.bigint() - began) / CALLS
}
