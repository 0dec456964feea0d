import { type RedisServer, startRedis } from '@test/servers/redis-server'
import { createLimiter, type Limiter } from 'diana-limiter'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createAdmin } from './server/create-admin.ts'

interface Answer {
  readonly scope: string
  readonly trouble?: string
  readonly from: number
  readonly to: number
  readonly stepMs: number
  readonly series: Record<string, (number | null)[]>
  readonly before: Record<string, (number | null)[]>
  readonly rules: { id: string; allowed: number; refused: number; before: { allowed: number } }[]
  readonly processes: { name: string; allowed: number }[]
}

let server: RedisServer
let closing: (() => Promise<unknown>)[] = []
beforeAll(async () => {
  server = await startRedis()
}, 30_000)
afterAll(() => server.close())
afterEach(async () => {
  for (const close of closing.reverse()) await close()
  closing = []
})

const rules = [{ id: 'each', by: 'ip', limit: '2/m' }] as const

async function start(options: { readonly store?: { redis: string } } = {}): Promise<{
  limiter: Limiter
  ask: (query: string) => Promise<{ status: number; body: Answer }>
}> {
  const limiter = await createLimiter({ rules, ...options })
  const app = await createAdmin({ limiter, host: '127.0.0.1' })
  closing.push(
    () => limiter.close(),
    () => app.close(),
  )
  const ask = async (query: string) => {
    const { statusCode, body } = await app.inject({ url: `/api/v1/history${query}`, headers: { host: '127.0.0.1' } })
    return { status: statusCode, body: JSON.parse(body) as Answer }
  }
  return { limiter, ask }
}

const sum = (numbers: readonly (number | null)[] = []) => numbers.reduce<number>((all, one) => all + (one ?? 0), 0)

describe('the history of the admin API', () => {
  it('the calls of this gateway add up in every range, and the time before its start is not known', async () => {
    const { limiter, ask } = await start()
    // the first look at the counters only reads them
    await expect.poll(async () => (await ask('')).body.series.allowed?.some(count => count !== null)).toBe(true)
    for (let i = 0; i < 5; i++) await limiter.check({ method: 'GET', path: '/', ip: '203.0.113.1' })
    await expect.poll(async () => sum((await ask('?seconds=300')).body.series.allowed)).toBe(2)
    const { body } = await ask('?seconds=300&rule=each')
    expect([body.scope, body.stepMs, body.series.allowed!.length, sum(body.series.refused)]).toEqual([
      'gateway',
      1000,
      300,
      3,
    ])
    expect(body.rules).toMatchObject([{ id: 'each', allowed: 2, refused: 3, before: { allowed: 0 } }])
    expect([body.series.allowed![0], body.before.allowed!.every(count => count === null)]).toEqual([null, true])
    expect(body.to - body.from).toBe(300_000)
    expect((await ask('?seconds=300&rule=none')).body.series.allowed).toContain(0)
    expect((await ask('?scope=fleet')).body).toMatchObject({
      scope: 'gateway',
      trouble: 'Nothing is counted in Redis, so there is no fleet to show.',
    })
  })

  it.each([
    '?seconds=0',
    '?seconds=9',
    '?seconds=604801',
    '?seconds=x',
    '?seconds=1e9',
    '?seconds=-300',
    '?scope=all',
    '?to=-1',
    '?to=x',
    `?process=${'x'.repeat(200)}&scope=process`,
  ])('the question %s is answered with what is wrong with it', async query => {
    const { ask } = await start()
    expect((await ask(query)).status).toBe(400)
  })

  it.each(['?to=0', '?to=9007199254740991', '?seconds=604800&to=1', '?seconds=604800', '?scope=process'])(
    'the question %s about another time has an answer of bounded length',
    async query => {
      const { ask } = await start()
      const { status, body } = await ask(query)
      expect([status, body.series.allowed!.length <= 400]).toEqual([200, true])
      expect(sum(body.series.allowed)).toBe(0)
    },
  )

  it('the fleet is shown if there is one, one process of it on demand, and this gateway if Redis does not answer', async () => {
    const { ask } = await start({ store: { redis: `redis://${server.authority}` } })
    const at = (Math.floor(Date.now() / 300_000) - 3) * 300
    await server.client.hset(`diana:d1:history:300000:${at}`, { t: '7 1 0 0', reach: '7 1 0 0', 'pa:1': '7 1 0 0' })
    const { body } = await ask('?seconds=86400')
    expect([body.scope, sum(body.series.allowed), body.processes[0]?.name]).toEqual(['fleet', 7, 'a:1'])
    expect(sum((await ask('?seconds=86400&scope=process&process=a:1')).body.series.allowed)).toBe(7)
    expect(sum((await ask('?seconds=86400&scope=process&process=b:1')).body.series.allowed)).toBe(0)
    expect(sum((await ask('?seconds=86400&scope=gateway')).body.series.allowed)).toBe(0)
    await server.stop()
    expect((await ask('?seconds=86400')).body).toMatchObject({
      scope: 'gateway',
      // in no words of a client library
      trouble: expect.stringMatching(/^Redis (?:cannot be reached|refuses connections)\.$/),
    })
    await server.start()
  })
})
