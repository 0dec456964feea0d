import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { request as httpRequest, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import type { Limiter } from 'diana-limiter'
import { afterEach, describe, expect, test } from 'vitest'
// @ts-expect-error: an example in JavaScript
import { createLlmServer } from '../../examples/llm/server.mjs'
import { engineOf } from '../../packages/limiter/src/engine/engine-of.ts'
import { GatewayRig } from '../helpers/gateway-rig.ts'

const rig = new GatewayRig()
afterEach(() => rig.close())

const tokens = {
  id: 'tokens',
  limit: '100000/h',
  cost: {
    reserve: { from: 'json:max_tokens', plus: 'bytes/4', min: 10, max: 5000 },
    settle: ['openai', 'anthropic', 'header:x-used'],
  },
}

async function guardLlm(gateway: object = {}, rules: readonly object[] = [tokens]) {
  const to = await rig.listen(createLlmServer())
  const log = join(rig.folder(), 'access.log')
  const guarded = await rig.guard({
    rules,
    gateway: { routes: [{ to, timeouts: { headers: '300ms' } }], accessLog: { to: log }, ...gateway },
  })
  return { ...guarded, to, log }
}

const leftOf = async (limiter: Limiter) =>
  (await limiter.peek({ method: 'POST', path: '/v1/chat/completions' }, { cost: 0 })).decisions[0]!.remaining

const settledOf = (limiter: Limiter) => engineOf(limiter).stats().rules[0]!.settled

interface Asked {
  readonly path?: string
  readonly body: object | Buffer
  readonly headers?: OutgoingHttpHeaders
}

async function ask(
  url: string,
  { path = '/v1/chat/completions', body, headers = {} }: Asked,
): Promise<IncomingMessage> {
  const bytes = Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body))
  const request = httpRequest(new URL(path, url), {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'content-length': bytes.length, ...headers },
    agent: false,
  })
  request.on('error', () => {}).end(bytes)
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  return response
}

async function bodyOf(response: IncomingMessage): Promise<Buffer> {
  return Buffer.concat(await response.toArray())
}

const poll = (value: () => unknown) => expect.poll(value, { timeout: 5000, interval: 5 })

