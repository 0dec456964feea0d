import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createClient, type PacedFetch } from './client.ts'

beforeEach(() => {
  vi.useFakeTimers({ now: Date.UTC(2026, 0, 1), toFake: ['setTimeout', 'clearTimeout', 'Date'] })
})
afterEach(() => {
  vi.useRealTimers()
})

interface Seen {
  readonly atMs: number
  readonly method: string
}

const URL_OF_API = 'https://api.example/items'

/** A client of a server that gives these answers in turn, the last one again and again. */
function clientOf(answers: readonly (() => Response)[], options: Parameters<typeof createClient>[0] = {}) {
  const begin = Date.now()
  const seen: Seen[] = []
  const fetch = async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
    seen.push({ atMs: Date.now() - begin, method: init?.method ?? (input instanceof Request ? input.method : 'GET') })
    return answers[Math.min(seen.length, answers.length) - 1]!()
  }
  const client = createClient({
    fetch: fetch as typeof globalThis.fetch,
    clock: Date.now,
    random: () => 0.5,
    ...options,
  })
  return { client, seen }
}

const ok =
  (headers: Record<string, string> = {}) =>
  () =>
    new Response('ok', { headers })
const refused =
  (headers: Record<string, string> = {}, status = 429) =>
  () =>
    new Response('no', { status, headers })

async function ended<T>(work: Promise<T>, ms = 7_200_000): Promise<T> {
  work.catch(() => {})
  await vi.advanceTimersByTimeAsync(ms)
  return await work
}

describe('a refused call', () => {
  it('a refused call is sent again when the server says, and not before', async () => {
    const { client, seen } = clientOf([refused({ 'retry-after': '7' }), ok()])
    expect((await ended(client(URL_OF_API, { method: 'POST', body: 'x' }))).status).toBe(200)
    expect(seen).toHaveLength(2)
    expect(seen[1]!.atMs).toBeGreaterThanOrEqual(7000)
    expect(seen[1]!.atMs).toBeLessThan(8000)
    expect(seen[1]!.method).toBe('POST')
  })

  it('calls that were not sent yet wait for it, too', async () => {
    const { client, seen } = clientOf([refused({ 'retry-after': '7' }), ok()])
    await ended(Promise.all([client(URL_OF_API), client(URL_OF_API), client(URL_OF_API)]))
    expect(seen.slice(1).every(({ atMs }) => atMs >= 7000)).toBe(true)
  })

  it('a server that refuses everything is asked a bounded number of times', async () => {
    const { client, seen } = clientOf([refused({ 'retry-after': '1' })])
    const calls = Array.from({ length: 100 }, () => client(URL_OF_API))
    const answers = await ended(Promise.all(calls))
    expect(answers.every(({ status }) => status === 429)).toBe(true)
    expect(seen.length).toBeLessThanOrEqual(100 + 3 + 10)
  })

  it('a body that is a stream is not sent again', async () => {
    const { client, seen } = clientOf([refused({ 'retry-after': '1' }), ok()])
    const body = new ReadableStream({ start: controller => controller.close() })
    expect((await ended(client(URL_OF_API, { method: 'POST', body }))).status).toBe(429)
    expect(seen).toHaveLength(1)
  })

  it('a 503 is sent again only if the server says when', async () => {
    const down = clientOf([refused({}, 503), ok()])
    expect((await ended(down.client(URL_OF_API))).status).toBe(503)
    const busy = clientOf([refused({ 'retry-after': '1' }, 503), ok()])
    expect((await ended(busy.client(URL_OF_API))).status).toBe(200)
  })
})

