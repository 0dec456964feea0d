// What the simulation of leases is asked, and what its answers must be.
import { seededRandom } from '../helpers/seeded-random.mjs'

export const ALGORITHMS = ['token-bucket', 'sliding-window', 'fixed-window']
export const LOADS = [0.5, 0.95, 1.5, 3]

/** One busy key and fleets of several sizes. */
export const fleets = [
  { processes: 1, limit: 10_000, seconds: 10 },
  { processes: 5, limit: 1000, seconds: 10 },
  { processes: 5, limit: 10_000, seconds: 10 },
  { processes: 20, limit: 10_000, seconds: 10 },
  { processes: 100, limit: 100_000, seconds: 4 },
]

/** A fleet of a thousand gateways, in the algorithm that costs the store least. */
export const largest = {
  processes: 1000,
  limit: 1_000_000,
  seconds: 3,
  algorithm: 'token-bucket',
  loads: [0.5, 1, 1.5],
}

/** Many keys, of which some are busy: the n-th is called in proportion to 1/n. */
export const manyKeys = [
  { processes: 5, keys: 1000, limit: 1000, load: 0.9, seconds: 4 },
  { processes: 50, keys: 1000, limit: 1000, load: 0.9, seconds: 4 },
  { processes: 5, keys: 100_000, limit: 1000, load: 0.9, seconds: 4 },
]

/** A fleet at random, with what can go wrong: lost and repeated messages, partitions, crashes, clocks that run at other speeds. */
export function randomFleet(seed) {
  const random = seededRandom(seed * 7919)
  const pick = values => values[Math.floor(random() * values.length)]
  const algorithm = pick([...ALGORITHMS, 'sliding-log'])
  return {
    seed,
    algorithm,
    limit: pick([200, 500, 1000]) * (algorithm === 'sliding-log' ? 1 : pick([1, 10])),
    processes: pick([1, 2, 5, 10]),
    load: pick([0.5, 0.9, 1.1, 1.5, 3]),
    seconds: 3,
    latencyMs: pick([0.2, 0.5, 2, 20]),
    loss: pick([0, 0, 0.01, 0.05]),
    duplicates: pick([0, 0, 0.1]),
    cuts: pick([0, 0, 3]),
    crashes: pick([0, 0, 3]),
    drift: pick([0, 0.01, 0.05]),
    onOff: pick([false, false, true]),
  }
}

export const marks = {
  /** Requests to the store for each call: five processes, 10,000/s. */
  askedBy5: 0.03,
  /** Of the limit, if more is offered. */
  used: 0.98,
}
