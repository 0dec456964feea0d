import assert from 'node:assert/strict'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { LimiterOptions } from '../../create/create-limiter.ts'
import { soon } from '../sources/watch.ts'
import type { SuiteTest } from '../suite-test.ts'
import { ask, textOf } from './client.ts'
import { connectionTests } from './connections.ts'
import { oneLimitTests } from './one-limit.ts'
import { routeTests } from './routes.ts'
import { type FilterSuiteOptions, places, play, type Scene, until } from './scene.ts'

export type { FilterSuiteOptions, ServerUnderTest } from './scene.ts'
export { login } from './scene.ts'

/** Lists the promises of every filter, seen through HTTP alone, as tests for any framework: each `run` throws if a promise is broken. */
export function filterSuite(options: FilterSuiteOptions): readonly SuiteTest[] {
  const tests: SuiteTest[] = []
  const isHttp2 = options.speaks === 'h2'
  const add = (name: string, limits: LimiterOptions, test: (scene: Scene) => Promise<void>): void => {
    tests.push({ name, run: () => play(options, limits, test) })
  }

  add(
    'a call that passes is served with RateLimit headers',
    { rules: [{ id: 'all', limit: '2/h', algorithm: 'fixed-window' }] },
    async ({ get, service }) => {
      const { status, headers, body } = await get('/hello')
      assert.deepEqual([status, body, service.served], [200, 'hello', ['hello']])
      assert.equal(headers['ratelimit-policy'], '"all";q=2;w=3600')
      assert.match(String(headers.ratelimit), /^"all";r=1;t=\d+$/)
      assert.equal(headers['retry-after'], undefined)
    },
  )

  add('a call that is refused is answered and not served', { rules: [{ id: 'all', limit: '1/h' }] }, async scene => {
    await scene.get('/hello')
    const { status, headers, body } = await scene.get('/hello')
    assert.deepEqual([status, scene.service.served], [503, ['hello']])
    assert.match(String(headers['content-type']), /^application\/(problem\+)?json/)
    assert.equal(headers['cache-control'], 'no-store')
    assert.match(String(headers.ratelimit), /^"all";r=0;t=\d+$/)
    const problem = JSON.parse(body) as Record<string, unknown>
    assert.deepEqual([problem.status, problem.rule, problem['violated-policies']], [503, 'all', ['all']])
    assert.equal(String(problem.retryAfter), headers['retry-after'])
  })

  add(
    'a call that is refused gets the status of the rules',
    { rules: [{ id: 'all', limit: '1/h' }], answer: { status: 429, headers: 'legacy' } },
    async ({ get }) => {
      assert.equal((await get('/hello')).headers['x-ratelimit-remaining'], '0')
      assert.equal((await get('/hello')).status, 429)
    },
  )

  add('HEAD counts as GET, and is refused without a body', { rules: [{ id: 'all', limit: '1/h' }] }, async scene => {
    await scene.get('/hello')
    const { status, body } = await ask(scene.client, { method: 'HEAD', path: '/hello' })
    assert.deepEqual([status, body], [503, ''])
  })

  add(
    'a call that no rule matches gets no RateLimit headers',
    { rules: [{ id: 'other', match: { path: '/users/*' }, limit: '1/h' }] },
    async ({ get }) => {
      const { status, headers } = await get('/hello')
      assert.deepEqual([status, headers.ratelimit], [200, undefined])
    },
  )

  add(
    'callers are distinguished by header, query and cookie',
    { rules: ['header:x-key', 'query:k', 'cookie:k'].map(by => ({ id: by.replace(':', '-'), by, limit: '1/h' })) },
    async ({ client }) => {
      const as = async (one: string, two: string, three: string): Promise<number> => {
        const headers = { 'x-key': one, cookie: `k=${three}` }
        return (await ask(client, { path: `/hello?k=${two}`, headers })).status
      }
      const seen = [await as('1', '1', '1'), await as('1', '2', '2'), await as('2', '1', '2'), await as('2', '2', '1')]
      assert.deepEqual([...seen, await as('2', '2', '2')], [200, 503, 503, 503, 200])
    },
  )

  add(
    'the paths of one route are one resource, and other routes are separate ones',
    { rules: [{ id: 'each', match: { path: '/hello' }, by: 'resource', limit: '1/h' }] },
    async ({ get }) => {
      const statuses = [await get('/hello'), await get('/hello?x'), await get('/users/1')].map(({ status }) => status)
      assert.deepEqual(statuses, [200, 503, 200])
    },
  )

  if (options.seesUnknownPaths !== false) {
    add('a call to an unknown route is limited, too', { rules: [{ id: 'all', limit: '1/h' }] }, async ({ get }) => {
      assert.deepEqual([(await get('/nowhere')).status, (await get('/nowhere')).status], [404, 503])
    })
  }

  add(
    'a call that has to wait for its moment is served then',
    { rules: [{ id: 'steady', limit: '20/s', algorithm: 'leaky-bucket', burst: 10, whenFull: 'wait' }] },
    async ({ get }) => {
      const since = performance.now()
      const answers = await Promise.all(Array.from({ length: 4 }, () => get('/hello')))
      assert.deepEqual(
        answers.map(({ status }) => status),
        [200, 200, 200, 200],
      )
      // the fourth may pass 3/20 s after the first, and timers may be a millisecond early
      assert.ok(performance.now() - since >= 145, 'the calls did not wait')
    },
  )

  const waiting = { ...places, limit: 1, whenFull: 'wait', queue: { size: 5, timeout: '20s' } } as const

  add('a call that waits for a slot is served when one is free', { rules: [waiting] }, async scene => {
    const { client, service, limiter } = scene
    const first = ask(client, { path: '/slow' })
    await until(() => service.slowly.length === 1)
    const second = ask(client, { path: '/slow' })
    await until(() => limiter.status().rules[0]!.waiting === 1)
    service.slowly[0]!()
    await until(() => service.slowly.length === 2)
    service.slowly[1]!()
    assert.deepEqual([(await first).status, (await second).status], [200, 200])
    await until(async () => (await scene.free()) === 1)
  })

  add('a caller that disconnects while waiting leaves the queue', { rules: [waiting] }, async scene => {
    const { client, service, limiter } = scene
    const first = ask(client, { path: '/slow' })
    await until(() => service.slowly.length === 1)
    const second = client.open({ path: '/slow' })
    await until(() => limiter.status().rules[0]!.waiting === 1)
    second.abort()
    await until(() => limiter.status().rules[0]!.waiting === 0)
    service.slowly[0]!()
    assert.equal((await first).status, 200)
    await until(async () => (await scene.free()) === 1)
    assert.deepEqual(service.served, ['slow'])
  })

  const one = { rules: [{ ...places, limit: 1 }] }

  add('a call releases its slot when it is answered', one, async scene => {
    const { client, service } = scene
    const first = ask(client, { path: '/slow' })
    await until(() => service.slowly.length === 1)
    assert.equal((await ask(client, { path: '/slow' })).status, 503)
    service.slowly[0]!()
    assert.equal((await first).status, 200)
    await until(async () => (await scene.free()) === 1)
  })

  add(
    'a call releases its slot when the caller disconnects, and only once',
    { rules: [{ ...places, limit: 2 }] },
    async scene => {
      const { client, service } = scene
      const first = client.open({ path: '/slow' })
      await until(() => service.slowly.length === 1)
      const second = ask(client, { path: '/slow' })
      await until(() => service.slowly.length === 2)
      first.abort()
      await until(async () => (await scene.free()) === 1)
      service.slowly[0]!()
      await sleep(20)
      assert.equal(await scene.free(), 1)
      service.slowly[1]!()
      assert.equal((await second).status, 200)
      await until(async () => (await scene.free()) === 2)
    },
  )

  add('a call releases its slot when the service fails, and the service continues', one, async scene => {
    const { get, service } = scene
    assert.equal((await get('/broken')).status, 500)
    await until(async () => (await scene.free()) === 1)
    assert.equal((await get('/broken')).status, 500)
    assert.equal((await get('/hello')).status, 200)
    assert.deepEqual(service.served, ['broken', 'broken', 'hello'])
  })

  add('a call that the service fails is counted', { rules: [{ id: 'all', limit: '1/h' }] }, async ({ get }) => {
    assert.deepEqual([(await get('/broken')).status, (await get('/broken')).status], [500, 503])
  })

  add(
    'countWhen: failure does not count success, and counts a caller that disconnects',
    { rules: [{ id: 'failures', limit: '2/h', countWhen: 'failed' }] },
    async ({ get, client, service, limiter }) => {
      const left = async (): Promise<number> =>
        (await limiter.peek({ method: 'GET', path: '/' })).decisions[0]!.remaining
      for (let call = 0; call < 4; call++) {
        assert.equal((await get('/hello')).status, 200)
        await until(async () => (await left()) === 2)
      }
      const leaving = client.open({ path: '/slow' })
      await until(() => service.slowly.length === 1)
      leaving.abort()
      assert.equal((await get('/broken')).status, 500)
      await until(async () => (await left()) === 0)
      assert.equal((await get('/hello')).status, 503)
    },
  )

  add('a streamed answer holds its slot until its last chunk is sent', one, async scene => {
    const { client, service } = scene
    const { status, body } = await soon(client.open({ path: '/stream' }).begun, 'the stream')
    const [first] = (await soon(once(body, 'data'), 'the first piece')) as [Buffer]
    body.pause()
    assert.equal(status, 200)
    assert.equal(await scene.free(), 0)
    assert.equal((await ask(client, { path: '/slow' })).status, 503)
    service.letGo()
    const rest = await soon(textOf(body), 'the rest of the stream')
    assert.equal(String(first).length + rest.length, 3 * 65_536)
    await until(async () => (await scene.free()) === 1)
  })

  add('a streamed answer releases its slot when the caller disconnects in the middle', one, async scene => {
    const exchange = scene.client.open({ path: '/stream' })
    const { body } = await soon(exchange.begun, 'the stream')
    await soon(once(body, 'data'), 'the first piece')
    assert.equal(await scene.free(), 0)
    exchange.abort()
    await until(async () => (await scene.free()) === 1)
  })

  add('a body reaches the service whole', { rules: [{ id: 'all', limit: '2/h' }] }, async ({ client }) => {
    const body = '0123456789abcdef'.repeat(16_384)
    const headers = { 'content-type': 'text/plain' }
    const reply = await ask(client, { method: 'POST', path: '/echo', headers, body })
    assert.equal(reply.status, 200)
    assert.ok(reply.body === body, `${reply.body.length} of ${body.length} came back`)
  })

  add(
    'the body of a refused call does not disturb other calls',
    { rules: [{ id: 'all', limit: '1/h' }] },
    async ({ client, get }) => {
      const headers = { 'content-type': 'text/plain' }
      await get('/hello')
      const refused = await ask(client, { method: 'POST', path: '/echo', headers, body: 'x'.repeat(1000) })
      assert.deepEqual([refused.status, (await get('/hello')).status], [503, 503])
    },
  )

  add(
    'exactly 100 of 1 000 concurrent calls pass a limit of 100',
    { rules: [{ id: 'all', limit: '100/h' }] },
    async scene => {
      const answers = await Promise.all(Array.from({ length: 1000 }, () => scene.get('/hello')))
      const passed = answers.filter(({ status }) => status === 200).length
      const refused = answers.filter(({ status }) => status === 503).length
      assert.deepEqual([passed, refused, scene.service.served.length], [100, 900, 100])
    },
  )

  if (options.limitsRoutes) tests.push(...routeTests(options))
  tests.push(...oneLimitTests(options))
  if (!isHttp2) tests.push(...connectionTests(options))
  return tests
}
