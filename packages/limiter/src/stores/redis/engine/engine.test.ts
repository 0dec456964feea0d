import { randomRuns } from '@test/random-runs'
import { type RedisCluster, startCluster } from '@test/servers/redis-cluster'
import { type RedisServer, startRedis } from '@test/servers/redis-server'
import { Redis } from 'ioredis'
import { createClient, createCluster } from 'redis'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import type { LuaAlgorithm, Meter } from '../../../algorithms/algorithm.ts'
import { fixedWindow } from '../../../algorithms/fixed-window.ts'
import { inRedis, seededWalks } from '../../../testing/seeded-walks.ts'
import { connectRedis, type RedisTarget } from '../connection/client.ts'
import { type RedisCounter, redisCharge } from '../counter.ts'
import { RedisStore } from '../redis-store.ts'
import type { SendCommand } from '../send-command.ts'
import { engineWith, isOwnLua } from './engine.ts'

let server: RedisServer
let cluster: RedisCluster
let commands: string[]
const closing: (() => unknown)[] = []

beforeAll(async () => {
  ;[server, cluster] = await Promise.all([startRedis(), startCluster()])
  await server.client.config('SET', 'appendonly', 'no')
}, 60_000)
afterAll(() => Promise.all([server.close(), cluster.close()]))
beforeEach(async () => {
  commands = []
  await server.client.flushall()
  await server.client.call('FUNCTION', 'FLUSH')
  await server.client.script('FLUSH')
})
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const overServer: SendCommand = ([command, ...args]) => server.client.call(command!, ...args)
const noFunctions: SendCommand = async ([command, ...args]) => {
  if (command === 'FCALL' || command === 'FUNCTION') throw new Error(`ERR unknown command '${command}'`)
  return overServer([command!, ...args])
}

function createStore(send: SendCommand, onFunctionsForbidden?: (error: unknown) => void): RedisStore {
  const store = new RedisStore(
    command => {
      commands.push(command[0] === 'FUNCTION' ? `${command[0]} ${command[1]}` : command[0]!)
      return send(command)
    },
    { onFunctionsForbidden },
  )
  closing.push(() => store.close())
  return store
}

function perDay(store: RedisStore, count = 10): RedisCounter {
  const meters = [fixedWindow.meter({ count, periodMs: 86_400_000 }, {})]
  return store.createCounter({ id: 'rule', meters, algorithm: 'fixed-window', enforced: true })
}

async function take(store: RedisStore, counter: RedisCounter, key = 'ann'): Promise<number> {
  const charge = { ...redisCharge(counter), key, cost: 1 }
  await store.take([charge])
  return charge.remaining[0]!
}

describe('the function library', () => {
  it('the function library is loaded by the first batch, and called from then on', async () => {
    const store = createStore(overServer)
    const counter = perDay(store)
    expect([await take(store, counter), await take(store, counter)]).toEqual([9, 8])
    // the library is told of the rule once
    expect(commands).toEqual(['FCALL', 'FUNCTION LOAD', 'FCALL', 'FCALL', 'FCALL'])
  })

  it('the function library is loaded once by batches that run at the same time', async () => {
    const store = createStore(overServer)
    const counter = perDay(store, 200)
    await Promise.all(Array.from({ length: 100 }, () => take(store, counter)))
    expect(await take(store, counter)).toBe(99)
    expect(commands.filter(command => command === 'FUNCTION LOAD')).toHaveLength(1)
  })

  it('the function library is loaded again after FUNCTION FLUSH, and no call is counted twice', async () => {
    const store = createStore(overServer)
    const counter = perDay(store)
    await take(store, counter)
    await server.client.call('FUNCTION', 'FLUSH')
    await Promise.all([take(store, counter), take(store, counter)])
    expect(await take(store, counter)).toBe(6)
    expect(commands).not.toContain('EVALSHA')
  })

  it('a function library that another process has loaded meanwhile is used', async () => {
    const engine = engineWith([])
    const send: SendCommand = async command => {
      if (command[0] === 'FUNCTION') await server.client.call('FUNCTION', 'LOAD', engine.library)
      return overServer(command)
    }
    const store = createStore(send)
    expect(await take(store, perDay(store))).toBe(9)
    expect(commands.at(-1)).toBe('FCALL')
  })

  it('the function library is used by a replica that has become the master', async () => {
    const replica = await startRedis()
    await replica.client.config('SET', 'appendonly', 'no')
    closing.push(
      () => replica.close(),
      () => replica.stop('SIGKILL'),
    )
    const store = createStore(overServer)
    const counter = perDay(store)
    await take(store, counter)
    await replica.client.call('REPLICAOF', '127.0.0.1', server.authority.split(':')[1]!)
    await vi.waitFor(async () => expect(await replica.client.call('FUNCTION', 'LIST')).toHaveLength(1), 10_000)
    await replica.client.call('REPLICAOF', 'NO', 'ONE')
    const promoted = createStore(([command, ...args]) => replica.client.call(command!, ...args))
    expect(await take(promoted, perDay(promoted))).toBe(8)
  })

  it('the function library keeps nothing of a run that failed', async () => {
    const store = createStore(overServer)
    const counter = perDay(store)
    await take(store, counter)
    await server.client.config('SET', 'maxmemory', '1')
    await expect(take(store, counter)).rejects.toThrow('OOM')
    await server.client.config('SET', 'maxmemory', '0')
    expect([await take(store, counter, 'bob'), await take(store, counter)]).toEqual([9, 8])
  })
})

