import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Registry } from 'prom-client'
import { afterEach, expect, test } from 'vitest'
import { registerHttpMetrics } from '../../../packages/gateway/src/telemetry/http-measures.ts'
import { GatewayRig } from '../../helpers/gateway-rig.ts'

const rig = new GatewayRig()
afterEach(() => rig.close())

test('a service that fails gets fewer calls: the rest is refused as overload, until the service has recovered', async () => {
  let isFailing = true
  const service = await rig.serve((_request, response) => response.writeHead(isFailing ? 500 : 200).end())
  const to = join(rig.folder(), 'access.log')
  const routes = [{ to: service.url, throttle: { ratio: 2, window: '1s' }, health: { failures: 1000 } }]
  const rules = [{ id: 'service', algorithm: 'concurrency', limit: 50 }]
  const { url, httpStats, limiter } = await rig.guard({ rules, gateway: { routes, accessLog: { to } } })
  const call = async () => {
    const response = await fetch(url)
    const { type } = response.status === 503 ? ((await response.json()) as { type: string }) : {}
    await response.body?.cancel().catch(() => {})
    return { status: response.status, type, retryAfter: Number(response.headers.get('retry-after')) }
  }

  const answers: Awaited<ReturnType<typeof call>>[] = []
  for (let round = 0; round < 30; round++) answers.push(...(await Promise.all(Array.from({ length: 10 }, call))))
  const refused = answers.filter(({ status }) => status === 503)
  expect(answers.every(({ status }) => status === 500 || status === 503)).toBe(true)
  // the first calls are all sent; then ever fewer, but some
  expect(answers.slice(0, 10).map(({ status }) => status)).toEqual(Array(10).fill(500))
  expect(service.received).toHaveLength(300 - refused.length)
  expect(refused.length).toBeGreaterThan(100)
  for (const { type, retryAfter } of refused) {
    expect(type).toBe('urn:diana:problem:overload')
    expect([1, 2, 3, 4, 5]).toContain(retryAfter)
  }
  expect(new Set(refused.map(({ retryAfter }) => retryAfter)).size).toBeGreaterThan(1)

  isFailing = false
  // what is tried of one window makes room in the next; a window without a refusal leaves no reason for another one
  let servedSince = Number.POSITIVE_INFINITY
  await expect
    .poll(
      async () => {
        const areServed = (await Promise.all(Array.from({ length: 20 }, call))).every(isServed)
        servedSince = areServed ? Math.min(servedSince, performance.now()) : Number.POSITIVE_INFINITY
        return performance.now() - servedSince
      },
      { timeout: 10_000 },
    )
    .toBeGreaterThan(1000)
  expect((await Promise.all(Array.from({ length: 20 }, call))).every(isServed)).toBe(true)

  const registry = new Registry()
  registerHttpMetrics(httpStats, registry)
  const [, counted] = /diana_http_rejected_total\{reason="overload"\} (\d+)/.exec(await registry.metrics()) ?? []
  expect(Number(counted)).toBeGreaterThanOrEqual(refused.length)
  const logged = () =>
    readFileSync(to, 'utf8')
      .split('\n')
      .filter(line => line.includes('"reason":"overload"'))
  await expect.poll(() => logged().length).toBe(Number(counted))
  expect(JSON.parse(logged()[0]!)).toMatchObject({ status: 503, verdict: 'passed' })
  expect(JSON.parse(logged()[0]!)).not.toHaveProperty('tries')
  // a call that was not sent holds no place
  expect((await limiter.peek({ method: 'GET', path: '/', ip: '127.0.0.1' })).decisions[0]?.remaining).toBe(50)
})

test('the access log has the reason of a call that an adaptive rule has refused', async () => {
  const held: (() => void)[] = []
  const service = await rig.serve((_request, response) => held.push(() => response.end()))
  const to = join(rig.folder(), 'access.log')
  const rules = [{ id: 'service', algorithm: 'adaptive', limit: 1 }]
  const { url } = await rig.guard({ rules, gateway: { routes: [{ to: service.url }], accessLog: { to } } })
  const first = fetch(url)
  await expect.poll(() => held.length).toBe(1)
  const refused = await fetch(url)
  expect(await refused.json()).toMatchObject({ status: 503, type: 'urn:diana:problem:overload' })
  held[0]!()
  expect((await first).status).toBe(200)
  const lines = () =>
    readFileSync(to, 'utf8')
      .trim()
      .split('\n')
      .filter(line => line !== '')
  await expect.poll(() => lines().length).toBe(2)
  const [line, other] = lines().map(text => JSON.parse(text))
  expect(line).toMatchObject({ verdict: 'refused', rule: 'service', reason: 'overload', status: 503 })
  expect(other).not.toHaveProperty('reason')
})

function isServed({ status }: { status: number }): boolean {
  return status === 200
}
