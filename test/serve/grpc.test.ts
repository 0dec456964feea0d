import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { serveProgram } from '../../packages/gateway/src/process/serve-program.ts'
import type { ServerProcess } from '../../packages/gateway/src/process/server-program.ts'
import { GatewayRig } from '../helpers/gateway-rig.ts'
import { type EnvoyClient, envoyClient } from './envoy-client.ts'

const rig = new GatewayRig()
let server: ServerProcess
let envoy: EnvoyClient

const perUser = { match: { attribute: { user: '*' } }, by: ['attribute:domain', 'attribute:user'] }
const document = {
  answer: { status: 429 },
  rules: [
    { id: 'user', ...perUser, limit: '2/m' },
    { id: 'ten-seconds', match: { attribute: { domain: 'odd' } }, limit: '5/10s' },
    { id: 'trial', match: { attribute: { domain: 'trial' } }, limit: '1/d', whenFull: 'shadow' },
    {
      id: 'wait',
      match: { attribute: { domain: 'wait' } },
      limit: '1/s',
      algorithm: 'leaky-bucket',
      burst: 5,
      whenFull: 'wait',
    },
    { id: 'path', match: { path: ['/shop/**', '/python'] }, by: ['ip', 'resource'], limit: '2/h' },
    { id: 'plan', match: { attribute: { plan: 'free' } }, limit: '1/h' },
  ],
  deny: { 'header:x-evil': ['yes'] },
}

beforeAll(async () => {
  const config = join(rig.folder(), 'diana.yaml')
  writeFileSync(config, stringify(document))
  server = await serveProgram.start({ config, port: 0, grpcPort: 0 })
  rig.later(() => server.close())
  envoy = envoyClient(server.also!.grpc!)
  rig.later(() => envoy.close())
})
afterAll(() => rig.close())

const user = (name: string) => ({ entries: [{ key: 'user', value: name }] })
const headersOf = (list: readonly { key: string; value: string }[]) =>
  Object.fromEntries(list.map(({ key, value }) => [key, value]))

