import { type RedisServer, startRedis } from '@test/servers/redis-server'
import { afterAll, beforeAll, describe, it } from 'vitest'
import { RedisStore } from '../stores/redis/redis-store.ts'
import { memoryStage, redisStage, runAmended } from './amended-timeline.ts'
import { amendedTimelines } from './timelines/amended.ts'

let tables = 0
const starts = [0, 20_772 * 86_400_000]

describe.each(starts)('from %i ms on, memory answers every table of refunds, resets and changed limits', startMs => {
  it.each(amendedTimelines)('$title', async timeline => {
    await runAmended(timeline, memoryStage(timeline.rule), startMs)
  })
})

describe.each(starts)('from %i ms on, Redis answers every table of refunds, resets and changed limits', startMs => {
  let server: RedisServer
  beforeAll(async () => {
    server = await startRedis()
    await server.client.config('SET', 'appendonly', 'no')
  })
  afterAll(() => server.close())

  it.each(amendedTimelines)('$title', async timeline => {
    let now = 0
    await server.client.flushall()
    const store = new RedisStore(([command, ...args]) => server.client.call(command!, ...args), {
      // the versions of a rule are remembered by its name
      prefix: `table${++tables}`,
      now: () => now,
    })
    const stage = redisStage(timeline.rule, store, moment => {
      now = moment
    })
    await runAmended(timeline, stage, startMs)
    store.close()
  })
})