describe('a gateway in front of an LLM API', () => {
  test.each([
    ['/v1/chat/completions', true, {}],
    ['/v1/chat/completions', false, {}],
    ['/v1/messages', true, {}],
    ['/v1/messages', false, {}],
    ['/v1/chat/completions', true, { compression: true }],
  ])('%s, stream %s, %j: bytes pass unchanged, and the usage is charged', async (path, stream, gateway) => {
    const { url, to, limiter, log } = await guardLlm(gateway)
    const body = { max_tokens: 2000, stream, prompt: 'é'.repeat(40_000), use: 1500 }
    const direct = await bodyOf(await ask(to, { path, body }))
    const through = await bodyOf(await ask(url, { path, body }))
    expect(through.equals(direct)).toBe(true)
    const used = Math.ceil(Buffer.byteLength(JSON.stringify(body)) / 4) + 1500
    await poll(() => leftOf(limiter)).toBe(100_000 - used)
    expect(settledOf(limiter)).toEqual({ usage: 1, header: 0, estimate: 0, none: 0, bounded: 0 })
    await poll(() => readFileSync(log, 'utf8')).toContain(
      `"costs":{"tokens":{"reserved":5000,"settled":${used},"by":"usage"}}`,
    )
  })

  test('a body longer than the part that is read passes whole, also in chunks and after 100 Continue', async () => {
    const seen: Buffer[] = []
    const service = await rig.serve(async (request, response) => {
      seen.push(Buffer.concat(await request.toArray()))
      response.setHeader('x-used', '5').end('done')
    })
    const { url, limiter } = await rig.guard({ rules: [tokens], gateway: { routes: [{ to: service.url }] } })
    const body = Buffer.from(JSON.stringify({ max_tokens: 10, prompt: '漢'.repeat(200_000) }))
    const request = httpRequest(new URL('/v1/x', url), {
      method: 'POST',
      headers: { 'transfer-encoding': 'chunked' },
      agent: false,
    })
    for (let at = 0; at < body.length; at += 7001) request.write(body.subarray(at, at + 7001))
    request.end()
    await once(request, 'response')
    await bodyOf(await ask(url, { body, headers: { expect: '100-continue' } }))
    expect(seen.map(one => one.equals(body))).toEqual([true, true])
    await poll(() => leftOf(limiter)).toBe(99_990)
  })

  test.each<[string, object, number, string]>([
    ['an error of the service is free', { headers: { 'x-behave': 'error' } }, 0, 'none'],
    ['a service that does not answer in time is free', { headers: { 'x-behave': 'hang' } }, 0, 'none'],
    ['a service that breaks its stream off is free', { headers: { 'x-behave': 'break' } }, 0, 'none'],
    ['a stream without usage costs the estimate', { headers: { 'x-behave': 'silent' } }, 508, 'estimate'],
    [
      'a body that is no JSON is refused by the service, and free',
      { body: Buffer.from('{"max_tokens":500') },
      0,
      'none',
    ],
  ])('%s', async (_title, asked, cost, by) => {
    const { url, limiter } = await guardLlm()
    const body = { max_tokens: 500, stream: true }
    await bodyOf(await ask(url, { body, ...asked })).catch(() => {})
    await poll(() => settledOf(limiter)?.[by as 'none']).toBe(1)
    expect(await leftOf(limiter)).toBe(100_000 - cost)
  })

  test('a service that cannot be reached is free', async () => {
    const { url, limiter } = await rig.guard({ rules: [tokens], gateway: { routes: [{ to: 'http://127.0.0.1:1' }] } })
    expect((await ask(url, { body: { max_tokens: 500 } })).statusCode).toBe(502)
    await poll(() => settledOf(limiter)?.none).toBe(1)
    expect(await leftOf(limiter)).toBe(100_000)
  })

  test('a caller who leaves in the middle of a stream is charged the estimate', async () => {
    const { url, limiter } = await guardLlm()
    const response = await ask(url, { body: { max_tokens: 500, stream: true }, headers: { 'x-behave': 'slow' } })
    await once(response, 'data')
    expect(await leftOf(limiter)).toBe(100_000 - 508)
    response.destroy()
    await poll(() => settledOf(limiter)?.estimate).toBe(1)
    expect(await leftOf(limiter)).toBe(100_000 - 508)
  })

  test('an encoded answer is read if it is short, and else settled by a header or the estimate', async () => {
    const usage = (total: number) => JSON.stringify({ usage: { prompt_tokens: 0, completion_tokens: total } })
    const noise = Buffer.from(Array.from({ length: 200_000 }, () => Math.floor(Math.random() * 256)))
    const service = await rig.serve((request, response) => {
      response.setHeader('content-encoding', 'gzip')
      if (request.url === '/short') response.end(gzipSync(usage(7)))
      else if (request.url === '/long') response.end(gzipSync(noise))
      else response.setHeader('x-used', '9').end(gzipSync(noise))
    })
    const { url, limiter } = await rig.guard({ rules: [tokens], gateway: { routes: [{ to: service.url }] } })
    for (const path of ['/short', '/long', '/header']) await bodyOf(await ask(url, { path, body: { max_tokens: 500 } }))
    await poll(() => settledOf(limiter)).toEqual({ usage: 1, header: 1, estimate: 1, none: 0, bounded: 0 })
    expect(await leftOf(limiter)).toBe(100_000 - 7 - 9 - 505)
  })

  test('a request over the budget is refused before the service sees it, with its body unread', async () => {
    const { url, to } = await guardLlm({}, [{ ...tokens, limit: '600/h', answer: { status: 429 } }])
    expect((await ask(url, { body: { max_tokens: 500 } })).statusCode).toBe(200)
    const refused = await ask(url, { body: { max_tokens: 500, prompt: 'x'.repeat(500_000) } })
    expect([refused.statusCode, refused.headers['retry-after'] !== undefined, to !== '']).toEqual([429, true, true])
  })
})