describe('the rate limit service, asked with the proto files of Envoy', () => {
  it('each descriptor gets a status with its limit, what is left and when it is full again', async () => {
    const question = { domain: 'a', descriptors: [user('ann'), { entries: [{ key: 'other', value: 'x' }] }] }
    const first = await envoy.limit(question)
    expect(first).toMatchObject({
      overall_code: 'OK',
      statuses: [
        {
          code: 'OK',
          current_limit: { requests_per_unit: 2, unit: 'MINUTE', name: 'user' },
          limit_remaining: 1,
        },
        { code: 'OK', current_limit: null, limit_remaining: 0, duration_until_reset: null },
      ],
      dynamic_metadata: null,
    })
    expect(headersOf(first.response_headers_to_add!)).toEqual({
      RateLimit: expect.stringMatching(/^"user";r=1;t=\d+$/),
      'RateLimit-Policy': '"user";q=2;w=60',
    })
    await envoy.limit(question)
    const refused = (await envoy.limit(question)) as unknown as {
      statuses: readonly { duration_until_reset: { seconds: number } }[]
      response_headers_to_add: never
    }
    expect(refused).toMatchObject({
      overall_code: 'OVER_LIMIT',
      statuses: [{ code: 'OVER_LIMIT', limit_remaining: 0 }, { code: 'OK' }],
      dynamic_metadata: {
        fields: {
          rule: { kind: 'stringValue', stringValue: 'user' },
          reason: { stringValue: 'limit' },
          retryAfterMs: { kind: 'numberValue' },
        },
      },
    })
    expect(refused.statuses[0]!.duration_until_reset.seconds).toBeGreaterThan(50)
    expect(headersOf(refused.response_headers_to_add)).toMatchObject({ 'Retry-After': expect.stringMatching(/^\d+$/) })
  })

  it('a refused request counts nothing for its other descriptors', async () => {
    const ask = (...names: string[]) => envoy.limit({ domain: 'b', descriptors: names.map(user) })
    await ask('full')
    await ask('full')
    for (let call = 0; call < 5; call++) expect((await ask('other', 'full')).overall_code).toBe('OVER_LIMIT')
    expect(await ask('other')).toMatchObject({ statuses: [{ code: 'OK', limit_remaining: 1 }] })
  })

  it('a request with hits counts as many, and one with a limit of its own is held to that', async () => {
    expect(await envoy.limit({ domain: 'c', hits_addend: 2, descriptors: [user('ann')] })).toMatchObject({
      statuses: [{ code: 'OK', limit_remaining: 0 }],
    })
    const own = { ...user('bob'), limit: { requests_per_unit: 3, unit: 'DAY' } }
    const codes: unknown[] = []
    for (let call = 0; call < 4; call++)
      codes.push((await envoy.limit({ domain: 'c', descriptors: [own] })).overall_code)
    expect(codes).toEqual(['OK', 'OK', 'OK', 'OVER_LIMIT'])
    expect(await envoy.limit({ domain: 'c', descriptors: [{ ...own, ...user('cid') }] })).toMatchObject({
      statuses: [{ code: 'OK', current_limit: { requests_per_unit: 3, unit: 'DAY' }, limit_remaining: 2 }],
    })
  })

  it('a limit in shadow refuses nothing, and the metadata names it', async () => {
    const ask = () => envoy.limit({ domain: 'trial', descriptors: [{ entries: [{ key: 'x', value: 'y' }] }] })
    await ask()
    expect(await ask()).toMatchObject({
      overall_code: 'OK',
      statuses: [{ code: 'OK', current_limit: null }],
      dynamic_metadata: { fields: { shadow: { listValue: { values: [{ stringValue: 'trial' }] } } } },
    })
  })

  it('a period that Envoy has no unit for stands in the name of the limit', async () => {
    const ask = await envoy.limit({ domain: 'odd', descriptors: [{ entries: [{ key: 'x', value: 'y' }] }] })
    expect(ask).toMatchObject({
      statuses: [{ current_limit: { requests_per_unit: 5, unit: 'UNKNOWN', name: 'ten-seconds (5 in 10 s)' } }],
    })
  })

  it('a call that would wait for longer than Envoy does is refused within 20 ms', async () => {
    const ask = () => envoy.limit({ domain: 'wait', descriptors: [{ entries: [{ key: 'x', value: 'y' }] }] })
    expect((await ask()).overall_code).toBe('OK')
    const before = performance.now()
    expect((await ask()).overall_code).toBe('OVER_LIMIT')
    // with the time that this busy process needs for both sides
    expect(performance.now() - before).toBeLessThan(500)
  })

  it('questions that make no sense get a status that says why', async () => {
    await expect(envoy.limit({ domain: '', descriptors: [user('ann')] })).rejects.toThrow('3 INVALID_ARGUMENT')
    await expect(envoy.limit({ domain: 'a', descriptors: [] })).rejects.toThrow('no descriptors')
    const many = Array.from({ length: 65 }, () => user('ann'))
    await expect(envoy.limit({ domain: 'a', descriptors: many })).rejects.toThrow('at most 64')
    await expect(envoy.limit({ domain: 'x'.repeat(4_300_000), descriptors: [user('ann')] })).rejects.toThrow(
      '8 RESOURCE_EXHAUSTED',
    )
  })
})

describe('external authorization, asked with the proto files of Envoy', () => {
  const request = (path: string, more: object = {}, context: object = {}) => ({
    attributes: {
      source: { address: { socket_address: { address: '203.0.113.9', port_value: 4711 } } },
      request: { http: { method: 'GET', path, host: 'shop.example', headers: { accept: '*/*' }, ...more } },
      context_extensions: context,
    },
  })

  it('an allowed call gets headers to add, and a refused one the status, headers and body to answer with', async () => {
    const allowed = await envoy.check(request('/shop/a?b=c'))
    expect(allowed).toMatchObject({ status: { code: 0 }, http_response: 'ok_response' })
    const { response_headers_to_add: added } = allowed.ok_response as unknown as { response_headers_to_add: never[] }
    expect(added.map(({ header }) => header)).toMatchObject([
      { key: 'RateLimit-Policy', value: '"path";q=2;w=3600' },
      { key: 'RateLimit', value: expect.stringMatching(/^"path";r=1/) },
    ])
    // the same path in another spelling
    await envoy.check(request('//Shop/./%61'))
    const denied = await envoy.check(request('/shop/a'))
    expect(denied).toMatchObject({
      status: { code: 8 },
      http_response: 'denied_response',
      denied_response: { status: { code: 'TooManyRequests' } },
      dynamic_metadata: { fields: { rule: { stringValue: 'path' } } },
    })
    const { headers, body } = denied.denied_response as unknown as { headers: never[]; body: string }
    expect(headers.map(({ header }) => (header as { key: string }).key)).toContain('Retry-After')
    expect(JSON.parse(body)).toMatchObject({ status: 429, rule: 'path' })
  })

  it('callers on a list are denied, and targets that cannot be read are refused', async () => {
    expect(await envoy.check(request('/', { headers: { 'x-evil': 'yes' } }))).toMatchObject({
      status: { code: 7 },
      denied_response: { status: { code: 'Forbidden' } },
    })
    expect(await envoy.check(request('/a%zz'))).toMatchObject({ denied_response: { status: { code: 'BadRequest' } } })
  })

  it('values that the configuration of Envoy adds are attributes of the call', async () => {
    const ask = () => envoy.check(request('/', {}, { plan: 'free' }))
    expect(await ask()).toMatchObject({ status: { code: 0 } })
    expect(await ask()).toMatchObject({ status: { code: 8 } })
    expect(await envoy.check(request('/', {}, { plan: 'paid' }))).toMatchObject({ status: { code: 0 } })
  })
})

