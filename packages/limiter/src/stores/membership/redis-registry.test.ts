import { type RedisServer, startRedis } from '@test/servers/redis-server'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { SendCommand } from '../redis/send-command.ts'
import { fleetName, RedisRegistry } from './redis-registry.ts'

let server: RedisServer
const [HEARD, BACK, IDS, ERA] = ['heard', 'back', 'ids', 'era'].map(name => `diana:d2{fleet}:${name}`) as [
  string,
  string,
  string,
  string,
]
const KEYS = [HEARD, BACK, IDS]
const here = { isBack: true, withinMs: 1000, memberMs: 5000 }

beforeAll(async () => {
  server = await startRedis()
}, 30_000)
afterAll(() => server.close())
beforeEach(() => server.client.flushall())

function join(): RedisRegistry {
  return new RedisRegistry(([command, ...args]) => server.client.call(command!, ...args), fleetName('diana'))
}

describe('the membership registry in Redis', () => {
  it('the membership registry in Redis counts members, and gives each a rank of its own', async () => {
    const rolls = [join(), join(), join()]
    for (const registry of rolls) await registry.register(here)
    const answers = await Promise.all(rolls.map(registry => registry.register(here)))
    expect(answers.map(({ size, heard, back }) => [size, heard, back])).toEqual(Array(3).fill([3, 3, 3]))
    expect(answers.map(({ rank }) => rank).sort()).toEqual([0, 1, 2])
    expect(new Set(answers.map(({ era }) => era)).size).toBe(1)
  })

  it('the membership registry in Redis removes members that leave or are silent', async () => {
    const [one, other, silent] = [join(), join(), join()]
    for (const registry of [one, other, silent]) await registry.register(here)
    await other.leave()
    expect(await one.register(here)).toMatchObject({ size: 2 })
    for (const id of (await server.client.zrange(HEARD, '0', '-1')).map(String))
      await server.client.zadd(HEARD, '1000', String(id))
    expect(await one.register(here)).toMatchObject({ size: 1, rank: 0 })
    for (const key of KEYS) expect(await server.client.zcard(key), key).toBe(1)
  })

  it('the membership registry in Redis reports which members were heard of lately, and which are back', async () => {
    const [one, other] = [join(), join()]
    await other.register({ ...here, isBack: false })
    expect(await one.register(here)).toMatchObject({ size: 2, heard: 2, back: 1 })
    const seconds = Number((await server.client.time())[0])
    for (const key of KEYS) await server.client.zadd(key, key.endsWith('ids') ? 0 : (seconds - 3) * 1000, 'zzz')
    expect(await one.register(here)).toMatchObject({ size: 3, heard: 2, back: 1 })
  })

  it('the membership registry reports members that count in another format, from their arrival until they are gone', async () => {
    const told: number[][] = []
    const send: SendCommand = ([command, ...args]) => server.client.call(command!, ...args)
    const registry = new RedisRegistry(send, fleetName('diana'), (apart, size) => told.push([apart, size]))
    await join().register(here)
    await registry.register(here)
    expect(told).toEqual([])
    const now = Number((await server.client.time())[0]) * 1000
    // ids of a release that named no format, and of one whose format sorts after this one
    for (const id of ['0123456789abcdef', 'fedcba9876543210', 'other:0123', 'caller-keyz:1', 'caller-keys'])
      for (const key of KEYS) await server.client.zadd(key, key === IDS ? 0 : now, id)
    await registry.register(here)
    expect(told).toEqual([[5, 7]])
    for (const key of KEYS) await server.client.zadd(key, key === IDS ? 0 : 1, 'fedcba9876543210')
    await registry.register(here)
    expect(told.at(-1)).toEqual([4, 6])
  })

  it('the membership registry registers for a user who may not use ZLEXCOUNT', async () => {
    await server.client.call('ACL', 'SETUSER', 'small', 'on', '>small', '~*', '+@all', '-zlexcount')
    const other = server.client.duplicate({ username: 'small', password: 'small' })
    const told: number[] = []
    const registry = new RedisRegistry(
      ([command, ...args]) => other.call(command!, ...args),
      fleetName('diana'),
      apart => {
        told.push(apart)
      },
    )
    expect(await registry.register(here)).toMatchObject({ size: 1, rank: 0 })
    expect(told).toEqual([])
    other.disconnect()
  })

  it('the membership registry has another era after Redis has lost its data, and expires after a day', async () => {
    const registry = join()
    const { era } = await registry.register(here)
    expect((await registry.register(here)).era).toBe(era)
    await server.client.flushall()
    expect((await registry.register(here)).era).not.toBe(era)
    for (const key of await server.client.keys('*')) {
      expect(await server.client.pttl(key), key).toBeGreaterThan(86_000_000)
    }
  })

  it('the registry returns its era without counting the process that asks, and none before a process has registered', async () => {
    const [one, other] = [join(), join()]
    expect(await one.era()).toBeUndefined()
    const { era } = await one.register(here)
    expect(await other.era()).toBe(era)
    expect(await one.register(here)).toMatchObject({ size: 1, heard: 1 })
    await server.client.del(ERA)
    await server.client.lpush(ERA, 'junk')
    expect(await other.era()).toBeUndefined()
  })

  it('the membership registry in Redis survives foreign data in its keys', async () => {
    for (const key of KEYS) await server.client.zadd(key, '5', 'junk', '+inf', '')
    expect(await join().register(here)).toMatchObject({ size: 1, rank: 0 })
    for (const key of [...KEYS, ERA]) {
      await server.client.del(key)
      await server.client.lpush(key, 'junk')
    }
    expect(await join().register(here)).toMatchObject({ size: 1, rank: 0 })
  })

  it('the membership registry in Redis recovers the ranks when one of its keys was evicted', async () => {
    const rolls = [join(), join(), join()]
    for (const key of KEYS) {
      for (const registry of rolls) await registry.register(here)
      await server.client.del(key)
      for (const registry of rolls) await registry.register(here)
      const answers = await Promise.all(rolls.map(registry => registry.register(here)))
      expect(
        answers.map(({ size, heard }) => [size, heard]),
        key,
      ).toEqual(Array(3).fill([3, 3]))
      expect(answers.map(({ rank }) => rank).sort(), key).toEqual([0, 1, 2])
    }
  })

  it('the membership registry in Redis forgets heartbeats from the future, which a clock that has stepped back left behind', async () => {
    const seconds = Number((await server.client.time())[0])
    await server.client.zadd(HEARD, (seconds + 3600) * 1000, 'zzz')
    await server.client.zadd(IDS, 0, 'zzz')
    expect(await join().register(here)).toMatchObject({ size: 1, rank: 0, heard: 1 })
  })

  it('the membership registry in Redis costs Redis the same for a heartbeat in a fleet of 3,000 as in a fleet of 3', async () => {
    const usEach = async (): Promise<number> => {
      const registry = join()
      await registry.register(here)
      await server.client.config('RESETSTAT')
      for (let i = 0; i < 100; i++) await registry.register(here)
      const stats = await server.client.info('commandstats')
      return Math.min(
        ...[...stats.matchAll(/cmdstat_eval(?:sha)?:.*usec_per_call=([\d.]+)/g)].map(match => Number(match[1])),
      )
    }
    await Promise.all([join(), join()].map(registry => registry.register(here)))
    const few = await usEach()
    await Promise.all(Array.from({ length: 3000 }, () => join().register(here)))
    expect(await usEach()).toBeLessThan(few * 4)
  })

  it('the membership registry reports a server that is not Redis in one line', async () => {
    const registry = new RedisRegistry(async () => 'nonsense', fleetName('diana'))
    await expect(registry.register(here)).rejects.toThrow('Redis answered something other than who is there')
  })
})
