import { once } from 'node:events'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { createLimiter } from 'diana-limiter'
import { documentOf } from 'diana-limiter/gateway'
import { afterEach, expect, it } from 'vitest'
import { spoeHello } from '../../../../../test/fuzz/plan/spoe.mjs'
import { Peers } from '../calls/peers.ts'
import { SpoeServer } from './spoe-server.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const field = (text: string): string => String.fromCharCode(text.length) + text
const check = `\x03\0\0\0\x01\x01\x01${field('check')}\x02${field('method')}\x08${field('GET')}${field('target')}\x08${field('/')}`
const question = Buffer.from(String.fromCharCode(0, 0, 0, check.length) + check, 'latin1')

it('a peer that reads no answers is not read, and gets them all when it reads', { timeout: 120_000 }, async () => {
  const limiter = await createLimiter({ rules: [{ id: 'all', limit: '1000000/s' }] })
  const settings = () => ({ connections: 10, deadlineMs: 15 }) as never
  const server = new SpoeServer({ limiter, peers: new Peers(documentOf(limiter)), settings, onRefused: () => {} })
  server.server.listen(0, '127.0.0.1')
  await once(server.server, 'listening')
  const accepted = once(server.server, 'connection') as Promise<[Socket]>
  const client = connect((server.server.address() as AddressInfo).port, '127.0.0.1').on('error', () => {})
  closing.push(
    () => limiter.close(),
    () => server.close(),
    () => client.destroy(),
  )
  const [socket] = await accepted
  client.pause()
  const questions = 100_000
  client.write(Buffer.from(spoeHello(), 'latin1'))
  for (let sent = 0; sent < questions; sent += 1000) client.write(Buffer.concat(Array(1000).fill(question)))
  let most = 0
  for (let times = 0; times < 100; times++) {
    await pause(10)
    most = Math.max(most, socket.writableLength)
  }
  expect(most).toBeLessThan(1_000_000)
  let bytes = 0
  client.on('data', piece => {
    bytes += piece.length
  })
  client.resume()
  await expect.poll(() => socket.bytesRead, { timeout: 50_000 }).toBe(client.bytesWritten)
  await expect.poll(() => bytes, { timeout: 50_000 }).toBe(socket.bytesWritten)
  expect(bytes).toBeGreaterThan(questions * 20)
})
