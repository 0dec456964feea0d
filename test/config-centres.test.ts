import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLimiter, type Limiter } from 'diana-limiter'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { createDemoService } from '../packages/gateway/src/demo.ts'
import { createGateway } from '../packages/gateway/src/gateway.ts'
import { startEtcd } from '../packages/limiter/src/sources/doubles/etcd-server.ts'
import { startRedis } from '../packages/limiter/src/sources/doubles/redis-server.ts'

/** A real config centre that holds one rule document. */
interface Centre {
  readonly remote: string
  put(text: string): Promise<void>
  remove(): Promise<void>
  stop(): Promise<void>
  start(): Promise<void>
  close(): Promise<void>
}

const centres: Readonly<Record<string, () => Promise<Centre>>> = {
  async etcd() {
    const { authority, put, remove, ...rest } = await startEtcd()
    const remote = `{ etcd: http://${authority}, key: /diana/rules`
    return { ...rest, remote, put: text => put('/diana/rules', text), remove: () => remove('/diana/rules') }
  },
  async redis() {
    const { authority, client, ...rest } = await startRedis()
    const remote = `{ redis: redis://${authority}, key: rules`
    const tell = () => client.publish('rules:changed', 'now')
    return {
      ...rest,
      remote,
      put: async text => void (await client.set('rules', text).then(tell)),
      remove: async () => void (await client.del('rules').then(tell)),
    }
  },
}

const local = `
  - { id: steady, by: header:x-caller, limit: 300/1h, algorithm: fixed-window }
  - { id: swinging, match: { path: /orders }, limit: 500/1h, algorithm: token-bucket }
`

