import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest'
import { type RedisServer, startRedis } from '../../sources/servers/redis-server.ts'
import { type RedisCluster, startCluster } from '../servers/redis-cluster.ts'
import { KEPT_MINUTES, RedisStatistics } from './statistics.ts'

let server: RedisServer
let commands: (readonly string[])[] = []
let isDown = false

beforeAll(async () => {
  server = await startRedis()
  await server.client.config('SET', 'appendonly', 'no')
})
afterAll(() => server.close())
beforeEach(async () => {
  commands = []
  isDown = false
  await server.client.flushall()
})
afterEach(() => vi.useRealTimers())

async function send(command: readonly string[]): Promise<unknown> {
  commands.push(command)
  if (isDown) throw new Error('down')
  const [name, ...args] = command
  return await server.client.call(name!, ...args)
}

function count(statistics: RedisStatistics, rule: string, allowed: number, refused: number): void {
  for (let call = 0; call < allowed; call++) statistics.count(rule, true)
  for (let call = 0; call < refused; call++) statistics.count(rule, false)
}

/** A minute may end in the midst of a test. */
async function total(statistics: RedisStatistics, rule: string, minutes = 5): Promise<[number, number]> {
  const found = await statistics.read(rule, minutes)
  return [found.reduce((sum, { allowed }) => sum + allowed, 0), found.reduce((sum, { refused }) => sum + refused, 0)]
}

it('processes add up, with one command for all rules', async () => {
  const [one, other] = [new RedisStatistics(send), new RedisStatistics(send)]
  count(one, 'a', 5, 2)
  count(one, 'b', 0, 1)
  count(other, 'a', 10, 0)
  await one.close()
  await other.close()
  expect(commands.map(([name]) => name)).toEqual(['EVALSHA', 'EVAL', 'EVALSHA'])
  expect([await total(one, 'a'), await total(one, 'b'), await total(one, 'none')]).toEqual([
    [15, 2],
    [0, 1],
    [0, 0],
  ])
})

it('statistics are sent every few seconds, and nothing is sent without counts', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  const statistics = new RedisStatistics(send)
  vi.advanceTimersByTime(20_000)
  expect(commands).toEqual([])
  count(statistics, 'a', 1, 0)
  vi.advanceTimersByTime(5000)
  expect(commands.length).toBe(1)
  await statistics.close()
  await vi.waitFor(async () => expect(await total(statistics, 'a')).toEqual([1, 0]))
})

it('counts from while Redis was away are sent later', async () => {
  const statistics = new RedisStatistics(send)
  count(statistics, 'a', 3, 1)
  isDown = true
  await statistics.flush()
  count(statistics, 'a', 1, 0)
  isDown = false
  await statistics.close()
  expect(await total(statistics, 'a')).toEqual([4, 1])
})

it('minutes are kept apart, for 24 hours, and the oldest makes room', async () => {
  const statistics = new RedisStatistics(send)
  const key = 'diana:d1:traffic{a}'
  const [seconds] = (await server.client.call('TIME')) as string[]
  const minute = Math.floor(Number(seconds) / 60)
  for (const ago of [1, 2, 60, KEPT_MINUTES - 1, KEPT_MINUTES, KEPT_MINUTES + 5]) {
    await server.client.hset(key, (minute - ago) % KEPT_MINUTES, `${minute - ago} ${ago} 1`)
  }
  await server.client.hset(key, 'x', 'garbage')
  count(statistics, 'a', 7, 0)
  await statistics.close()
  const found = await statistics.read('a', 1e9)
  expect(found.slice(-3, -1)).toEqual([
    { startMs: (minute - 2) * 60_000, allowed: 2, refused: 1 },
    { startMs: (minute - 1) * 60_000, allowed: 1, refused: 1 },
  ])
  expect(found.at(-1)).toMatchObject({ allowed: 7, refused: 0 })
  expect(found.map(({ allowed }) => allowed)).not.toContain(KEPT_MINUTES)
  expect(found.map(({ allowed }) => allowed)).not.toContain(KEPT_MINUTES + 5)
  expect(await server.client.ttl(key)).toBeGreaterThan(86_000)
})

it('rules without end take no memory without end', async () => {
  const statistics = new RedisStatistics(send)
  for (let rule = 0; rule < 10_050; rule++) statistics.count(`rule ${rule}`, true)
  await statistics.close()
  expect(await server.client.dbsize()).toBe(10_000)
  expect(Math.max(...commands.map(({ length }) => length))).toBeLessThan(2000)
})

it('a Cluster keeps each rule in its slot', async () => {
  const cluster: RedisCluster = await startCluster()
  try {
    const statistics = new RedisStatistics(
      ([name, ...args]) => cluster.client.call(name!, ...args) as Promise<unknown>,
      {
        isCluster: true,
      },
    )
    for (const rule of ['a', 'b', 'c', 'd', '{x}']) count(statistics, rule, 2, 1)
    await statistics.close()
    for (const rule of ['a', 'b', 'c', 'd', '{x}']) expect(await total(statistics, rule)).toEqual([2, 1])
  } finally {
    await cluster.close()
  }
}, 60_000)
