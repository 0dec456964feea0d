import { randomRuns } from '@test/random-runs'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { tokenBucket } from '../../algorithms/token-bucket.ts'
import { localCharge, MemoryStore } from './memory-store.ts'

const START = 1_794_744_000_000_000

const shape = fc.record({
  count: fc.constantFrom(1, 2, 8, 17, 100),
  periodMs: fc.constantFrom(5, 1000, 7000, 60_000),
  burst: fc.constantFrom(1, 2, 7, 8, 100),
})

it('no sequence of shapes of a bucket admits more than the largest burst and, from then on, the highest rate', () => {
  const step = fc.record({
    passUs: fc.constantFrom(0, 0, 1, 5000, 100_000, 1_000_000, 7_000_000),
    change: fc.option(fc.nat(4), { freq: 3 }),
    cost: fc.constantFrom(1, 1, 2, 5),
  })
  const shapes = fc.array(fc.array(shape, { minLength: 1, maxLength: 2 }), { minLength: 2, maxLength: 5 })
  fc.assert(
    fc.property(shapes, fc.array(step, { minLength: 5, maxLength: 60, size: 'max' }), (versions, steps) => {
      const metersOf = (levels: (typeof versions)[number]) => {
        return levels.map(({ burst, ...limit }) => tokenBucket.meter(limit, { burst }))
      }
      const store = new MemoryStore()
      const table = store.createTable('rule', metersOf(versions[0]!))
      const most = Math.max(...versions.flat().map(({ burst }) => burst))
      const perUs = Math.max(...versions.flat().map(({ count, periodMs }) => count / (periodMs * 1000)))
      let [now, level, last] = [START, 0, START]
      for (const { passUs, change, cost } of steps) {
        now += passUs
        if (change !== null) table.adopt(metersOf(versions[change % versions.length]!), now, { keepsPast: true })
        if (!store.take([{ ...localCharge(table), key: 'ann', cost, mayWait: false }], 1, now)) continue
        level = Math.max(0, level - (now - last) * perUs) + cost
        last = now
        expect(level).toBeLessThanOrEqual(most + 1e-6)
      }
    }),
    { numRuns: randomRuns(100) },
  )
})
