import { askedWorkers } from '@test/admin/asked-workers'
import { createLimiter, type Limiter, type Verdict } from 'diana-limiter'
import type { FastifyInstance } from 'fastify'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createAdmin } from './server/create-admin.ts'
import { watchWorkers } from './watch-workers.ts'

const rules = [{ id: 'backend', algorithm: 'adaptive', limit: 50 }] as const
// thresholds that are never reached
const calm = { callWait: '1h', eventLoopDelay: '1h', eventLoopUtilization: 1 }
const call = { method: 'GET', path: '/', ip: '127.0.0.1' }

let limiters: Limiter[]
let app: FastifyInstance
beforeAll(async () => {
  const time = { ms: 1_000_000 }
  const create = () => createLimiter({ rules, overload: calm, clock: () => time.ms })
  limiters = await Promise.all([create(), create(), create()])
  const [supervisor, ...workers] = limiters as [Limiter, ...Limiter[]]
  for (let turn = 0; turn < 200; turn++) {
    const verdicts = workers.flatMap(worker => Array.from({ length: 4 }, () => worker.decide(call) as Verdict))
    time.ms += 10
    for (const verdict of verdicts) verdict.end({ status: 200 })
  }
  // still in flight
  for (const worker of workers) for (let i = 0; i < 3; i++) await worker.check(call)
  const processes = watchWorkers(askedWorkers(supervisor, workers))
  app = await createAdmin({ limiter: supervisor, processes, host: '127.0.0.1', page: '/no-page' })
})
afterAll(async () => {
  await app.close()
  for (const limiter of limiters) await limiter.close()
})

async function get(url: string): Promise<string> {
  return (await app.inject({ url, headers: { host: '127.0.0.1:8081' } })).body
}
const ofWorkers = () => limiters.slice(1).map(limiter => limiter.status().rules[0]!.estimate!)

describe('overload protection of workers', () => {
  it('the rules of the admin API have what all workers have found together', async () => {
    const [one, other] = ofWorkers()
    // both had the same calls
    expect(one).toEqual(other)
    const estimate = async () => JSON.parse(await get('/api/v1/rules')).rules[0].estimate
    const { limit, perSecond, baseMs, latencyMs } = one!
    await expect
      .poll(estimate)
      .toEqual({ limit: 2 * limit, inFlight: 6, perSecond: 2 * perSecond, baseMs, latencyMs, limiting: false })
  })

  it('an explanation has what all workers have found for the keys of the call', async () => {
    const payload = { method: 'GET', path: '/', ip: '127.0.0.1' }
    const headers = { host: '127.0.0.1:8081' }
    const { body } = await app.inject({ method: 'POST', url: '/api/v1/explain', payload, headers })
    const { limit, latencyMs } = ofWorkers()[0]!
    expect(JSON.parse(body).rules[0].estimate).toMatchObject({ limit: 2 * limit, inFlight: 6, latencyMs })
  })

  it('the history of the admin API has limit, calls in flight and latency, and what was shed by level', async () => {
    const read = async () => JSON.parse(await get('/api/v1/figures?seconds=5'))
    await expect.poll(async () => (await read()).adaptive.backend?.inFlight.at(-1)).toBe(6)
    const { adaptive, overload } = await read()
    expect(adaptive.backend.latencyMs.at(-1)).toBe(ofWorkers()[0]!.latencyMs)
    expect(overload.share.at(-1)).toBe(1)
    expect(overload.shed.default.at(-1)).toBe(0)
  })

  it('the status of the admin API has the load and the share of the workers', async () => {
    const status = async () => JSON.parse(await get('/api/v1/status')).overload
    expect(await status()).toMatchObject({ share: 1, shed: { default: 0 } })
  })

  it('the metrics have the limit, the calls in flight and the shed calls of all workers', async () => {
    const text = await get('/metrics')
    expect(text).toContain('diana_adaptive_in_flight{rule="backend"} 6\n')
    expect(text).toContain('diana_overload_share 1\n')
    expect(text).toContain('diana_overload_shed_total{level="default"} 0\n')
  })
})