describe('a user of Redis who may not use functions', () => {
  const needed = '+evalsha +eval +time +mget +set +unlink +info'.split(' ')

  it.each([
    ['load them', ['+fcall']],
    ['call them', []],
  ])('a user of Redis who may not %s gets the script, which is reported once', async (_, more) => {
    await server.client.call('ACL', 'SETUSER', 'little', 'reset', 'on', '>secret', '~diana:*', ...needed, ...more)
    const client = new Redis(`redis://little:secret@${server.authority}`)
    closing.push(() => client.disconnect())
    const reported: unknown[] = []
    const store = createStore(
      ([command, ...args]) => client.call(command!, ...args),
      error => reported.push(error),
    )
    const counter = perDay(store)
    const left = [await take(store, counter), await take(store, counter), await take(store, counter)]
    expect(left).toEqual([9, 8, 7])
    expect(reported.map(String)).toEqual([expect.stringContaining('NOPERM')])
    expect(commands.slice(-2)).toEqual(['EVALSHA', 'EVALSHA'])
  })
})

describe('a Redis without functions', () => {
  it('a Redis without functions runs the script, which is sent again when Redis has forgotten it', async () => {
    const store = createStore(noFunctions)
    const counter = perDay(store)
    expect(await take(store, counter)).toBe(9)
    await server.client.script('FLUSH')
    expect([await take(store, counter), await take(store, counter)]).toEqual([8, 7])
    // a script is told of the rules by every request, except for the first one
    expect(commands).toEqual(['FCALL', 'EVALSHA', 'EVAL', 'EVALSHA', 'EVALSHA', 'EVAL', 'EVALSHA'])
  })

  it('a Redis without functions counts together with processes that use functions', async () => {
    const [old, current] = [createStore(noFunctions), createStore(overServer)]
    const counters = [perDay(old), perDay(current)] as const
    const left = [await take(old, counters[0]), await take(current, counters[1]), await take(old, counters[0])]
    expect(left).toEqual([9, 8, 7])
  })

  it('a Redis without functions answers as the store in memory does, in random steps', async () => {
    const seed = Date.now() % 1_000_000
    const differences = await seededWalks({ ...inRedis(noFunctions), seed, steps: randomRuns(500) })
    expect({ seed, differences }).toEqual({ seed, differences: [] })
  })
})

