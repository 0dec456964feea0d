import { afterAll, beforeAll, expect, it } from 'vitest'
import { inRedis, seededWalks } from '../../../packages/limiter/src/testing/seeded-walks.ts'
import { type RedisServer, startRedis } from '../../helpers/servers/redis-server.ts'

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
  await server.client.config('SET', 'appendonly', 'no')
})
afterAll(() => server.close())

/** Faults of a store, each a change of the numbers that it is sent: see run.lua. */
const faults: Readonly<Record<string, (text: string) => string>> = {
  'a debt is clipped': text => text.replaceAll(/( 10 8 1(?: \d+){7}) 1(?= |$)/g, '$1 0'),
  'reservations end a second later': text =>
    text.replaceAll(/( \d+ 7 1 \d+ \d+ \d+ )(\d+)/g, (_, head, n) => `${head}${+n + 1e6}`),
}

it.each(Object.keys(faults))('the walk finds it if %s', async name => {
  const differences = await seededWalks({
    ...inRedis(([command, ...args]) => server.client.call(command!, ...args.map(faults[name]!))),
    seed: 7,
    steps: 800,
  })
  expect(differences.length).toBeGreaterThan(0)
})
