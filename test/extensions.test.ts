import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { randomRuns } from '@test/random-runs'
import { createLimiter } from 'diana-limiter'
import { rateLimit } from 'diana-limiter/http'
import type { TransactionalStore } from 'diana-limiter/store'
import { algorithmSuite, dimensionSuite, storeSuite } from 'diana-limiter/testing'
import { transformWithOxc } from 'vite'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { type RedisServer, startRedis } from './helpers/servers/redis-server.ts'

vi.spyOn(console, 'log').mockImplementation(() => {})
const { localDay } = await import('./docs/own-algorithm.ts')
const { segment } = await import('./docs/own-dimension.ts')
const { FileStore } = await import('./docs/own-store.ts')
vi.restoreAllMocks()

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(async () => {
  await server.close()
  for (const directory of directories) await rm(directory, { recursive: true, force: true })
})

const directories: string[] = []
async function emptyDirectory(): Promise<string> {
  directories.push(await mkdtemp(join(tmpdir(), 'diana-store-')))
  return directories.at(-1)!
}

describe('the extensions of docs/extending.md pass the published suites', () => {
  const tests = [
    ...algorithmSuite({
      algorithm: localDay,
      rules: [{ limit: '10/d' }, { limit: '3/7d', utcOffset: 8 }],
      sendToRedis: ([command, ...args]) => server.client.call(command!, ...args),
      walks: randomRuns(8),
    }),
    ...dimensionSuite({
      dimension: segment,
      arguments: ['0', '2', '-1'],
      values: [{ call: { method: 'GET', path: '/tenants/acme' }, argument: '2', value: 'acme' }],
    }),
    ...storeSuite({
      create: async () => {
        const directory = await emptyDirectory()
        return { store: new FileStore(directory), other: new FileStore(directory), close: async () => {} }
      },
    }),
  ]
  for (const { name, run } of tests) it(name, run)
})

const rules = [{ id: 'per-address', by: 'ip', limit: '2/h' }]
const call = { method: 'GET', path: '/', ip: '203.0.113.9' }

describe('a store of your own', () => {
  it('a store of your own counts for all limiters that share it', async () => {
    const directory = await emptyDirectory()
    const create = () => createLimiter({ rules, store: new FileStore(directory) })
    const limiters = [await create(), await create()]
    const allowed: boolean[] = []
    for (const limiter of [...limiters, ...limiters]) allowed.push((await limiter.check(call)).allowed)
    expect(allowed).toEqual([true, true, false, false])
    await vi.waitFor(() => {
      expect(limiters[0]!.status().store).toMatchObject({ healthy: true, fleet: { size: 2, known: true } })
    }, 10_000)
    for (const limiter of limiters) await limiter.close()
    const later = await create()
    expect(later.status().store).toMatchObject({ healthy: true, fleet: { size: 1, known: true } })
    await later.close()
  })

  it('two processes that are started by themselves admit together what the limit allows', async () => {
    const directory = await emptyDirectory()
    const source = await readFile(new URL('docs/own-store.ts', import.meta.url), 'utf8')
    const { code } = await transformWithOxc(source, 'own-store.ts')
    await writeFile(join(directory, 'own-store.mjs'), code)
    const program = `
      import { createLimiter } from ${JSON.stringify(new URL('../packages/limiter/dist/index.js', import.meta.url).href)}
      import { FileStore } from './own-store.mjs'
      const rules = [{ id: 'all', limit: '25/h' }]
      const limiter = await createLimiter({ rules, store: { transact: (...args) => store.transact(...args), timeout: '5s' } })
      const calls = Array.from({ length: 20 }, () => limiter.check({ method: 'GET', path: '/' }))
      console.log((await Promise.all(calls)).filter(({ allowed }) => allowed).length, limiter.status().store.healthy)
      await limiter.close()`.replace(
      'const rules',
      `const store = new FileStore(${JSON.stringify(directory)})\n      const rules`,
    )
    await writeFile(join(directory, 'program.mjs'), program)
    const run = promisify(execFile)
    const printed = await Promise.all([1, 2].map(() => run(process.execPath, [join(directory, 'program.mjs')])))
    const words = printed.map(({ stdout }) => stdout.trim().split(' '))
    expect(words.map(([, healthy]) => healthy)).toEqual(['true', 'true'])
    expect(words.reduce((sum, [admitted]) => sum + Number(admitted), 0)).toBe(25)
  })

  it('a store of your own that fails is replaced by counting in this process', async () => {
    const store = { transact: () => Promise.reject(new Error('the database is gone')) }
    const limiter = await createLimiter({ rules, store })
    limiter.events.on('store', () => {})
    const allowed: boolean[] = []
    for (let i = 0; i < 3; i++) allowed.push((await limiter.check(call)).allowed)
    expect(allowed).toEqual([true, true, false])
    expect(limiter.status().store?.healthy).toBe(false)
    await limiter.close()
  })

  it.each([
    [{ custom: {} }, 'store.custom has become store.transact, one function'],
    [{ transact: 'postgres://' }, 'store.transact must be a function, not string'],
    [{ transact: async () => {}, keys: [] }, 'store.keys must be a function, not object'],
    [{ transact: async () => {}, tiemout: '1s' }, 'tiemout'],
    [{ transact: async () => {}, timeout: 'soon' }, 'store.timeout'],
  ])('a store that is no store is an error with a remedy: %j', async (store, message) => {
    await expect(createLimiter({ rules, store: store as never })).rejects.toThrow(message)
    expect(() => rateLimit({ limit: '2/h', store: store as never })).toThrow(message)
  })
})

