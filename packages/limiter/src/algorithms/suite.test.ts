import { randomRuns } from '@test/random-runs'
import { type RedisServer, startRedis } from '@test/servers/redis-server'
import { afterAll, beforeAll, describe, it } from 'vitest'
import { type AlgorithmSuiteOptions, algorithmSuite } from '../testing/algorithms/suite.ts'
import { algorithms } from './index.ts'

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
  await server.client.config('SET', 'appendonly', 'no')
})
afterAll(() => server.close())

/** Rules for the options that an algorithm has; one that is not listed is tested with a plain limit. */
const forms: Readonly<Record<string, Partial<AlgorithmSuiteOptions>>> = {
  concurrency: { rules: [{ limit: 1 }, { limit: 5 }] },
  // each process learns by itself: there is no Lua to compare with
  adaptive: { rules: [{ limit: 1 }, { limit: 20, min: 3 }], sendToRedis: undefined },
  'token-bucket': {
    rules: [
      { limit: '10/s' },
      { limit: '7/m', burst: 3 },
      { limit: '5/s', refill: 'interval' },
      { limit: '5/m', burst: 8, refill: 'aligned' },
      { limit: '4/s', start: 'empty', refill: 'aligned' },
    ],
  },
  'leaky-bucket': {
    rules: [
      { limit: '10/s', burst: 5 },
      { limit: '10/s', burst: 5, whenFull: 'wait' },
    ],
  },
  'fixed-window': {
    rules: [
      { limit: '10/s' },
      { limit: '3/m', whenFull: 'wait' },
      { limit: '7/day', zone: 'America/Sao_Paulo' },
      { limit: ['5/week', '12/month'], zone: 'Europe/Berlin' },
      { limit: '20/year', zone: 'Asia/Kathmandu', anchor: '02-29' },
    ],
  },
  'warm-up': { rules: [{ limit: '10/s', warmUp: '3s' }], toleranceUs: 1 },
}

describe.each(algorithms)('the published suite for algorithms: $name', algorithm => {
  const { rules = [{ limit: '10/s' }, { limit: '3/m', whenFull: 'wait' }], toleranceUs } = forms[algorithm.name] ?? {}
  const isInLua = !Object.hasOwn(forms[algorithm.name] ?? {}, 'sendToRedis')
  const send = ([command, ...args]: readonly string[]) => server.client.call(command!, ...args)
  const sendToRedis = isInLua ? send : undefined
  for (const { name, run } of algorithmSuite({ algorithm, rules, toleranceUs, sendToRedis, walks: randomRuns(4) }))
    it(name, run)
})
