import { request as httpRequest } from 'node:http'
import { type EtcdServer, startEtcd } from '@test/servers/etcd-server'
import { createSource, stopsOf } from '@test/sources/create-source'
import { type Answering, createHttpDouble, send } from '@test/sources/fake-http'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { sourceSuite } from '../testing/sources/suite.ts'
import { etcd } from './etcd.ts'

let server: EtcdServer
beforeAll(async () => {
  server = await startEtcd()
})
afterAll(() => server.close())

let keys = 0
const newKey = () => `/diana/rules ${++keys}`

function read(address: string, options: Readonly<Record<string, unknown>>) {
  const controller = new AbortController()
  onTestFinished(() => controller.abort())
  return createSource(etcd, address, options).watch(controller.signal)[Symbol.asyncIterator]()
}

/** A door before the real etcd through which a test sees and delays what the source asks. */
async function createDoor(before: (path: string) => Promise<void>) {
  const asked: { path: string; body: string; token: string | undefined }[] = []
  const answer: Answering = async ({ request, url, body }, response) => {
    asked.push({ path: url.pathname, body, token: request.headers.authorization })
    await before(url.pathname)
    const [host, port] = server.authority.split(':')
    const { method, headers } = request
    const onward = httpRequest({ host, port, path: url.pathname, method, headers }, reply => {
      response.writeHead(reply.statusCode ?? 500, reply.headers)
      reply.pipe(response)
    })
    onward.on('error', () => response.destroy())
    response.on('close', () => onward.destroy())
    onward.end(body)
  }
  const door = await createHttpDouble(answer)
  onTestFinished(() => door.stop())
  return { ...door, asked }
}

async function createNonsense(answer: Answering) {
  const double = await createHttpDouble(answer)
  onTestFinished(() => double.stop())
  return double
}

describe('etcd keeps the promises of a source', () => {
  const tests = sourceSuite({
    writes: true,
    async create() {
      const key = newKey()
      return {
        source: createSource(etcd, `http://${server.authority}`, { key }),
        put: text => server.put(key, text),
        remove: () => server.remove(key),
        ...stopsOf(server),
      }
    },
    createAt: authority => createSource(etcd, `http://${authority}`, { key: '/diana/rules' }),
  })
  it.each(tests)('$name', ({ run }) => run())
})

