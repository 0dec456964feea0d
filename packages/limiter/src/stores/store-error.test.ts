import { expect, it } from 'vitest'
import { TooLate } from '../common/within.ts'
import { classifyError, connectionError, UnreadableReply } from './store-error.ts'

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
  expect(classifyError(new ReplyError(message))).toMatchObject({ kind, isSilent: false })
})

it.each([
  ["ERR unknown command 'EVALSHA', with args beginning with: ", 'STORE_TOO_OLD'],
  ['ERR Error running script: Write commands not allowed after non deterministic commands.', 'STORE_TOO_OLD'],
  ['ERR Unknown Redis command called from script script: 1, on @user_script:3.', 'STORE_TOO_OLD'],
  ['connect ECONNREFUSED 127.0.0.1:6379', 'STORE_REFUSES_CONNECTIONS'],
  ['read ECONNRESET', 'STORE_UNREACHABLE'],
  ['write EPIPE', 'STORE_UNREACHABLE'],
  ['Connection is closed.', 'STORE_UNREACHABLE'],
  ['Reached the max retries per request limit (which is 0).', 'STORE_UNREACHABLE'],
  ['getaddrinfo EAI_AGAIN redis.internal', 'STORE_NAME_UNKNOWN'],
  ['C0DE:error:0A00010B:SSL routines:ssl3_get_record:wrong version number:', 'STORE_SPEAKS_NO_TLS'],
  ['Client network socket disconnected before secure TLS connection was established', 'STORE_SPEAKS_NO_TLS'],
  ['Protocol error, got "H" as reply type byte. Please report this.', 'STORE_IS_NOT_REDIS'],
  ['Unknown RESP type 21 "\u0015". Please report this.', 'STORE_CLOSES_CONNECTIONS'],
  ["Hostname/IP does not match certificate's altnames: Host: redis. is not cert's CN", 'STORE_CERTIFICATE'],
  ['ERR invalid DB index', 'STORE_DATABASE'],
  ['ERR max number of clients reached', 'STORE_BUSY'],
  ["Stream isn't writeable and enableOfflineQueue options is false", 'STORE_UNREACHABLE'],
])('%s has the code %s, words for operators and a remedy', (message, code) => {
  const trouble = classifyError(new Error(message))
  expect(trouble).toMatchObject({ code })
  expect(trouble.remedy).not.toBe('')
  expect(trouble.what).toMatch(/Redis/)
  expect(trouble.what).not.toContain(message)
})

it('an error that no server has sent is about the connection', () => {
  expect(classifyError(new Error('connect ECONNREFUSED 127.0.0.1:1'))).toMatchObject({ kind: 'down', isSilent: false })
  expect(classifyError(new Error("Stream isn't writeable"))).toMatchObject({
    kind: 'down',
    message: 'there is no connection to Redis',
  })
  expect(classifyError('nonsense')).toMatchObject({ kind: 'down', message: 'nonsense' })
})

it('an answer that is no answer is a bug', () => {
  expect(classifyError(new UnreadableReply('numbers', 'x')).kind).toBe('bug')
})

it('an answer that comes too late is a silent error', () => {
  expect(classifyError(new TooLate(50))).toMatchObject({
    ...{ code: 'STORE_SILENT', kind: 'down', message: 'no answer within 50 ms', isSilent: true },
  })
})

it('the message of an error has at most 300 characters', () => {
  expect(classifyError(new Error('x'.repeat(10_000))).message).toHaveLength(300)
})

it.each([
  'read ECONNRESET',
  'write EPIPE',
  'C0DE:error:0A00010B:SSL routines:ssl3_get_record:wrong version number:',
  'no answer to the TLS handshake',
  'Client network socket disconnected before secure TLS connection was established',
  'Unknown RESP type 21 "\u0015". Please report this.',
])('%s says nothing of TLS on a connection that has worked', message => {
  const { code, remedy } = classifyError(connectionError(new Error(message), true))
  expect(code).toBe('STORE_UNREACHABLE')
  expect(remedy).not.toMatch(/TLS|rediss/)
})

it('connections that are reset from the start may be to a port with TLS', () => {
  const { code, remedy } = classifyError(connectionError(new Error('read ECONNRESET'), false))
  expect([code, remedy]).toEqual(['STORE_CLOSES_CONNECTIONS', expect.stringContaining('rediss://')])
})

it('other errors of a connection are as they were', () => {
  for (const hasWorked of [true, false]) {
    const error = new Error('connect ECONNREFUSED 127.0.0.1:6379')
    expect(connectionError(error, hasWorked)).toBe(error)
    expect(connectionError(undefined, hasWorked)).toBeUndefined()
  }
})