describe("gRPC's own library for Python", () => {
  it('a client that knows only what reflection reports gets the same answers', async () => {
    const client = fileURLToPath(new URL('./client.py', import.meta.url))
    // the server is in this process, which must not stand still meanwhile
    const { stdout } = await promisify(execFile)('/usr/bin/python3', [client, server.also!.grpc!], { timeout: 30_000 })
    const answers = JSON.parse(stdout)
    const services = ['envoy.service.auth.v3.Authorization', 'envoy.service.ratelimit.v3.RateLimitService']
    expect(answers.listed.v1).toEqual(expect.arrayContaining([...services, 'grpc.health.v1.Health']))
    expect(answers.listed.v1alpha).toEqual(answers.listed.v1)
    expect(answers.health).toMatchObject([{ status: 'SERVING' }, { status: 'SERVING' }, { status: 'NOT_FOUND' }])
    const currentLimit = { requestsPerUnit: 2, unit: 'MINUTE', name: 'user' }
    expect(answers.limited).toMatchObject([
      { overallCode: 'OK', statuses: [{ code: 'OK', currentLimit, limitRemaining: 1, durationUntilReset: '60s' }] },
      { overallCode: 'OK' },
      {
        overallCode: 'OVER_LIMIT',
        statuses: [{ code: 'OVER_LIMIT', durationUntilReset: expect.stringMatching(/^5\d(\.\d+)?s$/) }],
        responseHeadersToAdd: [{ key: 'RateLimit-Policy' }, { key: 'RateLimit' }, { key: 'Retry-After' }],
        dynamicMetadata: { rule: 'user', reason: 'limit' },
      },
    ])
    expect(answers.together.statuses).toMatchObject([{ code: 'OK', limitRemaining: 2 }, { code: 'OVER_LIMIT' }])
    expect(answers.kept.statuses).toMatchObject([{ code: 'OK', limitRemaining: 1 }])
    for (const { statuses } of [answers.hits, answers.ownHits]) {
      expect(statuses).toMatchObject([{ code: 'OK', currentLimit }])
      expect(statuses[0].limitRemaining ?? 0).toBe(0)
    }
    for (const asked of answers.onlyAsked) expect(asked.statuses).toMatchObject([{ code: 'OK', limitRemaining: 2 }])
    expect(answers.override).toMatchObject([
      { overallCode: 'OK', statuses: [{ currentLimit: { requestsPerUnit: 1, unit: 'HOUR' } }] },
      { overallCode: 'OVER_LIMIT' },
    ])
    expect(answers.empty).toEqual({ status: 'INVALID_ARGUMENT', details: 'the request names no domain' })
    expect(answers.checked).toMatchObject([
      { status: {}, okResponse: { responseHeadersToAdd: [{ header: { key: 'RateLimit-Policy' } }, {}] } },
      { status: {}, okResponse: {} },
      { status: { code: 8 }, deniedResponse: { status: { code: 429 } }, dynamicMetadata: { rule: 'path' } },
    ])
    expect(answers.bad).toMatchObject({ deniedResponse: { status: { code: 400 } } })
  })
})
