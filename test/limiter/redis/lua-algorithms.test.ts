import { randomRuns } from '@test/random-runs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { inRedis, seededWalks } from '../../../packages/limiter/src/testing/seeded-walks.ts'
import { type RedisServer, startRedis } from '../../helpers/servers/redis-server.ts'

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
  await server.client.config('SET', 'appendonly', 'no')
})
afterAll(() => server.close())

describe('memory and Redis give equal answers', () => {
  // `npm run long -- walk` goes on for longer
  const seeds = [1, Date.now() % 1_000_000]
  const steps = randomRuns(1500)

  it.each(seeds)(
    `to calls, refunds, resets, blocks and changed rules in ${steps} random steps, seed %i`,
    async seed => {
      const differences = await seededWalks({
        ...inRedis(([command, ...args]) => server.client.call(command!, ...args)),
        seed,
        steps,
      })
      expect(differences).toEqual([])
    },
  )
})
