import { createSource } from '@test/sources/create-source'
import { createHttpDouble, send } from '@test/sources/fake-http'
import { createNacosDouble, type NacosOptions } from '@test/sources/fake-nacos'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { sourceSuite } from '../testing/sources/suite.ts'
import { nacos } from './nacos.ts'

const address = { dataId: 'diana.yaml', group: 'EDGE', interval: '100ms' }
const user = { username: 'diana', password: 'pa&ss=wörd' }

async function createWatch(more: Readonly<Record<string, unknown>> = {}, options: Partial<NacosOptions> = {}) {
  const double = await createNacosDouble({ ...address, ...options })
  const controller = new AbortController()
  onTestFinished(() => {
    controller.abort()
    return double.stop()
  })
  const source = createSource(nacos, `http://${double.authority}`, { ...address, ...more })
  return { double, watch: source.watch(controller.signal)[Symbol.asyncIterator]() }
}

describe.each(['its long poll', 'reading now and then'])('nacos keeps the promises of a source by %s', by => {
  const tests = sourceSuite({
    async create() {
      const double = await createNacosDouble(by === 'its long poll' ? address : { ...address, without: 'v1' })
      return {
        ...double,
        source: createSource(nacos, `http://${double.authority}`, address),
        put: async text => double.put(text),
        remove: async () => double.remove(),
        close: double.stop,
      }
    },
    createAt: authority => createSource(nacos, `http://${authority}`, address),
  })
  it.each(tests)('$name', ({ run }) => run())
})

describe('nacos', () => {
  it.each([{}, { tenant: 'team-7' }])('nacos reports a change by the long poll %j', async tenant => {
    const { double, watch } = await createWatch(tenant, tenant)
    double.put('hello')
    expect((await watch.next()).value).toEqual({ text: 'hello', version: '5d41402abc4b2a76b9719d911017c592' })
    const next = watch.next()
    await vi.waitFor(() => expect(double.requests).toHaveLength(2))
    double.put('two')
    expect((await next).value.text).toBe('two')
    const poll = 'POST /nacos/v1/cs/configs/listener'
    expect(double.requests).toEqual(['GET /nacos/v1/cs/configs', poll, 'GET /nacos/v1/cs/configs'])
  })

  it('nacos polls again when nothing changed', async () => {
    const { double, watch } = await createWatch({}, { holdMs: 1 })
    await watch.next()
    const next = watch.next()
    await vi.waitFor(() => expect(double.requests).toHaveLength(4))
    double.put('one')
    expect((await next).value.text).toBe('one')
    expect(double.requests.slice(1, 4)).toEqual(Array(3).fill('POST /nacos/v1/cs/configs/listener'))
  })

  it('nacos uses the third API if there is no long poll', async () => {
    const { double, watch } = await createWatch({}, { without: 'listener' })
    double.put('one')
    expect((await watch.next()).value.text).toBe('one')
    const next = watch.next()
    await vi.waitFor(() => expect(double.requests).toContain('GET /nacos/v3/client/cs/config'))
    double.put('two')
    expect((await next).value.text).toBe('two')
  })

  it.each([undefined, 'v1'] as const)(
    'nacos logs in, and again when the token has expired (without %s)',
    async without => {
      const { double, watch } = await createWatch(user, { user, holdMs: 1, ...(without && { without }) })
      double.put('one')
      expect((await watch.next()).value.text).toBe('one')
      double.expireTokens()
      double.put('two')
      expect((await watch.next()).value.text).toBe('two')
      expect(double.requests.filter(request => request.endsWith('login')).length).toBeGreaterThanOrEqual(2)
    },
  )

  it('nacos reports refused credentials', async () => {
    const { watch } = await createWatch({ ...user, password: 'wrong' }, { user })
    await expect(watch.next()).rejects.toThrow('refused the credentials (HTTP 403)')
  })

  it('nacos keeps a path of the address', async () => {
    const { double } = await createWatch()
    const source = createSource(nacos, `http://${double.authority}/nacos/`, address)
    double.put('one')
    const watch = source.watch(new AbortController().signal)[Symbol.asyncIterator]()
    expect((await watch.next()).value.text).toBe('one')
    expect(source.name).toBe(`nacos http://${double.authority}/nacos EDGE diana.yaml`)
    await watch.return?.()
  })

  it.each([
    ['a page in place of the poll', '/nacos/v1/cs/configs/listener', '<html>'],
    ['another document in the poll', '/nacos/v1/cs/configs/listener', 'other.yaml%02EDGE%01'],
    ['no JSON', '/nacos/v3/client/cs/config', 'rules: []'],
    ['JSON of another shape', '/nacos/v3/client/cs/config', '{"code":"0"}'],
    ['success without a document', '/nacos/v3/client/cs/config', '{"code":0}'],
    ['a failure', '/nacos/v3/client/cs/config', '{"code":30000,"message":"server error"}'],
  ])('nacos throws at %s', async (_what, path, body) => {
    const double = await createHttpDouble(({ url }, response) => {
      if (url.pathname === path) return send(response, 200, body)
      const isRead = url.pathname === '/nacos/v1/cs/configs' && path.includes('v1')
      send(response, isRead ? 200 : 404, isRead ? 'rules: []' : 'no such page')
    })
    onTestFinished(() => double.stop())
    const watch = createSource(nacos, `http://${double.authority}`, address).watch(new AbortController().signal)
    const reading = async () => {
      for await (const { text } of watch) expect(text).toBe('rules: []')
    }
    await expect(reading()).rejects.toMatchObject({ code: 'SOURCE_FAILED' })
  })
})
