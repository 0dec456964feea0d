import { once } from 'node:events'
import { connect, createServer } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterEach, expect, test } from 'vitest'
import { keptSessions, outliveStreams } from './ended-sessions.ts'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as (options?: { type: 'minor' }) => void

const closing: (() => unknown)[] = []
afterEach(() => {
  for (const close of closing.splice(0)) close()
})

/** Opens sessions that outlive their streams, on both sides, and ends them. */
async function endSessions(count: number): Promise<void> {
  const server = createServer().listen(0, '127.0.0.1')
  closing.push(() => server.close())
  server.on('session', outliveStreams)
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const sessions = Array.from({ length: count }, () => connect(url).on('error', () => {}))
  await Promise.all(sessions.map(session => once(session, 'connect')))
  for (const session of sessions) outliveStreams(session)
  for (const session of sessions) session.destroy()
}

test('sessions that have ended are kept for two collections of the whole heap after the one that may have begun', async () => {
  const collectAll = async (): Promise<void> => {
    collect({ type: 'minor' })
    collect()
    // collections are reported later
    await pause(20)
  }
  // those of earlier tests
  for (let times = 0; times < 3; times++) await collectAll()
  await endSessions(5)
  await expect.poll(keptSessions).toBe(10)
  for (const kept of [10, 10, 0]) {
    await collectAll()
    expect(keptSessions()).toBe(kept)
  }
  for (let times = 0; times < 6; times++) await endSessions(100)
  await expect.poll(keptSessions).toBe(1000)
})
