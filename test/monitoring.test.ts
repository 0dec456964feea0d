import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { parse } from 'yaml'
import { createAdmin } from '../packages/gateway/src/admin/server/create-admin.ts'
import { GatewayRig, sendRaw } from './helpers/gateway-rig.ts'
import { groupedBy, labelsIn, selectorsIn } from './helpers/promql.ts'
import { startRedis } from './helpers/servers/redis-server.ts'

// Alerts and dashboard ask about metrics and labels that a running gateway really has.

const read = (path: string): string => readFileSync(new URL(`../${path}`, import.meta.url), 'utf8')
const { groups } = parse(read('deploy/prometheus/diana-alerts.yaml')) as {
  groups: { rules: { alert?: string; record?: string; expr: string; labels?: object; annotations?: object }[] }[]
}
const rules = groups.flatMap(group => group.rules)
const recorded = rules.flatMap(({ record }) => record ?? [])
const { panels, annotations } = JSON.parse(read('deploy/grafana/diana.json')) as {
  panels: { targets?: { expr: string; legendFormat: string }[] }[]
  annotations: { list: { expr: string }[] }
}
const expressions = [
  ...rules.map(({ expr }) => expr),
  ...panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)),
  ...annotations.list.map(({ expr }) => expr),
]
/** Labels that Prometheus adds to what it scrapes. */
const added = ['job', 'instance']

const rig = new GatewayRig()
let labels: Map<string, Set<string>>
afterAll(() => rig.close())
beforeAll(async () => {
  const redis = await startRedis()
  rig.later(() => redis.close())
  const good = await rig.serve((_request, response) =>
    response.setHeader('content-type', 'application/json').end('{"usage":{"total_tokens":3}}'),
  )
  const dead = 'http://127.0.0.1:9'
  const { url, port, limiter, httpStats } = await rig.guard({
    store: { redis: `redis://${redis.authority}`, timeout: '100ms' },
    // a busy machine must not shed the calls of this test
    overload: { eventLoopDelay: '10s', eventLoopUtilization: 1, callWait: '10s' },
    rules: [
      { id: 'shared', limit: '1000000/s' },
      { id: 'here', count: 'local', limit: '1000000/s' },
      {
        id: 'paced',
        count: 'local',
        match: { path: '/paced' },
        limit: '2/s',
        burst: 20,
        algorithm: 'leaky-bucket',
        whenFull: 'wait',
      },
      { id: 'adaptive', count: 'local', match: { path: '/adaptive' }, algorithm: 'adaptive', limit: 50 },
      {
        id: 'tokens',
        count: 'local',
        match: { path: '/tokens' },
        limit: '100000/m',
        cost: { reserve: 5, settle: 'json:usage.total_tokens' },
      },
    ],
    gateway: {
      routes: [
        { path: '/dead', to: dead },
        { path: '/retried', to: [dead, good.url], health: { failures: 100 } },
        { to: good.url },
      ],
    },
  })
  limiter.events.on('store', () => {})
  const admin = await createAdmin({ limiter, httpStats, host: '127.0.0.1', page: '/no-page' })
  rig.later(() => admin.close())
  const paths = ['/', '/dead', '/retried', '/retried', '/paced', '/paced', '/adaptive', '/tokens']
  await Promise.all(paths.map(async path => (await fetch(`${url}${path}`)).text()))
  await sendRaw(port, 'no HTTP\r\n\r\n')
  // one decision in 128 is timed
  for (let calls = 0; calls < 300; calls++) await limiter.check({ method: 'GET', path: '/', ip: '192.0.2.1' })
  const reservation = await limiter.reserve({ method: 'GET', path: '/tokens', ip: '192.0.2.1' }, { cost: 2 })
  await reservation.settle(1)
  await redis.stop('SIGKILL')
  await vi.waitFor(() => expect(limiter.status().store?.healthy).toBe(false), { timeout: 10_000 })
  for (let calls = 0; calls < 5; calls++) await limiter.check({ method: 'GET', path: '/', ip: '192.0.2.1' })
  const { body } = await admin.inject({ url: '/metrics', headers: { host: '127.0.0.1' } })
  labels = labelsIn(body)
}, 60_000)

describe('what alerts and the dashboard ask about', () => {
  it('a running gateway has every metric, with every label that a selector names', () => {
    const unknown = expressions.flatMap(selectorsIn).flatMap(({ metric, labels: asked }) => {
      if (recorded.includes(metric)) return []
      const known = labels.get(metric)
      if (known === undefined) return [metric]
      return asked.filter(label => !known.has(label) && !added.includes(label)).map(label => `${metric}{${label}}`)
    })
    expect([...new Set(unknown)]).toEqual([])
  })

  it('expressions group by labels that their metrics have', () => {
    const unknown = expressions.flatMap(expr => {
      const known = selectorsIn(expr).flatMap(({ metric }) => [...(labels.get(metric) ?? ['rule'])])
      return groupedBy(expr)
        .filter(label => ![...known, ...added].includes(label))
        .map(label => `${label} in ${expr}`)
    })
    expect(unknown).toEqual([])
  })

  it('texts of alerts and legends name labels that remain after grouping', () => {
    const texts = [
      ...rules.map(({ expr, annotations: texts = {} }) => [expr, JSON.stringify(texts)] as const),
      ...panels.flatMap(({ targets = [] }) => targets.map(({ expr, legendFormat }) => [expr, legendFormat] as const)),
    ]
    const unknown = texts.flatMap(([expr, text]) => {
      const named = [...text.matchAll(/\$labels\.(\w+)|\{\{(\w+)\}\}/g)].map(([, one, other]) => (one ?? other)!)
      const metrics = selectorsIn(expr).flatMap(({ metric }) => [...(labels.get(metric) ?? ['rule'])])
      const grouped = groupedBy(expr)
      const remaining = /\bby \(/.test(expr) ? grouped : [...metrics, ...added]
      return named.filter(label => !remaining.includes(label)).map(label => `${label} in ${text}`)
    })
    expect(unknown).toEqual([])
  })
})
