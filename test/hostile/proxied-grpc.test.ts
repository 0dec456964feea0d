import { writeFileSync } from 'node:fs'
import type { OutgoingHttpHeaders } from 'node:http2'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { randomRuns } from '@test/random-runs'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { serveProgram } from '../../packages/gateway/src/process/serve-program.ts'
import { GatewayRig } from '../helpers/gateway-rig.ts'
import { Http2Caller } from '../helpers/http2-rig.ts'
import { framesOf, http2Proxies, mostResets, resetMany, sendFrames, ways } from './proxied-http2.ts'

// Proxies between those who ask and the gRPC port of `diana serve` carry all questions over few connections: none of what one of them
// sends changes or ends the answer to another one.

const rig = new GatewayRig()
const urls = new Map<string, string>()
const names = http2Proxies.map(({ name }) => name)
const headers: OutgoingHttpHeaders = {
  ':method': 'POST',
  ':path': '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit',
  'content-type': 'application/grpc',
  te: 'trailers',
}
beforeAll(async () => {
  const config = join(rig.folder(), 'diana.yaml')
  const rules = [{ id: 'none', match: { attribute: { user: 'full' } }, limit: '0/h' }]
  writeFileSync(config, stringify({ rules, trustProxy: ['127.0.0.1'] }))
  const server = await serveProgram.start({ config, port: 0, grpcPort: 0 })
  rig.later(() => server.close())
  const port = Number(server.also!.grpc!.split(':').at(-1))
  await Promise.all(http2Proxies.map(async ({ name, start }) => urls.set(name, await start(rig, port))))
})
afterAll(() => rig.close())

/** Returns a RateLimitRequest about one user, as a message of gRPC. */
function questionOf(user: string): Buffer {
  const field = (number: number, data: Buffer) => Buffer.concat([Buffer.from([(number << 3) | 2, data.length]), data])
  const entry = field(1, Buffer.concat([field(1, Buffer.from('user')), field(2, Buffer.from(user))]))
  const message = Buffer.concat([field(1, Buffer.from('a')), field(2, entry)])
  return Buffer.concat([Buffer.from([0, 0, 0, 0, message.length]), message])
}

/** Asks while `attack` runs; returns the number of right answers, and all others. */
async function besides(url: string, attack: () => Promise<void>): Promise<{ right: number; failures: unknown[] }> {
  const caller = new Http2Caller(url)
  let isOver = false
  let right = 0
  const failures: unknown[] = []
  const keepAsking = async (user: string, code: number): Promise<void> => {
    while (!isOver) {
      const { status, body, reset } = await caller.call(headers, questionOf(user))
      // overall_code is the first field of the answer: 1 for OK, 2 for OVER_LIMIT
      if (status === 200 && body.charCodeAt(6) === code) right++
      else failures.push([user, status, body, reset])
      await pause(5)
    }
  }
  const asking = [keepAsking('ann', 1), keepAsking('full', 2), keepAsking('bob', 1)]
  await attack()
  isOver = true
  await Promise.all(asking)
  await caller.close()
  return { right, failures }
}

test.each(names)('resets by the thousand through %s end no question of other callers', async name => {
  const url = urls.get(name)!
  const { right, failures } = await besides(url, () => resetMany(url, headers, mostResets))
  expect(failures).toEqual([])
  expect(right).toBeGreaterThan(3)
})

test.each(names)('odd calls through %s change and end no question of other callers', async name => {
  const url = urls.get(name)!
  const odd = ways.chain(way => {
    const path = fc.constantFrom(String(headers[':path']), '/envoy.service.auth.v3.Authorization/Check', '/other')
    const type = fc.constantFrom('application/grpc', 'application/grpc+json', 'application/grpc-web', 'text/plain')
    const body = fc.constantFrom(
      way.body,
      questionOf('full').toString('latin1'),
      questionOf('full').subarray(0, 7).toString('latin1'),
    )
    return fc.tuple(fc.constant(way), path, type, body)
  })
  const samples = fc.sample(odd, randomRuns(160)).map(([way, path, type, body]) => {
    const list = way.headers.map(
      ([name, value]) => [name, name === ':path' && value === '/quick' ? path : value] as const,
    )
    return framesOf({ ...way, headers: [...list, ['content-type', type]], body })
  })
  const { right, failures } = await besides(url, async () => {
    for (let first = 0; first < samples.length; first += 20) {
      await Promise.all(samples.slice(first, first + 20).map(bytes => sendFrames(url, bytes)))
    }
  })
  expect(failures).toEqual([])
  expect(right).toBeGreaterThan(3)
})
