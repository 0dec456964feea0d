import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { startRedis } from '../helpers/servers/redis-server.ts'
import { expressRateLimit, fastifyRateLimit, throttler } from './filters.ts'
import { play } from './play.ts'
import { bottleneck, flexible, nginx, pLimit, pQueue, upstash } from './programs.ts'
import { tableOf } from './table.ts'

const sections = [expressRateLimit, flexible, throttler, fastifyRateLimit, upstash, bottleneck, pLimit, pQueue, nginx]
const page = readFileSync(fileURLToPath(new URL('../../docs/migrating.md', import.meta.url)), 'utf8')
const closing: (() => unknown)[] = []
let redis: Awaited<ReturnType<typeof startRedis>>

beforeAll(async () => {
  redis = await startRedis()
})
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
  await redis.client.call('FLUSHALL')
})
afterAll(() => redis.close())

/** A way to a store that never answers. */
const broken = (): Promise<never> => Promise.reject(new Error('connect ECONNREFUSED'))

describe.each(sections)('coming from $from', ({ from, rows }) => {
  it('docs/migrating.md has the rows of this test', () => {
    expect(page).toContain(`## ${from}\n`)
    expect(page).toContain(tableOf(rows))
  })

  it.each(rows)('$theirs becomes $ours', async row => {
    await play(row, { client: redis.client, broken }, closing)
  })
})
