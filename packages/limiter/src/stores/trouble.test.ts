import { expect, it } from 'vitest'
import { TooLate } from './deadline.ts'
import { troubleOf } from './trouble.ts'

class ReplyError extends Error {
  override readonly name = 'ReplyError'
}

it.each([
  ['LOADING Redis is loading the dataset in memory', 'down'],
  ['BUSY Redis is busy running a script', 'down'],
  ['CLUSTERDOWN The cluster is down', 'down'],
  ['MASTERDOWN Link with MASTER is down', 'down'],
  ["OOM command not allowed when used memory > 'maxmemory'. script: 12, on @user_script:1.", 'refuses'],
  ["READONLY You can't write against a read only replica.", 'refuses'],
  ['MISCONF Redis is configured to save RDB snapshots', 'refuses'],
  ['NOREPLICAS Not enough good replicas to write.', 'refuses'],
  ['NOAUTH Authentication required.', 'misconfigured'],
  ['WRONGPASS invalid username-password pair', 'misconfigured'],
  ['NOPERM this user has no permissions', 'misconfigured'],
  ['ERR user_script:7: attempt to index a nil value', 'bug'],
  ['WRONGTYPE Operation against a key holding the wrong kind of value', 'bug'],
  ['CROSSSLOT Keys in request', 'bug'],
])('%s is of the kind %s', (message, kind) => {
  expect(troubleOf(new ReplyError(message))).toMatchObject({ kind, isSilent: false })
})

it('what no server has said is about the way to it', () => {
  expect(troubleOf(new Error('connect ECONNREFUSED 127.0.0.1:1'))).toMatchObject({ kind: 'down', isSilent: false })
  expect(troubleOf(new Error("Stream isn't writeable"))).toMatchObject({ kind: 'down' })
  expect(troubleOf('nonsense')).toMatchObject({ kind: 'down', message: 'nonsense' })
})

it('an answer that is no answer is a bug', () => {
  expect(troubleOf(new Error('the script answered something other than numbers: x')).kind).toBe('bug')
})

it('silence is told apart', () => {
  expect(troubleOf(new TooLate(50))).toEqual({ kind: 'down', message: 'no answer within 50 ms', isSilent: true })
})

it('is told in few words', () => {
  expect(troubleOf(new Error('x'.repeat(10_000))).message).toHaveLength(300)
})
