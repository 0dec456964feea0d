import { askedWorkers } from '@test/admin/asked-workers'
import { createLimiter, type Limiter } from 'diana-limiter'
import { adminOf } from 'diana-limiter/admin'
import type { TransactionalStore } from 'diana-limiter/store'
import type { FastifyInstance } from 'fastify'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Live, type News } from './live.ts'
import type { Processes } from './processes.ts'
import { createAdmin } from './server/create-admin.ts'
import { watchWorkers } from './watch-workers.ts'

const rules = [
  { id: 'hot', match: { path: '/hot' }, by: 'ip', limit: '1000/s' },
  { id: 'off', limit: '1000/s', lease: 'off' },
] as const
const now = () => 1_000_000

/** The ledgers of all processes. */
const ledgers = new Map<string, string>()
const store: TransactionalStore = {
  async transact(_keys, change) {
    for (const { key, ledger } of change(ledgers)) {
      if (ledger === undefined) ledgers.delete(key)
      else ledgers.set(key, ledger)
    }
  },
}

let limiters: Limiter[]
let processes: Processes
let app: FastifyInstance
beforeAll(async () => {
  const create = () => createLimiter({ rules, store, clock: () => now() / 1000 })
  limiters = await Promise.all([create(), create(), create()])
  const [supervisor, ...workers] = limiters as [Limiter, ...Limiter[]]
  processes = watchWorkers(askedWorkers(supervisor, workers))
  for (const worker of workers) {
    for (let i = 0; i < 40; i++)
      await worker.check({ method: 'GET', path: '/hot', ip: '127.0.0.1' }, { only: true, rule: 'hot' })
  }
  app = await createAdmin({ limiter: supervisor, processes, host: '127.0.0.1', page: '/no-page' })
})
afterAll(async () => {
  await app.close()
  for (const limiter of limiters) await limiter.close()
})

/** What the workers hold together. */
function held(): number {
  const each = limiters.map(limiter => adminOf(limiter).stats().store!.leases.permits)
  expect(each).toEqual([0, expect.any(Number), expect.any(Number)])
  expect(Math.min(each[1]!, each[2]!)).toBeGreaterThan(0)
  return each[1]! + each[2]!
}

async function get(url: string): Promise<string> {
  return (await app.inject({ url, headers: { host: '127.0.0.1:8081' } })).body
}

describe('leases of workers', () => {
  it('the status and the rules of the admin API have the permits of all workers', async () => {
    const status = async () => JSON.parse(await get('/api/v1/status')).store
    await expect.poll(status).toMatchObject({ healthy: true, leases: { keys: 2, permits: held() } })
    const { asked, decidedHere, leases } = await status()
    expect(asked + decidedHere + leases.decided).toBe(80)
    const listed = JSON.parse(await get('/api/v1/rules')).rules
    expect(listed).toMatchObject([
      { id: 'hot', lease: 'auto', leased: held() },
      { id: 'off', lease: 'off', leased: 0 },
    ])
  })

  it('the metrics have the permits of all workers', async () => {
    const text = await get('/metrics')
    expect(text).toContain(`diana_leased_permits{rule="hot"} ${held()}\n`)
    expect(text).toContain('diana_leased_keys 2\n')
  })

  it('an explanation has the permits of the key that all workers hold', async () => {
    const explain = async (ip: string) => {
      const payload = { method: 'GET', path: '/hot', ip }
      const request = { method: 'POST', url: '/api/v1/explain', payload, headers: { host: '127.0.0.1' } } as const
      return (await app.inject(request)).json().rules
    }
    expect(await explain('127.0.0.1')).toMatchObject([{ rule: 'hot', leased: held() }, { rule: 'off' }])
    for (const rule of await explain('127.0.0.2')) expect(rule).not.toHaveProperty('leased')
  })

  it('the live figures have the permits of each rule, and changed counts alone are no new status', async () => {
    let asked = 0
    const statusOf = () => ({ store: { healthy: true, asked: ++asked } })
    const live = new Live(processes, limiters[0]!, statusOf)
    const news: News[] = []
    live.follow(one => news.push(one))
    await expect.poll(() => news.map(({ event }) => event)).toEqual(['status', 'figures', 'status', 'figures'])
    live.close()
    const figures = news.at(-1)!.data as { rules: object; store: object }
    expect(figures.rules).toEqual({ hot: expect.objectContaining({ allowed: 0, waiting: 0, leased: held() }) })
    expect(figures.store).toMatchObject({ asked: 0, leases: { keys: 2, permits: held(), decided: 0 } })
  })
})
