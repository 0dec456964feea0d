import { readFileSync } from 'node:fs'
import { mergeExtensions } from 'diana-limiter/gateway'
import { parseText } from 'diana-limiter/schema'
import { describe, expect, test } from 'vitest'
import { gatewaySection } from '../gateway-settings.ts'

function mistakesIn(route: string): string[] {
  const text = `rules:\n  - { id: all, limit: 1/s }\ngateway:\n  routes:\n    - ${route}\n`
  const { mistakes } = parseText(text, 'diana.yaml', { ...mergeExtensions({}, []), sections: [gatewaySection] })
  return (mistakes ?? []).map(({ line, column, message }) => `${line}:${column} ${message}`)
}

describe('a mistake in addresses has a position and a remedy', () => {
  test.each([
    ['{ to: [{ url: http://a, weight: 0 }, { url: http://b, weight: 0 }] }', 'has no address with a weight above 0'],
    ['{ to: { url: http://a, weight: 0 } }', 'has no address with a weight above 0'],
    ['{ to: [{ url: http://a, weight: -1 }] }', 'must be at least 0, not -1'],
    ['{ to: [{ url: http://a, weight: 1.5 }] }', 'must be a whole number'],
    ['{ to: [{ url: http://a, wieght: 2 }] }', 'did you mean weight?'],
    ['{ to: [{ weight: 2 }] }', 'to[0].url is missing'],
    ['{ to: [] }', 'is an empty list'],
    ['{ to: ftp://a }', 'is not the address of a service'],
    ['{ to: unix:app.sock }', 'must name a socket by its whole path'],
    ['{ to: "unix:/run/app.sock:base" }', 'must name a socket by its whole path'],
    [`{ to: unix:/${'a'.repeat(120)} }`, 'has a socket path of 121 bytes: the system takes 107'],
    ['{ to: http://a, sticky: {} }', 'must have either cookie'],
    ['{ to: http://a, sticky: { cookie: x, hash: ip } }', 'must have either cookie'],
    ['{ to: http://a, sticky: { cookie: "a b" } }', 'must be the name of a cookie'],
    ['{ to: http://a, sticky: { cookie: "" } }', 'must be the name of a cookie'],
    ['{ to: http://a, sticky: { hash: "header:" } }', 'must be ip, header:NAME or cookie:NAME'],
    ['{ to: http://a, sticky: { hash: agent } }', 'must be ip, header:NAME or cookie:NAME'],
    ['{ to: http://a, sticky: { hash: ip, maxAge: 1h } }', 'is for cookie only'],
    ['{ to: http://a, balance: leastconn }', 'must be round-robin or least-connections'],
    ['{ to: http://a, health: { check: { path: up } } }', 'must be a path such as /healthz'],
    ['{ to: http://a, health: { check: {} } }', 'path is missing'],
    ['{ to: http://a, health: { check: { path: /up, statuses: 2xy } } }', 'must be a status such as 200'],
    ['{ to: http://a, health: { check: { path: /up, statuses: 700 } } }', 'must be at most 599'],
    ['{ to: http://a, health: { check: { path: /up, interval: 5 } } }', 'has no unit'],
    ['{ to: http://a, health: { check: { path: /up, interval: 30d } } }', 'must be at most 1d'],
    ['{ to: http://a, health: { check: { path: /up, timeout: 2d } } }', 'must be at most 1d'],
    ['{ to: http://a, health: { failStatuses: [200] } }', 'must be at least 400'],
    ['{ to: http://a, health: { check: { path: /up, host: "a b" } } }', 'must be a host such as'],
    ['{ to: http://a, retryBudget: { percent: 200 } }', 'must be at most 100'],
    ['{ to: http://a, slowStart: soon }', 'must be a duration'],
  ])('a route with invalid addresses is refused: %s', (route, expected) => {
    const mistakes = mistakesIn(route)
    expect(mistakes).toHaveLength(1)
    expect(mistakes[0]).toContain(expected)
    expect(mistakes[0]).toMatch(/^5:\d+ gateway\.routes\[0\]/)
  })

  test.each([
    '{ to: [http://a, { url: "http://b", weight: 3 }] }',
    '{ to: unix:/run/app.sock }',
    '{ to: "unix:/run/app.sock:/base" }',
    '{ to: http://a, sticky: { cookie: route, maxAge: 1h } }',
    '{ to: http://a, sticky: { hash: "header:X-Account" } }',
    '{ to: http://a, health: { check: { path: "/up?deep=1", statuses: [200, 3xx] }, failStatuses: 503 } }',
  ])('a route with valid addresses is accepted: %s', route => {
    expect(mistakesIn(route)).toEqual([])
  })
})

test('the example of docs/upstreams.md is a rule file without a mistake', () => {
  const page = readFileSync(new URL('../../../../../docs/upstreams.md', import.meta.url), 'utf8')
  const [, example] = /^```yaml\n([\s\S]*?)^```$/m.exec(page)!
  const words = { ...mergeExtensions({}, []), sections: [gatewaySection] }
  expect(parseText(example!, 'docs/upstreams.md', words).mistakes).toEqual([])
})
