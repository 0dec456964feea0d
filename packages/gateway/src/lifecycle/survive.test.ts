import { EventEmitter } from 'node:events'
import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, expect, test, vi } from 'vitest'
import { surviveErrors } from './survive.ts'

// the test runner has listeners of its own, which would take the errors of these tests for failures
const process = new EventEmitter()
vi.stubGlobal('process', process)
let stop: (() => void) | undefined
afterEach(() => stop?.())

test('an error that nothing catches is reported, and the process goes on', async () => {
  const report = vi.fn()
  const giveUp = vi.fn()
  stop = surviveErrors({ report, giveUp })
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
  expect(giveUp).not.toHaveBeenCalled()
})

test('more than a hundred errors within a minute end the process, and fewer do not', () => {
  let now = 0
  const giveUp = vi.fn()
  stop = surviveErrors({ report: () => {}, giveUp, now: () => now })
  for (let i = 0; i < 300; i++, now += 601) process.emit('uncaughtException', new Error('seldom'))
  expect(giveUp).not.toHaveBeenCalled()
  for (let i = 0; i < 101; i++) process.emit('uncaughtException', new Error('often'))
  expect(giveUp).toHaveBeenCalled()
})
