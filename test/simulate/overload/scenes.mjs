// The scenes of `npm run long -- simulate overload` and of the tests, with their marks.
import { CpuService, DependentService, PoolService } from './service-models.mjs'
import { figures, simulateOverload } from './simulate-overload.mjs'

const pool = options => (time, random) => new PoolService(time, random, options)

export const services = {
  'fixed pool': pool({ workers: 20, serviceMs: 50, variation: 0.1 }),
  noisy: pool({ workers: 20, serviceMs: 50, variation: 0.5 }),
  'large pool': pool({ workers: 200, serviceMs: 100, variation: 0.5 }),
  'CPU-bound': (time, random) => new CpuService(time, random, { cores: 8, cpuMs: 10, variation: 0.3 }),
  'slow dependency': (time, random) => {
    const dependency = new PoolService(time, random, { workers: 20, serviceMs: 45, variation: 0.3 })
    return new DependentService(time, random, { workers: 100, ownMs: 5, dependency })
  },
}

const STEP_MS = 10_000

/** From half of the capacity to three times as much: what is answered, and how late compared with a service without load. */
export function stepToThree(meter, service, seed, seconds = 40) {
  const idle = figures(
    simulateOverload({ service, rate: (_, one) => 0.3 * one.capacity, seconds: 10, seed }),
    1000,
    10_000,
  )
  const rate = (ms, one) => (ms < STEP_MS ? 0.5 : 3) * one.capacity
  const run = simulateOverload({ meter, service, rate, seconds, seed })
  const whole = figures(run, STEP_MS, seconds * 1000)
  // the first two seconds apart: a queue has grown when the step is noticed
  const { p99 } = figures(run, STEP_MS + 2000, seconds * 1000)
  const goodput = whole.perSecond / run.service.capacity
  return { goodput, p99Times: p99 / idle.p99, onsetTimes: whole.p99 / idle.p99, run }
}

/** The capacity changes by a factor under three times the load: after how long the limit is near the new knee, and for which part of the time after 10 s. */
export function capacityStep(meter, service, seed, factor) {
  let offered
  const change = one =>
    one.change(one.cores ? { cores: one.cores * factor } : { workers: (one.dependency ?? one).workers * factor })
  const rate = (_, one) => {
    offered ??= 3 * Math.max(1, factor) * one.capacity
    return offered
  }
  const run = simulateOverload({ meter, service, rate, seconds: 40, seed, events: [[15_000, change]] })
  const knee = (run.service.capacity * run.service.unloadedMs) / 1000
  const isNear = limit => Math.abs(limit - knee) <= Math.max(1, 0.2 * knee)
  const after = run.limits.filter(([ms]) => ms > 15_000).map(([ms, { limit }]) => [ms - 15_000, limit])
  const late = after
    .filter(([ms]) => ms > 10_000)
    .map(([, limit]) => limit)
    .sort((a, b) => a - b)
  const median = late[Math.floor(late.length / 2)]
  return {
    knee,
    median,
    isNear: isNear(median),
    firstMs: after.find(([, limit]) => isNear(limit))?.[0] ?? Number.POSITIVE_INFINITY,
  }
}

/** 0.8 of the capacity with noise and pauses of the whole service. */
export function steady(meter, service, seed, seconds = 600) {
  const events = []
  for (let ms = 3000; ms < seconds * 1000; ms += 3000) {
    events.push([ms + ((seed * 137) % 1000), one => one.pause(ms % 30_000 === 0 ? 100 : 60)])
  }
  const { refused, offered } = simulateOverload({
    meter,
    service,
    rate: (_, one) => 0.8 * one.capacity,
    seconds,
    seed,
    events,
  })
  return { refused, offered }
}

/** Half of the capacity in critical calls, and two and a half times as much in others. */
export function critical(meter, service, seed, seconds = 30) {
  const levels = [
    [0.5 / 3, 1],
    [2.5 / 3, 0],
  ]
  const { byLevel } = simulateOverload({ meter, service, rate: (_, one) => 3 * one.capacity, seconds, seed, levels })
  return { admitted: 1 - byLevel[0].refused / byLevel[0].offered }
}

/** Three times the load while some callers leave and some calls fail. */
export function disturbed(meter, seed, { abort, failing = 0 }, seconds = 40) {
  const service = pool({ workers: 20, serviceMs: 50, variation: 0.3, failing })
  const rate = (ms, one) => (ms < STEP_MS ? 0.5 : 3) * one.capacity
  const run = simulateOverload({ meter, service, rate, seconds, seed, abort })
  const late = run.limits
    .filter(([ms]) => ms > 20_000)
    .map(([, { limit }]) => limit)
    .sort((a, b) => a - b)
  return { median: late[Math.floor(late.length / 2)], knee: 20 }
}
