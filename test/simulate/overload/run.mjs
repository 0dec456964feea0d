// npm run long -- simulate overload [--seeds N]
// The adaptive limit on every service model with many seeds, in virtual time.
import { adaptive } from '../../../packages/limiter/dist/algorithms/adaptive.js'
import { capacityStep, critical, services, steady, stepToThree } from './scenes.mjs'

const meter = () => adaptive.meter({ count: 2000, periodMs: 0 }, {})

/** Prints the worst of all seeds for each scene; returns how many scenes missed their mark. */
export function simulateOverloads(seeds) {
  let missed = 0
  const numbers = Array.from({ length: seeds }, (_, i) => i + 1)
  const report = (name, values, isMet, show) => {
    const met = values.filter(isMet).length
    if (met < values.length) missed++
    console.log(`${name}: ${show(values)}; ${met} of ${values.length} seeds reach the mark`)
  }
  const range = (values, digits) => `${Math.min(...values).toFixed(digits)} to ${Math.max(...values).toFixed(digits)}`
  for (const [name, service] of Object.entries(services)) {
    const steps = numbers.map(seed => stepToThree(meter(), service, seed))
    report(
      `${name}, 3 x capacity: goodput`,
      steps,
      one => one.goodput >= 0.95,
      all =>
        range(
          all.map(one => one.goodput),
          3,
        ),
    )
    report(
      `${name}, 3 x capacity: p99 / unloaded`,
      steps,
      one => one.p99Times <= 2,
      all =>
        range(
          all.map(one => one.p99Times),
          2,
        ),
    )
    for (const factor of [0.5, 2]) {
      const changes = numbers.map(seed => capacityStep(meter(), service, seed, factor))
      const show = all =>
        `median limit ${range(
          all.map(one => one.median),
          0,
        )}, first near after ${range(
          all.map(one => one.firstMs),
          0,
        )} ms`
      const title = `${name}, capacity x ${factor} (knee ${changes[0].knee.toFixed(1)})`
      report(title, changes, one => one.isNear && one.firstMs <= 10_000, show)
    }
    const calm = numbers.map(seed => steady(meter(), service, seed).refused)
    report(
      `${name}, 10 minutes at 0.8: refused`,
      calm,
      refused => refused === 0,
      all => range(all, 0),
    )
    const first = numbers.map(seed => critical(meter(), service, seed).admitted)
    report(
      `${name}, critical calls admitted`,
      first,
      part => part >= 0.999,
      all => range(all, 4),
    )
  }
  return missed
}
