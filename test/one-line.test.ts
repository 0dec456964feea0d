import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { build } from './helpers/program-rig.ts'

it('one limit whose limiter cannot be made lets no call pass and reports each, though the process is kept alive', () => {
  build()
  const program = fileURLToPath(new URL('one-line/program.mjs', import.meta.url))
  const { stdout, stderr } = spawnSync(process.execPath, [program], { encoding: 'utf8', timeout: 60_000 })
  const { results, uncaught, retryAfter } = JSON.parse(stdout) as {
    results: { statuses: number[]; reported: number }[]
    uncaught: number
    retryAfter: string
  }
  expect(results).toHaveLength(3 * 7)
  for (const result of results) expect(result).toMatchObject({ statuses: Array(6).fill(503), reported: 6 })
  // something like Sentry has heard of each
  expect(uncaught).toBe(3 * 7 + 1)
  expect(retryAfter).toBe('60')
  expect(stderr).toContain(
    'the limiter of a filter cannot be made, so every call is refused with 503: DianaError: rateLimit: store.redis needs the ioredis package; run: npm install ioredis',
  )
}, 60_000)
