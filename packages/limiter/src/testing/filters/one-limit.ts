import assert from 'node:assert/strict'
import { soon } from '../sources/watch.ts'
import type { SuiteTest } from '../suite-test.ts'
import { ask, http2Client, httpClient, type Reply } from './client.ts'
import type { AnyRateLimitOptions, FilterSuiteOptions } from './scene.ts'
import { FilterService } from './service.ts'

interface OneScene {
  readonly service: FilterService
  get(path: string, headers?: Readonly<Record<string, string>>, method?: string): Promise<Reply>
  statuses(count: number, path?: string): Promise<number[]>
}

const user = (): Promise<string> => Promise.resolve('ann')
const fails = (): Promise<never> => Promise.reject(new Error('the application failed, as this test wants it'))
const hidden = { onError: (): void => {} } as const

/** Lists the promises of a filter of one limit with functions of the application: whatever they do, no request passes by their failing. */
export function oneLimitTests(options: FilterSuiteOptions): readonly SuiteTest[] {
  const tests: SuiteTest[] = []
  const { startOne, setsHeadersBefore = true, forwardsErrors = true } = options
  if (startOne === undefined) return tests
  const add = (name: string, limit: object, test: (scene: OneScene) => Promise<void>): void => {
    const run = async (): Promise<void> => {
      const service = new FilterService()
      const server = await startOne({ ...hidden, ...limit } as unknown as AnyRateLimitOptions, service)
      const client = options.speaks === 'h2' ? http2Client(server.port) : httpClient(server.port, false)
      const get: OneScene['get'] = (path, headers = {}, method = 'GET') => ask(client, { path, headers, method })
      const statuses = async (count: number, path = '/hello'): Promise<number[]> => {
        const list: number[] = []
        for (let call = 0; call < count; call++) list.push((await get(path)).status)
        return list
      }
      try {
        await test({ service, get, statuses })
      } finally {
        client.close()
        await soon(server.close(), 'the end of the server')
      }
    }
    tests.push({ name: `one limit: ${name}`, run })
  }
  const refusesThird = async ({ statuses, service }: OneScene): Promise<void> => {
    assert.deepEqual([await statuses(3), service.served.length], [[200, 200, 503], 2])
  }

  add('a function gives each request its limit', { limit: () => '2/h' }, refusesThird)
  add('an async function gives each request its limit', { limit: async () => '2/h' }, refusesThird)
  add(
    'an async function names a plan',
    { limit: { by: () => Promise.resolve('free'), values: { free: '2/h', pro: '9/h' }, default: '5/h' } },
    refusesThird,
  )
  add(
    'a function gives a limit with a burst',
    { limit: async () => ({ limit: '1/h', burst: 2 }), algorithm: 'token-bucket' },
    refusesThird,
  )
  add('an async function names the caller', { limit: '2/h', by: user }, refusesThird)
  add('an async function names requests that pass', { limit: '1/h', skip: async () => true }, async ({ statuses }) => {
    assert.deepEqual(await statuses(3), [200, 200, 200])
  })

  const failing: readonly (readonly [string, object])[] = [
    ['rejects', { limit: fails }],
    [
      'throws',
      {
        limit: (): never => {
          throw new Error('the application failed, as this test wants it')
        },
      },
    ],
    ['returns nothing', { limit: async () => undefined }],
    ['returns a number', { limit: () => 100 }],
    ['returns an object', { limit: () => ({ count: 5 }) }],
    ['returns no limit', { limit: async () => '2 per' }],
    ['returns a burst of another algorithm', { limit: () => ({ limit: '2/h', burst: 5 }) }],
    ['rejects as a plan', { limit: { by: fails, default: '9/h' } }],
  ]
  for (const [what, limit] of failing) {
    add(`a request is refused whose limit ${what}`, limit, async ({ statuses, service }) => {
      assert.deepEqual([await statuses(2), service.served], [[503, 503], []])
    })
  }
  add(
    'an unknown plan has the default',
    { limit: { by: () => 'x', values: { a: '9/h' }, default: '2/h' } },
    refusesThird,
  )
  add('a limit that fails lets requests pass if that is written', { limit: fails, whenFailed: 'pass' }, async scene => {
    assert.deepEqual(await scene.statuses(2), [200, 200])
  })
  for (const missing of ['address', 'shared', 'skip']) {
    add(
      `callers are counted though by fails, also with missing: ${missing}`,
      { limit: '2/h', by: fails, missing },
      refusesThird,
    )
    add(
      `callers are counted though by returns an object, also with missing: ${missing}`,
      { limit: '2/h', by: async () => ({}), missing },
      refusesThird,
    )
  }
  add(
    'a caller is refused if by fails and whenFailed is refuse',
    { limit: '9/h', by: fails, whenFailed: 'refuse' },
    async scene => assert.deepEqual(await scene.statuses(1), [503]),
  )
  add('a skip that rejects passes nothing', { limit: '2/h', skip: fails }, refusesThird)
  add(
    'a skip that gives something else than true passes nothing',
    { limit: '2/h', skip: async () => 'yes' },
    refusesThird,
  )

  const answers: readonly (readonly [string, object])[] = [
    ['returns', { onRefused: () => ({ status: 429, body: 'wait' }) }],
    ['returns later', { onRefused: async () => ({ status: 429, body: 'wait' }) }],
  ]
  for (const [what, more] of answers) {
    add(`a refusal is what onRefused ${what}`, { limit: '1/h', ...more }, async ({ get, statuses }) => {
      await statuses(1)
      const { status, body, headers } = await get('/hello')
      assert.deepEqual([status, body], [429, 'wait'])
      assert.match(String(headers['retry-after']), /^\d+$/)
    })
  }
  add('status is that of a refusal', { limit: '1/h', status: 429 }, async ({ statuses }) => {
    assert.deepEqual(await statuses(2), [200, 429])
  })
  if (forwardsErrors) {
    add('a refusal goes to the handler of errors', { limit: '1/h', status: 429, forwardErrors: true }, async scene => {
      await scene.statuses(1)
      const { status, body } = await scene.get('/hello')
      assert.deepEqual([status, body], [429, 'handled LIMITED'])
      assert.deepEqual(scene.service.served, ['hello'])
    })
  }
  if (setsHeadersBefore) {
    add('a refusal has the headers that were set before the filter', { limit: '1/h' }, async ({ get }) => {
      await get('/hello')
      const { status, headers } = await get('/hello')
      assert.deepEqual(
        [status, headers['access-control-allow-origin'], headers.vary],
        [503, 'https://a.example', 'Origin'],
      )
    })
  }

  const preflight = { origin: 'https://a.example', 'access-control-request-method': 'POST' }
  if (options.seesUnknownPaths !== false) {
    add('a preflight is not counted', { limit: '1/h' }, async ({ get, statuses }) => {
      for (let call = 0; call < 3; call++) assert.notEqual((await get('/hello', preflight, 'OPTIONS')).status, 503)
      assert.deepEqual(await statuses(2), [200, 503])
      assert.notEqual((await get('/hello', preflight, 'OPTIONS')).status, 503)
    })
    add('a preflight is counted if that is written', { limit: '1/h', countPreflights: true }, async ({ get }) => {
      assert.notEqual((await get('/hello', preflight, 'OPTIONS')).status, 503)
      assert.equal((await get('/hello', preflight, 'OPTIONS')).status, 503)
    })
    const others: readonly (readonly [string, Readonly<Record<string, string>>, string?])[] = [
      ['without an origin', { 'access-control-request-method': 'POST' }],
      ['without a method that is asked for', { origin: 'https://a.example' }],
      ['that names another method', { ...preflight, 'x-http-method-override': 'POST' }],
      ['that names another method in its query', preflight, '/hello?_method=POST'],
      ['with a body', { ...preflight, 'content-length': '0000' }],
    ]
    for (const [what, headers, path = '/hello'] of others) {
      if (options.speaks === 'h2' && what === 'with a body') continue
      add(`OPTIONS ${what} is counted`, { limit: '1/h' }, async ({ get, statuses }) => {
        assert.notEqual((await get(path, headers, 'OPTIONS')).status, 503)
        assert.deepEqual(await statuses(1), [503])
      })
    }
  }
  return tests
}
