import { createLimiter } from 'diana-limiter'
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
    'Diana counts in this process, since Redis cannot be reached (STORE_UNREACHABLE: connect ECONNREFUSED 127.0.0.1:1): ' +
      'start Redis, or correct host and port in store.redis',
  ])
  // the line takes the place of the warning
  expect(warnings).toEqual([])
})
