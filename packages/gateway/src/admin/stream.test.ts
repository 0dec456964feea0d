import { type IncomingMessage, request } from 'node:http'
import { connect } from 'node:net'
import { createLimiter, type Limiter } from 'diana-limiter'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { LiveStats } from '../cli/top-screen.ts'
import { createAdmin } from './server/create-admin.ts'
import { startAdmin } from './server/start-admin.ts'

let limiter: Limiter
let closing: (() => Promise<unknown>)[] = []
beforeEach(async () => {
  limiter = await createLimiter({ rules: [{ id: 'each', by: 'ip', limit: '5/m' }] })
  closing = [() => limiter.close()]
})
afterEach(async () => {
  for (const close of closing.reverse()) await close()
})

const call = (ip: string) => limiter.check({ method: 'GET', path: '/', ip })

async function listen(): Promise<{ port: number; address: string }> {
  const app = await createAdmin({ limiter, host: '127.0.0.1' })
  closing.push(() => app.close())
  const address = await app.listen({ host: '127.0.0.1', port: 0 })
  return { address, port: Number(new URL(address).port) }
}

interface StreamEvent {
  readonly event: string
  readonly data: LiveStats
}

async function follow(address: string): Promise<{ told: StreamEvent[]; leave(): void }> {
  const told: StreamEvent[] = []
  const response = await new Promise<IncomingMessage>(resolve => request(`${address}/api/v1/live`, resolve).end())
  expect(response.headers['content-type']).toBe('text/event-stream')
  let text = ''
  response.setEncoding('utf8').on('data', piece => {
    text += piece
    const blocks = text.split('\n\n')
    text = blocks.pop()!
    for (const block of blocks) {
      const match = /^event: (.*)\ndata: (.*)$/.exec(block)
      if (match) told.push({ event: match[1]!, data: JSON.parse(match[2]!) })
    }
  })
  return { told, leave: () => response.destroy() }
}

describe('the live stream', () => {
  it('the live stream sends the status first, then each second once, and the seconds add up to the calls made', async () => {
    const { address } = await listen()
    const { told, leave } = await follow(address)
    await vi.waitFor(() => expect(told.filter(({ event }) => event === 'figures').length).toBeGreaterThan(0), 3000)
    expect(told[0]).toMatchObject({ event: 'status', data: { demo: false, processes: 1 } })
    for (let i = 0; i < 8; i++) await call('203.0.113.1')
    const seconds = () => told.filter(({ event }) => event === 'figures').map(({ data }) => data)
    const sum = (pick: (data: LiveStats) => number) => seconds().reduce((total, data) => total + pick(data), 0)
    await vi.waitFor(() => expect(sum(({ total }) => total.allowed + total.refused)).toBe(8), 4000)
    expect([sum(({ total }) => total.allowed), sum(({ total }) => total.refused)]).toEqual([5, 3])
    expect([sum(({ rules }) => rules.each?.allowed ?? 0), sum(({ rules }) => rules.each?.refused ?? 0)]).toEqual([5, 3])
    expect(Math.max(...seconds().map(({ rules }) => rules.each?.load ?? 0))).toBe(1)
    expect(new Set(seconds().map(({ at }) => at)).size).toBe(seconds().length)
    const reply = await fetch(`${address}/api/v1/figures?seconds=60`)
    const { total } = (await reply.json()) as { total: { refused: number[] } }
    expect(total.refused.reduce((all, one) => all + one, 0)).toBe(3)
    leave()
  })

  it('the live stream reports that the rules have changed', async () => {
    const { address } = await listen()
    const { told, leave } = await follow(address)
    await fetch(`${address}/api/v1/trials`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ rule: 'each', text: 'id: each\nlimit: 1/s' }),
    })
    await vi.waitFor(() => expect(told.map(({ event }) => event)).toContain('rules'))
    leave()
  })
})

describe('a raw request to the admin API', () => {
  const raw = (port: number, text: string) =>
    new Promise<string>((resolve, reject) => {
      let answer = ''
      const socket = connect(port, '127.0.0.1', () => socket.write(text))
      socket.setEncoding('utf8').on('data', piece => {
        answer += piece
      })
      socket.on('close', () => resolve(answer)).on('error', reject)
    })

  it.each([
    ['GET /api/v1/status HTTP/1.0\r\n\r\n', 403],
    ['GET /api/v1/status HTTP/1.0\r\nHost:\r\n\r\n', 403],
    ['GET /api/v1/status HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n', 403],
    ['GET /api/v1/status HTTP/1.1\r\nConnection: close\r\n\r\n', 400],
    ['GET //api/v1/status HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n', 404],
    ['nonsense\r\n\r\n', 400],
  ])('the raw request %j is refused with %i', async (text, status) => {
    const { port } = await listen()
    expect(await raw(port, text)).toMatch(new RegExp(`^HTTP/1\\.[01] ${status} `))
  })
})

describe('the port of the admin API', () => {
  it('the default admin port gives way to another if it is taken, and a configured one is an error', async () => {
    const first = await startAdmin({ limiter })
    const second = await startAdmin({ limiter })
    closing.push(first.close, second.close)
    expect(second.address).not.toBe(first.address)
    const port = Number(new URL(second.address).port)
    await expect(startAdmin({ limiter, port })).rejects.toMatchObject({ code: 'EADDRINUSE' })
  })
})
