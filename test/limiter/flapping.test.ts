import { afterEach, describe, expect, it } from 'vitest'
import { createLimiter } from '../../packages/limiter/src/create/create-limiter.ts'
import { MapStore } from '../../packages/limiter/src/testing/stores/map-store.ts'
import { type RedisServer, startRedis } from '../helpers/servers/redis-server.ts'
import { RulesCenter } from '../helpers/sources/rules-center.ts'

const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const perSecond = { id: 'all', limit: '10/s' }
const perHour = { id: 'all', limit: '100/h' }
const cases = [
  ['sliding-window', perSecond, perHour],
  ['sliding-log', { ...perSecond, algorithm: 'sliding-log' }, { ...perHour, algorithm: 'sliding-log' }],
  ['fixed-window', { ...perSecond, algorithm: 'fixed-window' }, { ...perHour, algorithm: 'fixed-window' }],
  ['token-bucket', { ...perSecond, algorithm: 'token-bucket' }, { ...perHour, algorithm: 'token-bucket' }],
  ['token-bucket and sliding-window', { ...perSecond, algorithm: 'token-bucket' }, perHour],
  ['sliding-window and fixed-window', perSecond, { ...perHour, algorithm: 'fixed-window' }],
] as const

describe.each(['memory', 'Redis', 'ledgers'] as const)(
  'a rule that flaps between two versions every 400 ms, counted in %s',
  where => {
    // two of them show that Redis does the same; its own tests know all
    it.each(where === 'Redis' ? [cases[0], cases[4]] : cases)(
      'a rule that alternates between two versions admits no more than the larger limit: %s',
      async (_, one, other) => {
        let redis: RedisServer | undefined
        if (where === 'Redis') {
          redis = await startRedis()
          closing.push(() => redis!.close())
        }
        let nowMs = 1_794_744_000_123
        const center = new RulesCenter(one)
        const limiter = await createLimiter({
          clock: () => nowMs,
          ...(redis && { store: { redis: `redis://${redis.authority}`, timeout: '5s' } }),
          ...(where === 'ledgers' && { store: new MapStore() }),
          ...center.options,
        })
        closing.push(() => limiter.close())
        let admitted = 0
        for (let step = 0; step < 25; step++) {
          nowMs += 400
          if (step > 0) await center.change([limiter], step % 2 === 0 ? one : other)
          for (let call = 0; call < 30; call++) {
            if ((await limiter.check({ method: 'GET', path: '/' })).allowed) admitted++
          }
        }
        expect(admitted).toBeLessThanOrEqual(110)
        expect(admitted).toBeGreaterThan(40)
      },
    )
  },
)
