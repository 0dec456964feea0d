import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ESTIMATE_SLOTS } from './adaptive/estimate-state.ts'
import { ConcurrencyEstimator } from './adaptive/estimator.ts'

const LEVELS = [0, 0.25, 0.5, 0.75, 1] as const
const WORK_US = 10_000

interface Phase {
  /** The level of all calls for a time, as an index. */
  readonly level: number
  readonly calls: number
}

/** A service of some workers that take 10 ms for each call, and gets one call each millisecond, of one level for a time and then of another. */
function walk(min: number, workers: number, phases: readonly Phase[]) {
  const estimator = new ConcurrencyEstimator(min, 100)
  const state = new Float64Array(ESTIMATE_SLOTS)
  const freeAt: number[] = Array(workers).fill(0)
  let inFlight: { since: number; ends: number }[] = []
  let now = 1e15
  const refused = { belowMin: 0, beyond: 0 }
  for (const rank of phases.flatMap(({ level, calls }) => Array<number>(calls).fill(LEVELS[level]!))) {
    now += 1000
    for (const { since, ends } of inFlight) if (ends <= now) estimator.end(state, 0, now, 1, since, 'answered')
    inFlight = inFlight.filter(({ ends }) => ends > now)
    if (inFlight.length + 1 > estimator.allowed(state, 0, now, rank)) {
      if (inFlight.length < min) refused.belowMin++
      else refused.beyond++
      continue
    }
    estimator.begin(state, 0, now, 1, rank)
    const ends = Math.max(now, freeAt.sort((a, b) => a - b)[0]!) + WORK_US
    freeAt[0] = ends
    inFlight.push({ since: now, ends })
  }
  return refused
}

describe('levels of calls and the least that an adaptive limit admits', () => {
  it('no call of any level is refused while fewer than min calls are in flight, and many beyond are in an overload', () => {
    const phase = fc.record({ level: fc.nat(4), calls: fc.integer({ min: 500, max: 1500 }) })
    const property = fc.property(
      fc.integer({ min: 1, max: 30 }),
      fc.integer({ min: 1, max: 4 }),
      fc.array(phase, { minLength: 3, maxLength: 5 }),
      (min, workers, phases) => {
        const { belowMin, beyond } = walk(min, workers, phases)
        expect(belowMin).toBe(0)
        expect(beyond).toBeGreaterThan(0)
      },
    )
    fc.assert(property, {
      numRuns: 40,
      examples: [
        [
          20,
          2,
          [
            { level: 4, calls: 3000 },
            { level: 0, calls: 500 },
          ],
        ],
      ],
    })
  })
})
