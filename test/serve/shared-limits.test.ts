import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { serveProgram } from '../../packages/gateway/src/process/serve-program.ts'
import type { ServerProcess } from '../../packages/gateway/src/process/server-program.ts'
import { GatewayRig } from '../helpers/gateway-rig.ts'
import { startRedis } from '../helpers/servers/redis-server.ts'
import { type EnvoyClient, envoyClient } from './envoy-client.ts'

const rig = new GatewayRig()
const servers: ServerProcess[] = []
let envoy: EnvoyClient
let gateway: string
let document: object

beforeAll(async () => {
  const redis = await startRedis()
  rig.later(() => redis.close())
  document = {
    store: { redis: `redis://${redis.authority}`, timeout: '2s' },
    trustProxy: ['127.0.0.0/8'],
    answer: { status: 429 },
    rules: [
      { id: 'all', match: { header: { 'x-part': 'load' } }, limit: '150/h' },
      { id: 'domain', match: { attribute: { domain: 'load' } }, limit: '150/h' },
      { id: 'user', match: { attribute: { domain: 'pair' } }, by: 'attribute:user', limit: '2/h', lease: 'off' },
    ],
    serve: { deadline: '2s' },
  }
  for (let count = 0; count < 2; count++) {
    const config = join(rig.folder(), 'diana.yaml')
    writeFileSync(config, stringify(document))
    const server = await serveProgram.start({ config, port: 0, grpcPort: 0 })
    rig.later(() => server.close())
    servers.push(server)
  }
  envoy = envoyClient(servers[1]!.also!.grpc!)
  rig.later(() => envoy.close())
  const service = await rig.serve()
  gateway = (await rig.guard({ ...document, gateway: { routes: [{ to: service.url }] } })).url
})
afterAll(() => rig.close())

const headers = { 'x-part': 'load' }

/** Asks one after the other until nothing passes any more; says how often it did. */
async function passes(ask: () => Promise<boolean>): Promise<number> {
  let passed = 0
  let refusals = 0
  while (refusals < 5) {
    if (await ask()) passed++
    else refusals++
  }
  return passed
}

describe('decision servers and a gateway on one Redis', () => {
  it('two decision servers and a gateway share one limit exactly', async () => {
    const through = async () => (await fetch(`${gateway}/`, { headers })).status === 200
    const original = { 'x-forwarded-method': 'GET', 'x-forwarded-uri': '/' }
    const asking = servers.map(({ address }) => async () => {
      const { status } = await fetch(`${address}/check`, { headers: { ...headers, ...original } })
      return status === 200
    })
    const callers = [through, ...asking].flatMap(ask => [passes(ask), passes(ask)])
    const counts = await Promise.all(callers)
    expect(counts.reduce((sum, count) => sum + count)).toBe(150)
    expect(Math.min(counts[0]!, counts[2]!, counts[4]!)).toBeGreaterThan(0)
  })

  it('questions over gRPC and by JSON share one limit exactly', async () => {
    const entries = [{ key: 'x', value: 'y' }]
    const limit = async () => (await envoy.limit({ domain: 'load', descriptors: [{ entries }] })).overall_code === 'OK'
    const body = JSON.stringify({ attributes: { domain: 'load' } })
    const check = async () => {
      const type = { 'content-type': 'application/json' }
      const answer = await fetch(`${servers[0]!.address}/v1/check`, { method: 'POST', body, headers: type })
      return ((await answer.json()) as { allowed: boolean }).allowed
    }
    const counts = await Promise.all([passes(limit), passes(limit), passes(check), passes(check)])
    expect(counts.reduce((sum, count) => sum + count)).toBe(150)
  })

  it('descriptors that are counted in Redis are decided together', async () => {
    const ask = (...names: string[]) =>
      envoy.limit({ domain: 'pair', descriptors: names.map(value => ({ entries: [{ key: 'user', value }] })) })
    expect((await ask('full', 'other')).overall_code).toBe('OK')
    expect((await ask('full')).overall_code).toBe('OK')
    for (let call = 0; call < 3; call++) {
      const refused = await ask('other', 'full')
      expect(refused).toMatchObject({ overall_code: 'OVER_LIMIT', statuses: [{ code: 'OK' }, { code: 'OVER_LIMIT' }] })
    }
    expect(await ask('other')).toMatchObject({ overall_code: 'OK', statuses: [{ limit_remaining: 0 }] })
    expect((await ask('other')).overall_code).toBe('OVER_LIMIT')
  })
})
