import { cpuUsage } from 'node:process'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import pLimit from 'p-limit'
import { expect, it } from 'vitest'
import { JobQueue } from '../jobs/job-queue.ts'
import { RateLimiter } from './rate-limiter.ts'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

const COUNT = 20_000
const QUEUED = 100_000
const work = async (): Promise<number> => 1

type Schedule = (job: () => Promise<number>) => Promise<number>

/** The time of a processor that one of many jobs takes, in nanoseconds. */
async function cost(schedule: Schedule): Promise<number> {
  const before = cpuUsage()
  for (let i = 0; i < COUNT; i++) await schedule(work)
  const { user, system } = cpuUsage(before)
  return ((user + system) / COUNT) * 1000
}

it('a job that need not wait costs at most one and a half times what p-limit takes', async () => {
  const limiter = RateLimiter.create(1e9)
  const ours: Schedule = job => limiter.schedule(job, { priority: 1 })
  const theirs: Schedule = pLimit(1000)
  let [best, peer] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]
  for (let round = 0; round < 8; round++) {
    best = Math.min(best, await cost(ours))
    peer = Math.min(peer, await cost(theirs))
  }
  expect(best).toBeLessThanOrEqual(1.5 * peer)
})

it('each of 100,000 jobs that wait takes at most 300 bytes', async () => {
  // jobs that never begin, so that no promise needs a handler
  const queue = new JobQueue({ take: () => Number.POSITIVE_INFINITY, width: 1 })
  void queue.schedule(work)
  collect()
  const before = process.memoryUsage().heapUsed
  const options = { priority: 1 }
  for (let i = 0; i < QUEUED; i++) void queue.schedule(work, options)
  collect()
  const perJob = (process.memoryUsage().heapUsed - before) / QUEUED
  expect(queue.waiting).toBe(QUEUED + 1)
  expect(perJob).toBeLessThanOrEqual(300)
})
