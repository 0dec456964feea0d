import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type RedisServer, startRedis } from '../sources/doubles/redis-server.ts'
import { RedisRoll } from './redis-roll.ts'

let server: RedisServer
const here = { isBack: true, withinMs: 1000, memberMs: 5000 }

beforeAll(async () => {
  server = await startRedis()
}, 30_000)
afterAll(() => server.close())
beforeEach(() => server.client.flushall())

function join(): RedisRoll {
  return new RedisRoll(([command, ...args]) => server.client.call(command!, ...args))
}

describe('the roll in Redis', () => {
  it('knows how many there are, and gives each a place of its own', async () => {
    const rolls = [join(), join(), join()]
    for (const roll of rolls) await roll.attend(here)
    const answers = await Promise.all(rolls.map(roll => roll.attend(here)))
    expect(answers.map(({ size, heard, back }) => [size, heard, back])).toEqual(Array(3).fill([3, 3, 3]))
    expect(answers.map(({ rank }) => rank).sort()).toEqual([0, 1, 2])
    expect(new Set(answers.map(({ era }) => era)).size).toBe(1)
  })

  it('forgets who goes, and who has not been heard of', async () => {
    const [one, other, silent] = [join(), join(), join()]
    for (const roll of [one, other, silent]) await roll.attend(here)
    await other.leave()
    expect(await one.attend(here)).toMatchObject({ size: 2 })
    for (const field of await server.client.hkeys('diana:d1:fleet')) {
      if (field !== 'era') await server.client.hset('diana:d1:fleet', field, '1000')
    }
    expect(await one.attend(here)).toMatchObject({ size: 1, rank: 0 })
    expect(await server.client.hlen('diana:d1:fleet')).toBe(2)
  })

  it('tells who has been heard of lately, and who of them is back', async () => {
    const [one, other] = [join(), join()]
    await other.attend({ ...here, isBack: false })
    expect(await one.attend(here)).toMatchObject({ size: 2, heard: 2, back: 1 })
    await server.client.hset('diana:d1:fleet', 'zzz', String(Date.now() - 3000))
    expect(await one.attend(here)).toMatchObject({ size: 3, heard: 2, back: 1 })
  })

  it('has another era when Redis has lost its memory, and lives no longer than a day', async () => {
    const roll = join()
    const { era } = await roll.attend(here)
    expect((await roll.attend(here)).era).toBe(era)
    await server.client.flushall()
    expect((await roll.attend(here)).era).not.toBe(era)
    expect(await server.client.pttl('diana:d1:fleet')).toBeGreaterThan(86_000_000)
  })

  it('survives what others write into it', async () => {
    await server.client.hset('diana:d1:fleet', 'junk', 'x', 'more', '')
    expect(await join().attend(here)).toMatchObject({ size: 1, rank: 0 })
  })

  it('is told in one line when what answers is no Redis', async () => {
    const roll = new RedisRoll(async () => 'nonsense')
    await expect(roll.attend(here)).rejects.toThrow('the script answered something other than who is there')
  })
})