describe('time', () => {
  it('a call whose deadline comes first rejects, and one that could only be late gets the refusal', async () => {
    const full = { 'ratelimit-limit': '1', 'ratelimit-remaining': '0', 'ratelimit-reset': '60' }
    const { client, seen } = clientOf([ok(full)])
    await ended(client(URL_OF_API), 10)
    await expect(ended(client(URL_OF_API, { deadline: '5s' }), 5000)).rejects.toMatchObject({ code: 'LIMITED' })
    expect(seen).toHaveLength(1)
    const other = clientOf([refused({ 'retry-after': '60' })])
    expect((await ended(other.client(URL_OF_API, { deadline: '5s' }), 10)).status).toBe(429)
  })

  it.each([
    ['a reset in 300 years', { 'ratelimit-limit': '5', 'ratelimit-remaining': '0', 'ratelimit-reset': '9999999999' }],
    ['a huge Retry-After', { 'retry-after': '999999999999' }],
    ['a Retry-After in the year 9999', { 'retry-after': 'Fri, 31 Dec 9999 23:59:59 GMT' }],
  ])('no server makes a call wait for longer than maxWait: %s', async (_name, headers) => {
    const { client, seen } = clientOf([refused(headers), ok()], { maxWait: '10s' })
    expect((await ended(client(URL_OF_API), 30_000)).status).toBe(200)
    expect(seen).toHaveLength(2)
  })

  it.each([
    ['a Retry-After in the past', { 'retry-after': 'Sun, 06 Nov 1994 08:49:37 GMT' }],
    ['a negative Retry-After', { 'retry-after': '-5' }],
    [
      'numbers that contradict each other',
      { ratelimit: '"a";r=-3;t=-9, "a";r=7;t=1', 'ratelimit-policy': '"a";q=0;w=0' },
    ],
  ])('hostile numbers neither stop a client nor make it loop: %s', async (_name, headers) => {
    const { client, seen } = clientOf([refused(headers), ok(headers)])
    expect((await ended(client(URL_OF_API), 60_000)).status).toBe(200)
    expect(seen).toHaveLength(2)
  })

  it('a signal ends the wait, and the call is not sent', async () => {
    const full = { 'ratelimit-limit': '1', 'ratelimit-remaining': '0', 'ratelimit-reset': '60' }
    const { client, seen } = clientOf([ok(full)])
    await ended(client(URL_OF_API), 10)
    const leaving = new AbortController()
    const waiting = client(URL_OF_API, { signal: leaving.signal })
    leaving.abort('left')
    await expect(waiting).rejects.toBe('left')
    expect(seen).toHaveLength(1)
  })
})

describe('what is limited together', () => {
  it('a limit of one origin holds back no other origin', async () => {
    const full = { 'ratelimit-limit': '1', 'ratelimit-remaining': '0', 'ratelimit-reset': '60' }
    const { client, seen } = clientOf([ok(full), ok(), ok()])
    await ended(client(URL_OF_API), 10)
    const held = client(URL_OF_API)
    await ended(client('https://other.example/'), 10)
    expect(seen).toHaveLength(2)
    expect(client.limits(URL_OF_API)).toEqual([{ name: '', limit: 1, remaining: 0, resetMs: expect.any(Number) }])
    await ended(held)
  })

  it('calls of a higher priority are sent first', async () => {
    const order: string[] = []
    const full = { 'ratelimit-limit': '1', 'ratelimit-remaining': '0', 'ratelimit-reset': '1' }
    const { client } = clientOf([ok(full)])
    await ended(client(URL_OF_API), 10)
    const call = (name: string, priority: number) => client(URL_OF_API, { priority }).then(() => order.push(name))
    await ended(Promise.all([call('low', 0), call('high', 1)]))
    expect(order).toEqual(['high', 'low'])
  })

  it('until a server has answered, one call is sent to it', async () => {
    let answer: (response: Response) => void = () => {}
    let sent = 0
    const fetch = (): Promise<Response> => {
      sent++
      return sent === 1 ? new Promise(resolve => (answer = resolve)) : Promise.resolve(new Response('ok'))
    }
    const client: PacedFetch = createClient({ fetch, clock: Date.now })
    const calls = [1, 2, 3].map(() => client(URL_OF_API))
    expect(sent).toBe(1)
    answer(new Response('ok'))
    await ended(Promise.all(calls))
    expect(sent).toBe(3)
  })

  it('close rejects the calls that wait, and drain waits for all', async () => {
    const { client } = clientOf([refused({ 'retry-after': '60' })], { retries: 0 })
    await ended(client(URL_OF_API), 10)
    const waiting = client(URL_OF_API)
    await client.close()
    await expect(waiting).rejects.toMatchObject({ code: 'CLOSED' })
    await client.drain()
  })
})

it('invalid options throw with a remedy', () => {
  expect(() => createClient({ concurrency: 0 })).toThrow('concurrency must be a whole number of 1 or more')
  expect(() => createClient({ retries: -1 })).toThrow('retries must be')
  expect(() => createClient({ maxWait: 'soon' })).toThrow('maxWait must be a duration')
  expect(() => createClient({ store: { redis: 'redis://127.0.0.1' } })).toThrow('needs a name')
})
