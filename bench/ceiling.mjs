#!/usr/bin/env node
// npm run long -- ceiling
// How many calls a second one rule without `by` can count, which lives in one hash and so on one thread of one Redis: the
// CPU time of Redis per call, with calls that come alone and with many under way. The figure holds on a busy machine too.
import { flood } from './load/flood.mjs'
import { subjects } from './redis-subjects.mjs'
import { startRedis } from './servers/start-redis.mjs'

const names = [
  'diana store without by',
  'diana store, sliding-window, without by',
  'diana store, token-bucket, without by',
]

for (const inFlight of [1, 64]) {
  for (const name of names) {
    const server = await startRedis()
    const decide = await subjects[name](server.client)
    await flood(decide, { inFlight, ms: 500 })
    const before = await server.busyMs()
    const { calls } = await flood(decide, { inFlight, ms: 1500 })
    const usEach = ((await server.busyMs()) - before) * (1000 / calls)
    console.log(
      `${name}, ${inFlight} under way: ${usEach.toFixed(1)} µs of Redis, at most ${Math.round(1e3 / usEach)},000 calls a second`,
    )
    await server.stop()
  }
}
