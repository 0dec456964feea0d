import { randomRuns } from '@test/random-runs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { LimitWalk, limitSubjects } from '../../../packages/limiter/src/testing/limit-walk.ts'
import { walkedInRedis } from '../../../packages/limiter/src/testing/walked-store.ts'
import { useRedis } from '../../helpers/servers/use-redis.ts'

const redis = useRedis()
let prefix = 0

const die = fc.nat(20_000)
const limit = fc.record({ count: fc.constantFrom(1, 2, 3, 5, 10, 20), periodMs: fc.constantFrom(1000, 7000, 60_000) })

describe('a key whose limit changes from call to call', () => {
  it.each([...limitSubjects.keys()])(
    'memory and Redis give the same answers and admit no more than the largest limit: %s',
    async name => {
      await fc.assert(
        fc.asyncProperty(
          fc.uniqueArray(limit, { minLength: 2, maxLength: 5, selector: one => JSON.stringify(one) }),
          fc.nat(1),
          fc.array(fc.tuple(die, die, die, die), { minLength: 1, maxLength: 60, size: 'max' }),
          async (limits, others, steps) => {
            const send = ([command, ...args]: readonly string[]) => redis.server.client.call(command!, ...args)
            const walk = new LimitWalk(name, walkedInRedis(send), `walk${prefix++}`, limits, limits.length - others)
            try {
              for (const step of steps) await walk.step(step)
              walk.assertBound()
            } finally {
              walk.close()
            }
          },
        ),
        { numRuns: randomRuns(24) },
      )
      expect(prefix).toBeGreaterThan(0)
    },
  )
})
