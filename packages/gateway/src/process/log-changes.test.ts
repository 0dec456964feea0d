import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLimiter } from 'diana-limiter'
import { serveCounting } from 'diana-limiter/counting'
import { expect, it, onTestFinished } from 'vitest'
import { logChanges } from './log-changes.ts'

it('a Redis that cannot be used at the start is one line with a code and the remedy', async () => {
  const warnings: string[] = []
  const hear = ({ message }: Error): unknown => warnings.push(message)
  process.on('warning', hear)
  const limiter = await createLimiter({
    store: { redis: 'redis://127.0.0.1:1' },
    rules: [{ id: 'all', limit: '5/s' }],
  })
  onTestFinished(async () => {
    process.removeListener('warning', hear)
    await limiter.close()
  })
  const lines: string[] = []
  logChanges(limiter, { print: line => lines.push(line), printError: line => lines.push(line) })
  await new Promise(setImmediate)
  expect(lines).toEqual([
    'Diana counts in this process, since Redis refuses connections (STORE_REFUSES_CONNECTIONS: connect ECONNREFUSED 127.0.0.1:1): ' +
      'start Redis, or correct host and port in store.redis',
  ])
  // the line takes the place of the warning
  expect(warnings).toEqual([])
})

it('a counting process that comes back without counts is not taken for a Redis', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'diana-counting-'))
  const socket = join(folder, 'counting.sock')
  let server = await serveCounting({ socket })
  const limiter = await createLimiter({
    counting: { socket, processes: 1 },
    rules: [{ id: 'all', limit: '100/h' }],
  })
  onTestFinished(async () => {
    await limiter.close()
    await server.close()
    await rm(folder, { recursive: true })
  })
  const lines: string[] = []
  logChanges(limiter, { print: line => lines.push(line), printError: line => lines.push(line) })
  await limiter.check({ method: 'GET', path: '/' })
  await server.close()
  await expect.poll(() => lines.length).toBeGreaterThan(0)
  server = await serveCounting({ socket })
  await expect.poll(() => lines.at(-1), { timeout: 5000 }).toBe('The workers count together again')
  expect(lines[0]).toMatch(/^The workers count by themselves, since the counting process /)
  expect(lines.join('\n')).not.toMatch(/Redis/)
  const { counting } = limiter.status()
  expect(counting!.outages.map(({ what }) => what).join()).toContain('the counting process')
  expect(JSON.stringify(counting)).not.toMatch(/Redis/)
})