describe('a Cluster', () => {
  async function countOver(target: RedisTarget): Promise<void> {
    const { send, masters, isCluster, close } = await connectRedis(target)
    const options = { isCluster, masters, prefix: `p${Math.random()}` }
    const store = new RedisStore(command => {
      commands.push(command[0]!)
      return send(command)
    }, options)
    closing.push(close, () => store.close())
    const counter = perDay(store)
    const takeAll = () => Promise.all(Array.from({ length: 60 }, (_, i) => take(store, counter, `caller${i}`)))
    await vi.waitFor(takeAll, { timeout: 5000 })
    commands = []
    const before = await take(store, counter, 'caller7')
    await cluster.nodes[1]!.call('FUNCTION', 'FLUSH')
    expect(await takeAll()).toContain(before - 1)
    expect(new Set(commands)).toEqual(new Set(['FCALL']))
  }

  it.each<[string, () => RedisTarget | Promise<RedisTarget>]>([
    ['its URLs', () => cluster.urls],
    ['a client of ioredis', () => cluster.client as never],
    [
      'a client of node-redis',
      async () => {
        const client = createCluster({ rootNodes: cluster.urls.map(url => ({ url })) })
        await client.connect()
        closing.push(() => client.destroy())
        return client as never
      },
    ],
  ])('a Cluster given by %s has the library on every master, also after one has lost it', async (_, target) => {
    await Promise.all(cluster.nodes.map(node => node.call('FUNCTION', 'FLUSH')))
    await countOver(await target())
  })
})

describe('a client of node-redis', () => {
  it('a client of node-redis calls functions', async () => {
    const client = createClient({ url: `redis://${server.authority}` })
    await client.connect()
    closing.push(() => client.destroy())
    const { send } = await connectRedis(client as never)
    const store = createStore(send)
    expect(await take(store, perDay(store))).toBe(9)
    expect(commands.at(-1)).toBe('FCALL')
  })
})

it('Lua of an own name needs a text', () => {
  expect(isOwnLua({ name: 'bucket' })).toBe(true)
  expect(isOwnLua(quota)).toBe(false)
  expect(() => isOwnLua({ name: 'own-quota' })).toThrow('the Lua own-quota has no text')
})

/** Admits as many calls as the meter allows, without end; with Lua that a text processor could corrupt. */
const quota: LuaAlgorithm = {
  name: 'own-quota',
  lua: `
local EDGE = max(1, 2)
local function pair() return 1, 2 end
local A, B = pair()
local NAME, TEXT = 'EDGE and A', "B -- not a comment"
local moves = {}
function moves.delay(meter, state, _, cost)
  assert(EDGE == 2 and A + B == 3 and NAME == 'EDGE and A' and #TEXT == 18)
  return state[A] + cost <= meter.count and 0 or huge
end
function moves.take(_, state, now, cost) state[A], state[B] = state[A] + cost, now end
function moves.refund(_, state, _, cost) state[A] = max(0, state[A] - cost) end
function moves.remaining(meter, state) return meter.count - state[A] end
function moves.idleAt(_, state) return state[A] == 0 and 0 or state[B] + 86400000000 end
return moves`,
}

function quotaMeter(count: number): Meter {
  return {
    slots: 2,
    maxWaitUs: 0,
    redis: { lua: quota, numbers: { count } },
    delay: (state, at, _, cost) => (state[at]! + cost <= count ? 0 : Number.POSITIVE_INFINITY),
    take: (state, at, now, cost) => {
      state[at]! += cost
      state[at + 1] = now
    },
    refund: (state, at, _, cost) => {
      state[at] = Math.max(0, state[at]! - cost)
    },
    remaining: (state, at) => count - state[at]!,
    idleAt: (state, at) => (state[at] === 0 ? 0 : state[at + 1]! + 86_400_000_000),
  }
}

describe("an application's own algorithm", () => {
  it.each([
    ['functions', overServer],
    ['the script', noFunctions],
  ])('an own algorithm counts in Redis by %s, with constants in capitals and text that names them', async (_, send) => {
    const store = createStore(send)
    const rule = { id: 'own', meters: [quotaMeter(3)], algorithm: 'own-quota', enforced: true }
    const counter = store.createCounter(rule)
    const left = [await take(store, counter), await take(store, counter), await take(store, counter)]
    expect([...left, await take(store, counter)]).toEqual([2, 1, 0, 0])
  })

  it('an algorithm that cannot be compiled reports the place of its mistake', async () => {
    const store = createStore(overServer)
    const meters = [{ ...quotaMeter(3), redis: { lua: { name: 'broken', lua: 'return moves[' }, numbers: {} } }]
    const counter = store.createCounter({ id: 'own', meters, algorithm: 'broken', enforced: true })
    await expect(take(store, counter)).rejects.toThrow(/compil/i)
  })
})
