import type { ServerResponse } from 'node:http'
import { Registry } from 'prom-client'
import { afterEach, expect, test } from 'vitest'
import { registerHttpMetrics } from '../../../packages/gateway/src/telemetry/http-measures.ts'
import { GatewayRig, type Guarded } from '../../helpers/gateway-rig.ts'

const rig = new GatewayRig()
afterEach(() => rig.close())

/** The values of a metric as Prometheus reads them, by their labels. */
async function scrape({ httpStats }: Guarded, name: string): Promise<Record<string, number>> {
  const registry = new Registry()
  registerHttpMetrics(httpStats, registry)
  const lines = (await registry.metrics()).split('\n').filter(line => line.startsWith(`${name}{`))
  return Object.fromEntries(
    lines.map(line => {
      const [, labels = '', value] = /\{(.*)\} (\S+)$/.exec(line)!
      return [labels, Number(value)]
    }),
  )
}

test('the state and the open connections of each address of a service are metrics', async () => {
  const good = await rig.serve()
  const dead = 'http://127.0.0.1:9'
  const checked = await rig.serve((_request, response) => response.writeHead(500).end())
  const check = { path: '/up', interval: '100ms', timeout: '100ms', unhealthy: 1 }
  const routes = [
    { to: [good.url, dead], health: { failures: 1, rest: '1m' } },
    { path: '/checked', to: checked.url, health: { check } },
  ]
  const guarded = await rig.guard({ gateway: { routes } })
  for (let calls = 0; calls < 3; calls++) expect((await fetch(guarded.url)).status).toBe(200)
  const connections = await scrape(guarded, 'diana_http_upstream_connections')
  expect(connections[`upstream="${good.url}"`]).toBeGreaterThan(0)
  expect(connections[`upstream="${dead}"`]).toBe(0)
  const state = (address: string, name: string): string => `upstream="${address}",state="${name}"`
  await expect
    .poll(() => scrape(guarded, 'diana_http_upstream_state'), { timeout: 5000 })
    .toMatchObject({
      [state(good.url, 'healthy')]: 1,
      [state(good.url, 'resting')]: 0,
      [state(dead, 'resting')]: 1,
      [state(dead, 'healthy')]: 0,
      [state(checked.url, 'unhealthy')]: 1,
      [state(checked.url, 'healthy')]: 0,
      [state(checked.url, 'draining')]: 0,
    })
})

test('an address that no route has any more is draining in the metrics until its last call has ended', async () => {
  const waiting: ServerResponse[] = []
  const old = await rig.serve((_request, response) => waiting.push(response))
  const next = await rig.serve()
  const guarded = await rig.guard({ gateway: { routes: [{ to: old.url }] } })
  const call = fetch(guarded.url)
  await expect.poll(() => waiting.length, { timeout: 5000 }).toBe(1)
  guarded.rewrite({ gateway: { routes: [{ to: next.url }] } })
  const states = () => scrape(guarded, 'diana_http_upstream_state')
  const draining = `upstream="${old.url}",state="draining"`
  await expect.poll(async () => (await states())[draining], { timeout: 10_000 }).toBe(1)
  expect((await states())[`upstream="${old.url}",state="healthy"`]).toBe(0)
  waiting[0]!.end('served')
  expect(await (await call).text()).toBe('served')
  await expect.poll(async () => Object.keys(await states()).join(), { timeout: 5000 }).not.toContain(old.url)
})

test('the addresses of each route by state are metrics, and routes that the gateway answers itself have none', async () => {
  const good = await rig.serve()
  const dead = 'http://127.0.0.1:9'
  const health = { failures: 1, rest: '1m' }
  const routes = [
    { path: '/dead', to: dead, health },
    { path: '/own', answer: { status: 204 } },
    { to: [good.url, dead], health },
  ]
  const guarded = await rig.guard({ gateway: { routes } })
  expect((await fetch(`${guarded.url}/dead`)).status).toBe(502)
  expect(await scrape(guarded, 'diana_http_route_addresses')).toEqual({
    'route="/dead",state="healthy"': 0,
    'route="/dead",state="resting"': 1,
    'route="/dead",state="unhealthy"': 0,
    'route="/",state="healthy"': 1,
    'route="/",state="resting"': 1,
    'route="/",state="unhealthy"': 0,
  })
})

test("the gateway's own errors are counted by their reason; errors of services and refusals by rules are not", async () => {
  const failing = await rig.serve((_request, response) => response.writeHead(500).end())
  const garbled = await rig.serveRaw(socket => socket.end('no HTTP\r\n\r\n'))
  const silent = await rig.serve(() => {})
  const dead = 'http://127.0.0.1:9'
  const routes = [
    { path: '/dead', to: dead },
    { path: '/garbled', to: garbled },
    { path: '/silent', to: silent.url, timeouts: { headers: '100ms' } },
    { to: failing.url },
  ]
  const rules = [{ id: 'none', match: { path: '/refused' }, limit: '0/s' }]
  const guarded = await rig.guard({ rules, gateway: { routes } })
  const paths = ['/dead', '/dead', '/garbled', '/silent', '/failing', '/refused']
  const statuses = await Promise.all(paths.map(async path => (await fetch(`${guarded.url}${path}`)).status))
  expect(statuses).toEqual([502, 502, 502, 504, 500, 503])
  const error = (path: string, to: string, reason: string): string =>
    `route="${path}",upstream="${to}",reason="${reason}"`
  await expect
    .poll(() => scrape(guarded, 'diana_http_gateway_errors_total'), { timeout: 5000 })
    .toEqual({
      [error('/dead', dead, 'unreachable')]: 2,
      [error('/garbled', garbled, 'unreadable')]: 1,
      [error('/silent', silent.url, 'timeout')]: 1,
    })
})
