import { type RedisServer, startRedis } from '@test/servers/redis-server'
import { createSource, stopsOf } from '@test/sources/create-source'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { sourceSuite } from '../testing/sources/suite.ts'
import { redis } from './redis.ts'

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.close())

let keys = 0
const newKey = () => `diana:rules:${++keys}`

function read(address: string, options: Readonly<Record<string, unknown>>) {
  const controller = new AbortController()
  onTestFinished(() => controller.abort())
  return createSource(redis, address, options).watch(controller.signal)[Symbol.asyncIterator]()
}

it('a key that holds an empty text is a document, one that does not exist is none', async () => {
  const key = newKey()
  const watch = read(`redis://${server.authority}`, { key, interval: '100ms' })
  expect((await watch.next()).value).toMatchObject({ text: '', isMissing: true })
  await server.client.set(key, '')
  expect((await watch.next()).value).toEqual({ text: '', version: expect.any(String) })
  await server.client.del(key)
  expect((await watch.next()).value).toMatchObject({ text: '', isMissing: true })
})

describe('redis keeps the promises of a source', () => {
  const tests = sourceSuite({
    writes: true,
    async create() {
      const key = newKey()
      return {
        source: createSource(redis, `redis://${server.authority}`, { key }),
        async put(text) {
          await server.client.set(key, text)
          await server.client.publish(`${key}:changed`, '')
        },
        async remove() {
          await server.client.del(key)
          await server.client.publish(`${key}:changed`, '')
        },
        ...stopsOf(server),
      }
    },
    createAt: authority => createSource(redis, `redis://${authority}`, { key: 'diana:rules' }),
  })
  it.each(tests)('$name', ({ run }) => run())
})

describe('redis', () => {
  it('redis subscribes to a configured channel', async () => {
    const key = newKey()
    const watch = read(`redis://${server.authority}`, { key, channel: 'news' })
    await watch.next()
    const next = watch.next()
    await server.client.set(key, 'one')
    await server.client.publish('news', 'look')
    expect((await next).value.text).toBe('one')
  })

  it('a change is reported by keyspace notifications if the server sends them', async () => {
    const key = newKey()
    await server.client.config('SET', 'notify-keyspace-events', 'K$g')
    onTestFinished(() => void server.client.config('SET', 'notify-keyspace-events', ''))
    const other = server.client.duplicate({ db: 3 })
    onTestFinished(() => other.disconnect())
    const watch = read(`redis://${server.authority}/3`, { key })
    await watch.next()
    await other.set(key, 'one')
    expect((await watch.next()).value.text).toBe('one')
    await other.del(key)
    expect((await watch.next()).value.text).toBe('')
  })

  it('redis finds a change by polling', async () => {
    const key = newKey()
    const watch = read(`redis://${server.authority}`, { key, interval: '100ms' })
    await watch.next()
    await server.client.set(key, 'one')
    expect((await watch.next()).value.text).toBe('one')
  })

  it('redis works with a user that has only the required permissions', async () => {
    const key = newKey()
    await server.client.set(key, 'one')
    const rights = [`~${key}`, `&${key}:changed`, '-@all', '+getrange', '+subscribe']
    await server.client.call('ACL', 'SETUSER', 'diana', 'on', '>open:sesame', ...rights)
    onTestFinished(() => void server.client.call('ACL', 'DELUSER', 'diana'))
    const options = { key, username: 'diana', password: 'open:sesame' }
    expect((await read(`redis://${server.authority}`, options).next()).value.text).toBe('one')
    const address = `redis://diana:open%3Asesame@${server.authority}`
    expect((await read(address, { key }).next()).value.text).toBe('one')
  })

  it('redis throws when its credentials are refused, and does not show them', async () => {
    const { inspect } = await import('node:util')
    const watch = read(`redis://unknown:hunter2@${server.authority}`, { key: newKey() })
    const error = await watch.next().catch(error => error as Error)
    expect(error).toMatchObject({ code: 'SOURCE_FAILED', message: expect.stringContaining('WRONGPASS') })
    expect(inspect(error, { depth: 9 })).not.toContain('hunter2')
  })

  it.each([
    ['a list', async (key: string) => server.client.rpush(key, 'one'), 'WRONGTYPE'],
    ['bytes that are no text', async (key: string) => server.client.set(key, Buffer.from([0xff])), 'not UTF-8'],
  ])('redis throws at %s', async (_what, put, message) => {
    const key = newKey()
    await put(key)
    await expect(read(`redis://${server.authority}`, { key }).next()).rejects.toThrow(message)
  })

  it('redis closes both its connections', async () => {
    const key = newKey()
    const ours = async () => String(await server.client.client('LIST')).match(/name=diana-rules/g)?.length ?? 0
    await vi.waitFor(async () => expect(await ours()).toBe(0))
    const controller = new AbortController()
    const source = createSource(redis, `redis://${server.authority}`, { key })
    const watch = source.watch(controller.signal)[Symbol.asyncIterator]()
    await watch.next()
    expect(await ours()).toBe(2)
    const last = watch.next()
    controller.abort()
    await last
    await vi.waitFor(async () => expect(await ours()).toBe(0))
  })

  it('redis names the package to install if ioredis is missing', async () => {
    vi.doMock('ioredis', () => {
      throw new Error('not installed')
    })
    onTestFinished(() => void vi.doUnmock('ioredis'))
    await expect(read('redis://127.0.0.1:1', { key: 'a' }).next()).rejects.toThrow('npm install ioredis')
  })

  it('redis refuses another kind of address', () => {
    expect(() => createSource(redis, 'http://host', { key: 'a' })).toThrow('begins with redis:// or rediss://')
    expect(() => createSource(redis, 'redis://host/rules', { key: 'a' })).toThrow('the number of a database')
  })
})