describe.each(Object.entries(centres))('a gateway on rules from %s', (_name, create) => {
  const closing: (() => Promise<unknown>)[] = []
  let centre: Centre
  let folder: string

  beforeAll(async () => {
    centre = await create()
    folder = await mkdtemp(join(tmpdir(), 'diana-centre-'))
  }, 30_000)
  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close()
    await centre.remove()
  })
  afterAll(async () => {
    await centre.close()
    await rm(folder, { recursive: true })
  })

  async function start(words = ''): Promise<{ limiter: Limiter; get(path: string, caller?: string): Promise<number> }> {
    const config = join(folder, 'diana.yaml')
    await writeFile(config, `remote: ${centre.remote}${words} }\nrules:${local}`)
    const limiter = await createLimiter({ config })
    const service = createDemoService()
    const upstream = await service.listen({ port: 0, host: '127.0.0.1' })
    const gateway = await createGateway({ limiter, upstream })
    await gateway.listen({ port: 0, host: '127.0.0.1' })
    closing.push(
      () => service.close(),
      () => limiter.close(),
      () => gateway.close(),
    )
    const { port } = gateway.server.address() as AddressInfo
    const get = async (path: string, caller = 'ann') => {
      const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers: { 'x-caller': caller } })
      await response.arrayBuffer()
      return response.status
    }
    return { limiter, get }
  }
  const limits = (limiter: Limiter): string =>
    limiter
      .status()
      .rules.map(({ id, origin }) => `${id} ${origin}`)
      .join('\n')
  const remoteStatus = (limiter: Limiter) => limiter.status().sources.find(({ role }) => role === 'remote')!

  it('obeys a rule that was changed in the centre within a second', async () => {
    const { get } = await start()
    expect(await get('/hello')).toBe(200)
    const before = Date.now()
    await centre.put('rules:\n  - { id: shut, match: { path: /hello }, limit: 0/s }\n')
    await vi.waitFor(async () => expect(await get('/hello', 'bob')).toBe(503), { timeout: 1000, interval: 20 })
    expect(Date.now() - before).toBeLessThan(1000)
    expect(await get('/', 'bob')).toBe(200)
  })

  it('fails no call and loses no count across 200 reloads under load', async () => {
    await centre.put('rules:\n  - { id: swinging, match: { path: /orders }, limit: 100/1h, algorithm: token-bucket }\n')
    const { limiter, get } = await start()
    const statuses = new Map<string, number>()
    let running = true
    const load = async (path: string, caller: string) => {
      while (running) {
        const status = await get(path, caller)
        statuses.set(`${path} ${caller} ${status}`, (statuses.get(`${path} ${caller} ${status}`) ?? 0) + 1)
      }
    }
    const callers = [load('/hello', 'ann'), load('/hello', 'bob'), load('/orders', 'cy'), load('/', 'dan')]
    let taken = 0
    limiter.events.on('rules', () => taken++)
    for (let reload = 1; reload <= 200; reload++) {
      const limit = reload % 2 === 0 ? 100 : 120
      const rules = [
        `{ id: swinging, match: { path: /orders }, limit: ${limit}/1h, algorithm: token-bucket }`,
        `{ id: other-${reload % 3}, match: { path: /none }, limit: ${reload}/s }`,
      ]
      await centre.put(`rules:\n${rules.map(rule => `  - ${rule}\n`).join('')}`)
      await vi.waitFor(() => expect(taken).toBeGreaterThanOrEqual(reload), { timeout: 2000, interval: 2 })
    }
    await vi.waitFor(() => expect(statuses.get('/hello ann 503') ?? 0).toBeGreaterThan(0), { timeout: 20_000 })
    await vi.waitFor(() => expect(statuses.get('/hello bob 503') ?? 0).toBeGreaterThan(0), { timeout: 20_000 })
    running = false
    await Promise.all(callers)
    expect(limiter.status().sources[1]).toMatchObject({ rejected: 0 })
    const others = [...statuses.keys()].filter(key => !key.endsWith(' 200') && !key.endsWith(' 503'))
    expect(others).toEqual([])
    expect(statuses.get('/hello ann 200')).toBe(300)
    expect(statuses.get('/hello bob 200')).toBe(300)
    // the bucket of 100 or 120 was emptied once; an hour's refill is a call every 30 seconds
    expect(statuses.get('/orders cy 200')).toBeLessThanOrEqual(122)
    expect(statuses.get('/orders cy 200')).toBeGreaterThanOrEqual(100)
  }, 60_000)

  it.each([
    ['empty', ''],
    ['cut off', 'rules:\n  - { id: shut, limit: 0/'],
    ['of another type', '[1, 2, 3]'],
    ['gigantic', `rules:\n${'  # filler filler filler\n'.repeat(200_000)}`],
    [
      'too many rules',
      `rules:\n${Array.from({ length: 10_001 }, (_, i) => `  - { id: r${i}, limit: 1/s }\n`).join('')}`,
    ],
    [
      'an alias bomb',
      `a: &a [x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nrules: [*c,*c,*c,*c]\n`,
    ],
    ['about the store', 'store: { redis: redis://127.0.0.1:1 }\nrules:\n  - { id: a, limit: 1/s }\n'],
  ])(
    'keeps its rules when the document is %s',
    async (_what, text) => {
      await centre.put('rules:\n  - { id: good, match: { path: /good }, limit: 7/s }\n')
      const { limiter, get } = await start()
      const before = limits(limiter)
      expect(before).toContain('good ')
      await centre.put(text)
      await vi.waitFor(() => expect(remoteStatus(limiter).trouble).toBeTruthy(), { timeout: 8000 })
      expect(limits(limiter)).toBe(before)
      expect(await get('/good')).not.toBe(500)
    },
    20_000,
  )

  it('keeps its rules when the document is deleted, and takes the next one', async () => {
    await centre.put('rules:\n  - { id: good, limit: 7/s }\n')
    const { limiter } = await start()
    await centre.remove()
    await vi.waitFor(() => expect(remoteStatus(limiter).rejected).toBe(1), { timeout: 5000 })
    expect(limits(limiter)).toContain('good ')
    await centre.put('rules:\n  - { id: better, limit: 7/s }\n')
    await vi.waitFor(() => expect(limits(limiter)).toContain('better '), { timeout: 5000 })
  }, 20_000)

  it('starts on local rules while the centre is down, and takes the remote ones when it comes', async () => {
    await centre.put('rules:\n  - { id: steady, enabled: false, limit: 1/s }\n')
    await centre.stop()
    const before = Date.now()
    const { limiter, get } = await start()
    expect(Date.now() - before).toBeLessThan(2500)
    expect(limits(limiter)).toContain('steady ')
    expect(await get('/hello')).toBe(200)
    await centre.start()
    await vi.waitFor(() => expect(limits(limiter)).not.toContain('steady '), { timeout: 15_000 })
  }, 30_000)

  it('goes on with the last good rules while the centre is away, and after a restart with their snapshot', async () => {
    const snapshot = join(folder, 'snapshot.json')
    await centre.put('rules:\n  - { id: remembered, limit: 9/s }\n')
    const { limiter } = await start(`, snapshot: ${snapshot}`)
    await vi.waitFor(async () => expect(await readFile(snapshot, 'utf8')).toContain('remembered'))
    await centre.stop()
    await vi.waitFor(() => expect(remoteStatus(limiter).trouble).toBeTruthy(), { timeout: 8000 })
    expect(limits(limiter)).toContain('remembered ')
    const again = await start(`, snapshot: ${snapshot}`)
    expect(limits(again.limiter)).toContain('remembered ')
    expect(remoteStatus(again.limiter).fromSnapshot).toBe(true)
    await centre.start()
    await vi.waitFor(() => expect(remoteStatus(again.limiter).fromSnapshot).toBe(false), { timeout: 15_000 })
  }, 40_000)
})
