import { Agent, request } from 'node:http'
import { randomRuns } from '@test/random-runs'
import { afterAll, expect, test, vi } from 'vitest'
import { createLimiter } from '../../packages/limiter/src/create/create-limiter.ts'
import { engineOf } from '../../packages/limiter/src/engine/engine-of.ts'
import { routedApplications, routedResources } from '../paths/routers.ts'
import { knownTargets, randomTargets } from '../paths/targets.ts'

// A caller gets the level of the handler that runs, or a lower one: a path, method or host that servers may read in several ways
// raises no level. Targets and applications are those of the tests of paths.

const agent = new Agent({ keepAlive: true, maxSockets: 4 })
afterAll(() => agent.destroy())

function call(port: number, path: string): Promise<string> {
  return new Promise(resolve => {
    const outgoing = request({ port, host: '127.0.0.1', agent, path }, answer => {
      let body = ''
      answer.setEncoding('utf8').on('data', piece => {
        body += piece
      })
      answer.on('end', () => resolve(answer.statusCode === 200 ? body : ''))
    })
    outgoing.on('error', () => resolve('')).end()
  })
}

const [sheddable, usual, critical] = [0, 0.5, 1]

test.each(Object.entries(routedApplications))(
  'no spelling of a path raises the level of a handler of %s',
  async (_, application) => {
    const { prefix = '', start } = application
    const limiter = await createLimiter({
      rules: [{ id: 'all', algorithm: 'adaptive', limit: 10_000 }],
      priority: [
        { match: { path: `${prefix}/hello` }, level: 'critical' },
        { match: { path: `${prefix}/admin/**` }, level: 'sheddable' },
      ],
    })
    const ranks = vi.spyOn(engineOf(limiter).decider, 'rankOf')
    const server = await start(limiter)
    const raised: string[] = []
    const ask = async (target: string): Promise<unknown> => {
      ranks.mockClear()
      const served = await call(server.port, target)
      const rank = ranks.mock.results[0]?.value
      const most = served === '/admin/secret' ? sheddable : served === '/hello' ? critical : usual
      if (routedResources.includes(served) && rank > most)
        raised.push(`${JSON.stringify(target)} got ${rank} for ${served}`)
      return served === '' ? undefined : rank
    }
    const targets = [...knownTargets, ...randomTargets(randomRuns(20), 1, routedResources)]
    for (const target of targets) await ask(target.startsWith('/') ? prefix + target : target)
    expect(raised).toEqual([])
    expect([await ask(`${prefix}/hello`), await ask(`${prefix}/key/7`)]).toEqual([critical, usual])
    await server.close()
    await limiter.close()
  },
)

const post = { method: 'POST', path: '/hello', host: 'a.test' }
test.each([
  ['a header that overrides the method', { ...post, headers: { 'x-http-method-override': 'GET' } }],
  ['two such headers', { ...post, headers: { 'x-http-method': 'PUT', 'x-method-override': 'GET' } }],
  ['a query that overrides the method', { ...post, query: '_method=GET' }],
  [
    'an :authority beside another Host',
    { ...post, method: 'GET', host: 'b.test', headers: { ':authority': 'a.test' } },
  ],
  ['a Host beside another :authority', { ...post, method: 'GET', headers: { ':authority': 'b.test' } }],
  ['a target with another path behind a host', { ...post, method: 'GET', path: '/x', otherPath: '/hello' }],
  ['an x-priority of its own', { ...post, headers: { 'x-priority': 'critical' } }],
  ['an encoded slash in place of a slash', { ...post, method: 'GET', path: '/x%2F..%2Fhello' }],
  ['more readings than are tried', { ...post, method: 'GET', path: `/hello${'/%2f\\;%3b..'.repeat(400)}` }],
])('%s raises no level', async (_, spoofed) => {
  const limiter = await createLimiter({
    trustProxy: ['10.0.0.0/8'],
    rules: [{ id: 'all', algorithm: 'adaptive', limit: 10_000 }],
    priority: [
      { match: { path: '/hello', method: 'GET', host: 'a.test' }, level: 'critical' },
      { header: 'x-priority' },
    ],
  })
  const { decider } = engineOf(limiter)
  expect(decider.rankOf(spoofed)).toBeLessThan(critical)
  expect(decider.rankOf({ ...post, method: 'GET' })).toBe(critical)
  await limiter.close()
})

test('a call that is critical by each of its readings is critical', async () => {
  const limiter = await createLimiter({
    rules: [{ id: 'all', algorithm: 'adaptive', limit: 10_000 }],
    priority: [
      { match: { path: '/pay/**' }, level: 'critical' },
      { match: {}, level: 'sheddable' },
    ],
  })
  const { decider } = engineOf(limiter)
  const get = { method: 'GET', host: 'a.test' }
  for (const path of ['/pay/a%2Fb', '/pay/a;b=c', '/pay/x/../y', '/pay/a\\b', '/pay/caf%C3%A9', '/pay//now']) {
    expect([path, decider.rankOf({ ...get, path })]).toEqual([path, critical])
  }
  expect(
    decider.rankOf({ ...get, method: 'POST', path: '/pay/now', headers: { 'x-http-method-override': 'PUT' } }),
  ).toBe(critical)
  expect(decider.rankOf({ ...get, path: '/pay/..%2fother' })).toBe(sheddable)
  await limiter.close()
})