describe('etcd', () => {
  it('etcd gives each document the revision that wrote it', async () => {
    const key = newKey()
    const watch = read(`http://${server.authority}`, { key })
    expect((await watch.next()).value).toEqual({ text: '', version: '0', isMissing: true })
    await server.put(key, 'one')
    await server.remove(key)
    await server.put(key, 'two')
    const documents = [(await watch.next()).value, (await watch.next()).value, (await watch.next()).value]
    expect(documents.map(({ text }) => text)).toEqual(['one', '', 'two'])
    const revisions = documents.map(({ version }) => Number(version))
    expect(revisions).toEqual([revisions[0], revisions[0]! + 1, revisions[0]! + 2])
  })

  it('etcd watches from the revision after the one it read, so that nothing between is lost', async () => {
    const key = newKey()
    await server.put(key, 'one')
    let isLate = false
    const door = await createDoor(async path => {
      if (path !== '/v3/watch' || isLate) return
      isLate = true
      await server.put(key, 'two')
    })
    const watch = read(`http://${door.authority}`, { key })
    expect((await watch.next()).value.text).toBe('one')
    expect((await watch.next()).value.text).toBe('two')
    expect(door.asked.map(({ path }) => path)).toEqual(['/v3/kv/range', '/v3/watch'])
  })

  it('etcd is read again when the revision to watch from was compacted', async () => {
    const key = newKey()
    await server.put(key, 'one')
    let isCompacted = false
    const door = await createDoor(async path => {
      if (path !== '/v3/watch' || isCompacted) return
      isCompacted = true
      await server.put(key, 'two')
      await server.put(key, 'three')
      const { header } = (await server.ask('/v3/kv/range', { key: 'eA==' })) as { header: { revision: string } }
      await server.ask('/v3/kv/compaction', { revision: header.revision, physical: true })
    })
    const watch = read(`http://${door.authority}`, { key })
    expect((await watch.next()).value.text).toBe('one')
    expect((await watch.next()).value.text).toBe('three')
    const next = watch.next()
    await vi.waitFor(() => expect(door.asked).toHaveLength(4))
    await server.put(key, 'four')
    expect((await next).value.text).toBe('four')
    const paths = ['/v3/kv/range', '/v3/watch', '/v3/kv/range', '/v3/watch']
    expect(door.asked.map(({ path }) => path)).toEqual(paths)
  })

  it('etcd is read again when the stream has been silent for a while', async () => {
    const key = newKey()
    const door = await createDoor(async () => {})
    const watch = read(`http://${door.authority}`, { key, interval: '100ms' })
    await watch.next()
    const next = watch.next()
    await vi.waitFor(() => expect(door.asked.length).toBeGreaterThanOrEqual(4))
    await server.put(key, 'one')
    expect((await next).value.text).toBe('one')
  })

  it('etcd ignores changes of other keys', async () => {
    const key = newKey()
    const watch = read(`http://${server.authority}`, { key })
    await watch.next()
    await server.put(`${key}/below`, 'other')
    await server.put(key, 'mine')
    expect((await watch.next()).value.text).toBe('mine')
  })

  it('etcd logs in, and again when its token has expired', async () => {
    const key = newKey()
    const door = await createDoor(async () => {})
    const root = { name: 'root', password: 'correct horse' }
    await server.ask('/v3/auth/user/add', root)
    await server.ask('/v3/auth/user/grant', { user: 'root', role: 'root' })
    await server.ask('/v3/auth/enable', {})
    const { token } = (await server.ask('/v3/auth/authenticate', root)) as { token: string }
    const put = (text: string) =>
      server.ask('/v3/kv/put', { key: Buffer.from(key).toString('base64'), value: btoa(text) }, token)
    try {
      await expect(read(`http://${door.authority}`, { key }).next()).rejects.toThrow('user name is empty')
      const wrong = read(`http://root:hunter2@${door.authority}`, { key })
      await expect(wrong.next()).rejects.toThrow(/authentication failed/)

      await put('one')
      const options = { key, username: root.name, password: root.password, interval: '200ms' }
      const watch = read(`http://${door.authority}`, options)
      expect((await watch.next()).value.text).toBe('one')
      const logins = () => door.asked.filter(({ path }) => path === '/v3/auth/authenticate').length
      const before = logins()
      const next = watch.next()
      // a change of password, even to the same, ends the sessions of that user
      await server.ask('/v3/auth/user/changepw', root, token)
      const fresh = (await server.ask('/v3/auth/authenticate', root)) as { token: string }
      await vi.waitFor(() => expect(logins()).toBe(before + 1), { timeout: 5000 })
      await server.ask('/v3/kv/put', { key: Buffer.from(key).toString('base64'), value: btoa('two') }, fresh.token)
      expect((await next).value.text).toBe('two')
    } finally {
      const last = (await server.ask('/v3/auth/authenticate', root)) as { token: string }
      await server.ask('/v3/auth/disable', {}, last.token)
    }
  })

  const range = '{"header":{"revision":"5"},"kvs":[{"value":"b25l","mod_revision":"5"}]}'
  it.each([
    ['a range of another shape', '{"header":{}}', '', 'a shape'],
    ['a range that is no JSON', 'rules: []', '', 'a shape'],
    [
      'a value that is no text',
      '{"header":{"revision":"5"},"kvs":[{"value":"/w==","mod_revision":"5"}]}',
      '',
      'not UTF-8',
    ],
    ['a watch that is no JSON', range, 'rules: []\n', 'a shape'],
    ['a watch of another shape', range, '{"result":{"events":"none"}}\n', 'a shape'],
    ['a watch that fails', range, '{"error":{"message":"etcdserver: no leader"}}\n', 'etcdserver: no leader'],
    [
      'a watch that is refused',
      range,
      '{"result":{"canceled":true,"cancel_reason":"permission denied"}}\n',
      'permission denied',
    ],
    ['a watch that ends', range, '', 'ended the stream'],
    ['a line without an end', range, 'x'.repeat(5 * 1024 * 1024), 'more than 4 MiB'],
  ])('etcd throws at %s', async (_what, rangeReply, watchReply, message) => {
    const double = await createNonsense(({ url }, response) =>
      send(response, 200, url.pathname === '/v3/watch' ? watchReply : rangeReply),
    )
    const watch = createSource(etcd, `http://${double.authority}`, { key: 'a' }).watch(new AbortController().signal)
    const reading = async () => {
      for await (const { text } of watch) expect(text).toBe('one')
    }
    await expect(reading()).rejects.toThrow(message)
  })
})
