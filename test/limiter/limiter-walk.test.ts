import { randomRuns } from '@test/random-runs'
import { expect, it } from 'vitest'
import { limiterWalks } from '../../packages/limiter/src/testing/seeded-walks.ts'
import { useRedis } from '../helpers/servers/use-redis.ts'

const redis = useRedis()
const seed = 7
const send = ([command, ...args]: readonly string[]) => redis.server.client.call(command!, ...args)

it('a limiter that counts in memory admits what an exact list of calls allows, and refuses nothing that fits', async () => {
  const differences = await limiterWalks({ seed, steps: randomRuns(60) * 100 })
  expect(differences, `seed ${seed}`).toEqual([])
})

it('limiters that count in memory and in Redis answer alike after every move', async () => {
  const differences = await limiterWalks({ seed, steps: 1200, redis: { url: redis.url, send } })
  expect(differences, `seed ${seed}`).toEqual([])
})
