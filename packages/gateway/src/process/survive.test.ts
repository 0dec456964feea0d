import { EventEmitter } from 'node:events'
import { setImmediate as turn } from 'node:timers/promises'
import { faultCounts } from 'diana-limiter/gateway'
import { afterEach, expect, test, vi } from 'vitest'
import { surviveErrors } from './survive.ts'

// the test runner has listeners of its own, which would take the errors of these tests for failures
const process = new EventEmitter()
vi.stubGlobal('process', process)
let stop: (() => void) | undefined
afterEach(() => stop?.())

test('an error that nothing catches is reported and counted, and the process goes on', async () => {
  const report = vi.fn()
  stop = surviveErrors({ report })
  const before = faultCounts().uncaught ?? 0
  process.emit('uncaughtException', new Error('boom'))
  process.emit('unhandledRejection', {
    toString: () => {
      throw new Error('no text')
    },
  })
  await turn()
  expect(report.mock.calls.map(([text]) => String(text).split('\n')[0])).toEqual([
    'an error that nothing has caught: Error: boom',
    'an error that nothing has caught: an error that cannot be printed',
  ])
  expect(faultCounts().uncaught).toBe(before + 2)
})

test('thousands of errors within a minute end nothing, and ten of them are reported', () => {
  let now = 0
  const exit = vi.fn()
  Object.assign(process, { exit })
  const reports: string[] = []
  stop = surviveErrors({ report: text => reports.push(text.split('\n')[0]!), now: () => now })
  const before = faultCounts().uncaught ?? 0
  for (let i = 0; i < 5000; i++) process.emit('uncaughtException', new Error('often'))
  expect(reports).toEqual(Array(10).fill('an error that nothing has caught: Error: often'))
  now = 60_000
  process.emit('uncaughtException', new Error('later'))
  expect(reports.at(-1)).toBe('an error that nothing has caught (and 4990 others since the last report): Error: later')
  expect(faultCounts().uncaught).toBe(before + 5001)
  expect(exit).not.toHaveBeenCalled()
})
