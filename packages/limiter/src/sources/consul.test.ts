import { createSource } from '@test/sources/create-source'
import { createConsulDouble } from '@test/sources/fake-consul'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { sourceSuite } from '../testing/sources/suite.ts'
import { consul } from './consul.ts'

const key = 'diana/my rules'

async function createWatch(own: Readonly<Record<string, unknown>> = {}, options: { readonly token?: string } = {}) {
  const double = await createConsulDouble(options)
  const controller = new AbortController()
  onTestFinished(() => {
    controller.abort()
    return double.stop()
  })
  const source = createSource(consul, `http://${double.authority}`, { key, ...own })
  const watch = source.watch(controller.signal)[Symbol.asyncIterator]()
  return { double, watch }
}

describe('consul keeps the promises of a source', () => {
  const tests = sourceSuite({
    writes: true,
    async create() {
      const double = await createConsulDouble()
      return {
        ...double,
        source: createSource(consul, `http://${double.authority}`, { key }),
        put: async text => double.put(key, text),
        remove: async () => double.remove(key),
        close: double.stop,
      }
    },
    createAt: authority => createSource(consul, `http://${authority}`, { key }),
  })
  it.each(tests)('$name', ({ run }) => run())
})

describe('consul', () => {
  it('consul reads without waiting first, then waits for the next index', async () => {
    const { double, watch } = await createWatch()
    double.put(key, 'one')
    expect((await watch.next()).value).toEqual({ text: 'one', version: '11' })
    const next = watch.next()
    await vi.waitFor(() => expect(double.queries).toHaveLength(2))
    double.put(key, 'two')
    expect((await next).value).toEqual({ text: 'two', version: '12' })
    expect(double.queries).toEqual(['index=0&wait=55000ms', 'index=11&wait=55000ms'])
  })

  it('consul polls again after a timeout or an answer without a change', async () => {
    const { double, watch } = await createWatch({ wait: '100ms' })
    double.put(key, 'one')
    await watch.next()
    const next = watch.next()
    await vi.waitFor(() => expect(double.queries).toHaveLength(3))
    double.wake()
    await vi.waitFor(() => expect(double.queries).toHaveLength(4))
    double.put(key, 'two')
    expect((await next).value.text).toBe('two')
    expect(double.queries.slice(1).every(query => query.startsWith('index=11&'))).toBe(true)
  })

  it('consul begins at 0 again when the index goes down', async () => {
    const { double, watch } = await createWatch()
    double.put(key, 'one')
    await watch.next()
    const next = watch.next()
    await vi.waitFor(() => expect(double.queries).toHaveLength(2))
    double.restore()
    await vi.waitFor(() => expect(double.queries).toHaveLength(4))
    double.put(key, 'two')
    expect((await next).value.text).toBe('two')
    expect(double.queries.map(query => query.split('&')[0])).toEqual(['index=0', 'index=11', 'index=0', 'index=1'])
  })

  it('consul sends its token, and reports when it is refused', async () => {
    const allowed = await createWatch({ token: 'sesame' }, { token: 'sesame' })
    expect((await allowed.watch.next()).value.text).toBe('')
    const refused = await createWatch({ token: 'wrong' }, { token: 'sesame' })
    await expect(refused.watch.next()).rejects.toThrow('refused the credentials (HTTP 403)')
  })

  it('consul does not treat a 404 of another server as a missing key', async () => {
    const { createHttpDouble, send } = await import('@test/sources/fake-http')
    const double = await createHttpDouble((_asked, response) => send(response, 404, 'no such page'))
    onTestFinished(() => double.stop())
    const source = createSource(consul, `http://${double.authority}`, { key })
    const watch = source.watch(new AbortController().signal)[Symbol.asyncIterator]()
    await expect(watch.next()).rejects.toThrow('answered without X-Consul-Index')
  })

  it.each(['[]', '{}', 'null', '[{"Value":1,"ModifyIndex":1}]', '[{"Value":"/w==","ModifyIndex":1}]', 'rules: []'])(
    'consul throws at %s',
    async body => {
      const { createHttpDouble, send } = await import('@test/sources/fake-http')
      const double = await createHttpDouble((_asked, response) => send(response, 200, body, { 'x-consul-index': '1' }))
      onTestFinished(() => double.stop())
      const source = createSource(consul, `http://${double.authority}`, { key })
      const watch = source.watch(new AbortController().signal)[Symbol.asyncIterator]()
      await expect(watch.next()).rejects.toMatchObject({ code: 'SOURCE_FAILED' })
    },
  )
})