describe('the suites fail', () => {
  const failures = async (tests: readonly { name: string; run(): Promise<void> }[]): Promise<string[]> => {
    const failed = await Promise.all(
      tests.map(({ name, run }) =>
        run().then(
          () => '',
          () => name,
        ),
      ),
    )
    return failed.filter(name => name !== '').map(name => name.replace(/.*: /, ''))
  }

  it('algorithmSuite fails for an algorithm that refunds too much, or whose Lua differs', async () => {
    const generous = {
      ...localDay,
      meter: (...args: Parameters<typeof localDay.meter>) => {
        const meter = localDay.meter(...args)
        const { lua, numbers } = meter.redis!
        const text = lua.lua!.replace('max(0, meter.count', 'max(1, meter.count')
        const redis = { lua: { name: 'generous', lua: text }, numbers }
        return { ...meter, redis, refund: (state: Float64Array, at: number) => void state.fill(0, at, at + 2) }
      },
    }
    const sendToRedis = ([command, ...args]: readonly string[]) => server.client.call(command!, ...args)
    const tests = algorithmSuite({ algorithm: generous, rules: [{ limit: '3/d' }], sendToRedis, walks: 10 })
    expect(await failures(tests)).toEqual([
      'a refund frees at most what the call took',
      'Redis and memory give the same answers',
    ])
  })

  it.each<[name: string, (store: TransactionalStore) => TransactionalStore['transact']]>([
    [
      'that writes although change throws',
      store => async (keys, change) => {
        await store.transact(keys, ledgers => {
          try {
            return change(ledgers)
          } catch {
            return []
          }
        })
      },
    ],
    [
      'that loses the second of several ledgers',
      store => (keys, change) => store.transact(keys, ledgers => change(ledgers).filter((_, i) => i !== 1)),
    ],
    [
      'that reads before its transaction begins',
      store => async (keys, change) => {
        const known = new Map<string, string | null | undefined>()
        await store.transact(keys, ledgers => {
          for (const key of keys) known.set(key, ledgers.get(key))
          return []
        })
        await store.transact(keys, () => change(known))
      },
    ],
  ])('storeSuite fails for a store %s', async (_, spoil) => {
    const create = async () => {
      const store = new FileStore(await emptyDirectory())
      return { store: { transact: spoil(store) }, close: async () => {} }
    }
    expect(await failures(storeSuite({ create }).slice(0, 6))).not.toEqual([])
  })

  it('dimensionSuite fails for a dimension that throws', async () => {
    const dimension = { ...segment, read: ({ headers }: { headers?: unknown }) => String((headers as { a: string }).a) }
    const values = [{ call: { method: 'GET', path: '/', headers: { a: 'b' } }, value: 'b' }]
    expect((await failures(dimensionSuite({ dimension, values }))).length).toBeGreaterThan(1)
  })
})
