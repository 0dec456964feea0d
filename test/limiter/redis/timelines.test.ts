import { afterAll, beforeAll, describe, it } from 'vitest'
import { RedisStore } from '../../../packages/limiter/src/stores/redis/redis-store.ts'
import { compileRule } from '../../../packages/limiter/src/testing/compile-rule.ts'
import { createStoreDecider } from '../../../packages/limiter/src/testing/stores/store-decider.ts'
import { runTimeline, type Timeline } from '../../../packages/limiter/src/testing/timeline.ts'
import { timelines } from '../../../packages/limiter/src/testing/timelines.ts'
import { type RedisServer, startRedis } from '../../helpers/servers/redis-server.ts'

const aDayIn2026 = 20_772 * 86_400_000

let tables = 0
let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
  await server.client.config('SET', 'appendonly', 'no')
})
afterAll(() => server.close())

async function run(timeline: Timeline, startMs: number): Promise<void> {
  let now = 0
  const store = new RedisStore(([command, ...args]) => server.client.call(command!, ...args), {
    // the versions of a rule are remembered by its name
    prefix: `table${++tables}`,
    now: () => now,
  })
  await server.client.flushall()
  const judge = createStoreDecider(store, compileRule(timeline.rule))
  await runTimeline(timeline, (atMs, cost, key) => {
    now = Math.round((startMs + atMs) * 1000)
    return judge(cost, key)
  })
  store.close()
}

describe('Redis answers every table of moments', () => {
  it.each(timelines)('$title', async timeline => {
    await run(timeline, aDayIn2026)
  })

  it.each(timelines)('with a clock that begins at zero: $title', async timeline => {
    await run(timeline, 0)
  })
})
