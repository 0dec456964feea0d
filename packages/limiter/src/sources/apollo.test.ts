import { createSource } from '@test/sources/create-source'
import { type ApolloOptions, createApolloDouble } from '@test/sources/fake-apollo'
import { createHttpDouble, send } from '@test/sources/fake-http'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { sourceSuite } from '../testing/sources/suite.ts'
import { apollo } from './apollo.ts'

const address = { appId: 'shop', namespace: 'diana.yaml' }
const place = { ...address, cluster: 'default' }

async function createWatch(more: Readonly<Record<string, unknown>> = {}, options: Partial<ApolloOptions> = {}) {
  const double = await createApolloDouble({ ...place, ...options })
  const controller = new AbortController()
  onTestFinished(() => {
    controller.abort()
    return double.stop()
  })
  const source = createSource(apollo, `http://${double.authority}`, { ...address, ...more })
  return { double, watch: source.watch(controller.signal)[Symbol.asyncIterator]() }
}

describe('apollo keeps the promises of a source', () => {
  const tests = sourceSuite({
    async create() {
      const double = await createApolloDouble(place)
      return {
        ...double,
        source: createSource(apollo, `http://${double.authority}`, address),
        put: async text => double.put('content', text),
        remove: async () => double.remove(),
        close: double.stop,
      }
    },
    createAt: authority => createSource(apollo, `http://${authority}`, address),
  })
  it.each(tests)('$name', ({ run }) => run())
})

describe('apollo', () => {
  it('apollo reads, is notified, and reads with the messages of the notification', async () => {
    const { double, watch } = await createWatch()
    double.put('content', 'one')
    expect((await watch.next()).value).toEqual({ text: 'one', version: '20261115-101' })
    const next = watch.next()
    await vi.waitFor(() => expect(double.requests).toHaveLength(4))
    double.put('content', 'two')
    expect((await next).value).toEqual({ text: 'two', version: '20261115-102' })
    const asked = double.requests.map(request => {
      const { pathname, searchParams } = new URL(request, 'http://double')
      const [notification] = JSON.parse(searchParams.get('notifications') ?? '[{}]')
      const { details } = JSON.parse(searchParams.get('messages') ?? '{}')
      return { pathname, ...notification, ...details }
    })
    expect(asked).toEqual([
      { pathname: '/configs/shop/default/diana.yaml' },
      { pathname: '/notifications/v2', namespaceName: 'diana.yaml', notificationId: -1 },
      { pathname: '/configs/shop/default/diana.yaml', 'shop+default+diana.yaml': 101 },
      { pathname: '/notifications/v2', namespaceName: 'diana.yaml', notificationId: 101 },
      { pathname: '/configs/shop/default/diana.yaml', 'shop+default+diana.yaml': 102 },
    ])
  })

  it('apollo polls again after a 304', async () => {
    const { double, watch } = await createWatch({}, { holdMs: 1 })
    await watch.next()
    const next = watch.next()
    await vi.waitFor(() => expect(double.requests).toHaveLength(4))
    double.put('content', 'one')
    expect((await next).value.text).toBe('one')
  })

  it('apollo reads one item of a namespace of properties', async () => {
    const namespace = 'application.properties'
    const { double, watch } = await createWatch({ namespace, key: 'diana.rules' }, { namespace: 'application' })
    double.put('diana.rules', 'one')
    expect((await watch.next()).value.text).toBe('one')
    double.put('something.else', 'two')
    expect((await watch.next()).value.text).toBe('')
  })

  it('apollo signs its requests with the access key', async () => {
    const { double, watch } = await createWatch({ token: 'sesame' }, { accessKey: 'sesame' })
    double.put('content', 'one')
    expect((await watch.next()).value.text).toBe('one')
    double.put('content', 'two')
    expect((await watch.next()).value.text).toBe('two')
    const refused = await createWatch({ token: 'wrong' }, { accessKey: 'sesame' })
    await expect(refused.watch.next()).rejects.toThrow('refused the credentials (HTTP 401)')
  })

  it.each([
    ['/configs/shop/default/diana.yaml', 'rules: []'],
    ['/configs/shop/default/diana.yaml', '{"configurations":{"content":1},"releaseKey":"1"}'],
    ['/configs/shop/default/diana.yaml', '{"configurationChanges":[],"releaseKey":"1"}'],
    ['/notifications/v2', '[]'],
    ['/notifications/v2', '[{"notificationId":"1"}]'],
    ['/notifications/v2', '<html>'],
  ])('apollo throws when %s answers %s', async (path, body) => {
    const config = '{"configurations":{"content":"fine"},"releaseKey":"1"}'
    const double = await createHttpDouble(({ url }, response) => {
      send(response, 200, url.pathname === path ? body : config)
    })
    onTestFinished(() => double.stop())
    const watch = createSource(apollo, `http://${double.authority}`, address).watch(new AbortController().signal)
    const reading = async () => {
      for await (const { text } of watch) expect(text).toBe('fine')
    }
    await expect(reading()).rejects.toThrow('answered in a shape that this source does not know')
  })
})
