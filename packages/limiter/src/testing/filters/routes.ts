import assert from 'node:assert/strict'
import { adminOf } from '../../admin/limiter-admin.ts'
import type { LimiterOptions } from '../../create/create-limiter.ts'
import type { RuleOptions } from '../../rules/schema/options.ts'
import type { SuiteTest } from '../suite-test.ts'
import { ask, type Reply } from './client.ts'
import { type FilterSuiteOptions, play, type Scene, until } from './scene.ts'

const all: RuleOptions = { id: 'all', limit: '9/h', algorithm: 'fixed-window' }
const login: RuleOptions = { id: 'login', match: 'none', limit: '2/h', algorithm: 'fixed-window' }

/** Lists the common promises of an application's filter and the filter of one of its routes: one request is one judgement. */
export function routeTests(options: FilterSuiteOptions): readonly SuiteTest[] {
  const tests: SuiteTest[] = []
  const add = (name: string, limits: LimiterOptions, test: (scene: Scene) => Promise<void>): void => {
    tests.push({ name, run: () => play(options, limits, test) })
  }

  add(
    'a call that a route refuses costs nothing by the rules of the application',
    { rules: [all, login] },
    async scene => {
      assert.deepEqual(await statuses(scene, 5), [200, 200, 503, 503, 503])
      assert.equal(await left(scene), 7)
      const { total, rules } = adminOf(scene.limiter).stats()
      assert.deepEqual([total.allowed, total.refused], [2, 3])
      assert.deepEqual(
        rules.map(({ id, allowed, refused }) => [id, allowed, refused]),
        [
          ['all', 2, 0],
          ['login', 2, 3],
        ],
      )
    },
  )

  add('an answer names the policies of the application and of the route', { rules: [all, login] }, async scene => {
    const passed = await scene.get('/login')
    assert.deepEqual(policies(passed), ['"all";q=9;w=3600', '"login";q=2;w=3600'])
    assert.deepEqual(remaining(passed), { all: 8, login: 1 })
    await scene.get('/login')
    const refused = await scene.get('/login')
    assert.deepEqual(policies(refused), ['"all";q=9;w=3600', '"login";q=2;w=3600'])
    assert.deepEqual(remaining(refused), { all: 7, login: 0 })
    assert.deepEqual((JSON.parse(refused.body) as { 'violated-policies': unknown })['violated-policies'], ['login'])
  })

  add(
    'a refusal by a rule with headers of its own corrects those that the application wrote',
    { rules: [all, { ...login, answer: { status: 429, headers: 'legacy' } }] },
    async scene => {
      await statuses(scene, 2)
      const { status, headers } = await scene.get('/login')
      assert.deepEqual([status, headers['x-ratelimit-limit'], headers['x-ratelimit-remaining']], [429, '2', '0'])
      // a framework that judges the rules of both at once has written none
      assert.match(String(headers.ratelimit), /"all";r=7;|^undefined$/)
    },
  )

  add(
    'a rule that matches a route and is named there charges a call once',
    { rules: [{ ...login, match: { path: '/login' } }] },
    async scene => assert.deepEqual(await statuses(scene, 3), [200, 200, 503]),
  )

  add(
    'a call that a route refuses releases its slot, and does not count as a failure',
    {
      rules: [
        { id: 'places', algorithm: 'concurrency', limit: 1 },
        { id: 'failures', limit: '2/h', countWhen: 'failed' },
        { ...login, limit: '1/h' },
      ],
    },
    async scene => {
      assert.deepEqual(await statuses(scene, 4), [200, 503, 503, 503])
      const { decisions } = await scene.limiter.peek({ method: 'GET', path: '/login' })
      assert.deepEqual(
        decisions.map(one => [one.rule, one.remaining]),
        [
          ['places', 1],
          ['failures', 2],
        ],
      )
    },
  )

  const inLine: RuleOptions = {
    ...login,
    algorithm: 'leaky-bucket',
    limit: '1/m',
    burst: 5,
    whenFull: 'wait',
    queue: { timeout: '10m' },
  }
  add('a caller that disconnects while waiting for a route is refunded', { rules: [all, inLine] }, async scene => {
    const { client, limiter } = scene
    assert.deepEqual(await statuses(scene, 1), [200])
    const waiting = client.open({ path: '/login' })
    await until(() => limiter.status().rules[1]!.waiting === 1)
    assert.equal(await left(scene), 7)
    waiting.abort()
    await until(async () => (await left(scene)) === 8)
  })

  return tests
}

async function statuses(scene: Scene, count: number): Promise<number[]> {
  const list: number[] = []
  for (let call = 0; call < count; call++) list.push((await ask(scene.client, { path: '/login' })).status)
  return list
}

async function left({ limiter }: Scene): Promise<number> {
  return (await limiter.peek({ method: 'GET', path: '/login' })).decisions[0]!.remaining
}

function policies({ headers }: Reply): string[] {
  return String(headers['ratelimit-policy']).split(', ').sort()
}

function remaining({ headers }: Reply): Record<string, number> {
  const items = [...String(headers.ratelimit).matchAll(/"([^"]+)";r=(\d+)/g)]
  return Object.fromEntries(items.map(([, rule, count]) => [rule, Number(count)]))
}
