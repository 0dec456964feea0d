import { type RedisServer, startRedis } from '@test/servers/redis-server'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest'
import { concurrency } from '../algorithms/concurrency.ts'
import { LEASE_MS } from './held-slots.ts'
import { type RedisCharge, type RedisCounter, redisCharge } from './redis/counter.ts'
import { RedisStore } from './redis/redis-store.ts'
import { takeBack } from './store.ts'

let server: RedisServer
let now: number
let isDown: boolean
let isDeaf: boolean

beforeAll(async () => {
  server = await startRedis()
  await server.client.config('SET', 'appendonly', 'no')
})
afterAll(() => server.close())
beforeEach(async () => {
  await server.client.flushall()
  now = 1_794_744_000_000_000
  isDown = false
  isDeaf = false
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
})
afterEach(() => vi.useRealTimers())

/** A separate process, as Redis sees it. */
class Gateway {
  readonly store: RedisStore
  readonly counter: RedisCounter
  #places: { charge: RedisCharge; now: number }[] = []

  constructor(limit: number, holder?: number) {
    const send = async ([command, ...args]: readonly string[]) => {
      if (isDown) throw new Error('down')
      const reply = await server.client.call(command!, ...args)
      if (isDeaf) throw new Error('lost')
      return reply
    }
    this.store = new RedisStore(send, { now: () => now, holder })
    const meters = [concurrency.meter({ count: limit, periodMs: 0 }, {})]
    this.counter = this.store.createCounter({ id: 'places', meters, algorithm: 'concurrency', enforced: true })
  }

  async take(cost = 1): Promise<boolean> {
    const charge = { ...redisCharge(this.counter), key: 'all', cost }
    const answer = await this.store.take([charge])
    if (answer.allowed) this.#places.push({ charge, now: answer.now })
    return answer.allowed
  }

  async release(): Promise<void> {
    const place = this.#places.pop()!
    takeBack(this.store, [place.charge], place.now)
    await this.free()
  }

  async free(): Promise<number> {
    const charge = { ...redisCharge(this.counter), key: 'all', cost: 0 }
    await this.store.look([charge])
    return charge.remaining[0]!
  }
}

/** Lets time pass for Redis and for the timers of all gateways. */
async function pass(ms: number, gateways: readonly Gateway[]): Promise<void> {
  for (let left = ms; left > 0; left -= 100) {
    now += 100_000
    vi.advanceTimersByTime(100)
    // what a heartbeat sent is answered before this
    if (!isDown) for (const gateway of gateways) await gateway.free()
  }
}

it('places are kept for as long as the process lives', async () => {
  const [one, other] = [new Gateway(2), new Gateway(2)]
  await one.take(2)
  await pass(10 * LEASE_MS, [one, other])
  expect(await other.take()).toBe(false)
  await one.release()
  expect(await other.take()).toBe(true)
})

it('the places of a process that died are free after a lease', async () => {
  const [dying, other] = [new Gateway(2), new Gateway(2)]
  await dying.take(2)
  dying.store.close()
  await pass(LEASE_MS - 100, [other])
  expect(await other.free()).toBe(0)
  await pass(100, [other])
  expect(await other.free()).toBe(2)
})

it('a slot that is held twice is released twice', async () => {
  const gateway = new Gateway(3)
  await gateway.take()
  await gateway.take()
  await gateway.release()
  expect(await gateway.free()).toBe(2)
  await gateway.release()
  expect(await gateway.free()).toBe(3)
  expect(await gateway.store.keys(gateway.counter, 10)).toEqual([])
})

it('a release after the lease has ended frees no place of another', async () => {
  const [late, other] = [new Gateway(2), new Gateway(2)]
  await late.take(2)
  now += LEASE_MS * 1000
  await other.take(2)
  await late.release()
  expect(await other.free()).toBe(0)
})

it('a process that was away for longer than its lease holds again what it holds', async () => {
  const [away, other] = [new Gateway(5), new Gateway(5)]
  await away.take()
  await away.take()
  now += LEASE_MS * 1000
  expect(await other.free()).toBe(5)
  await pass(LEASE_MS / 2, [away])
  expect(await other.free()).toBe(3)
  await away.release()
  await away.release()
  expect(await other.free()).toBe(5)
})

it('a place whose release Redis never heard of is free after the next heartbeat', async () => {
  const gateway = new Gateway(5)
  await gateway.take()
  await gateway.take()
  isDown = true
  await gateway.release().catch(() => undefined)
  isDown = false
  expect(await gateway.free()).toBe(3)
  await pass(LEASE_MS / 2, [gateway])
  expect(await gateway.free()).toBe(4)
})

it.each([1, 2])(
  'the last places of a process are free after the next heartbeat if the release of %i was lost',
  async cost => {
    const gateway = new Gateway(2)
    await gateway.take(cost)
    isDown = true
    await gateway.release().catch(() => undefined)
    isDown = false
    expect(await gateway.free()).toBe(2 - cost)
    await pass(LEASE_MS / 2, [gateway])
    expect(await gateway.free()).toBe(2)
  },
)

it('a place is free after the next heartbeat if Redis gave it to a call whose answer was lost', async () => {
  const gateway = new Gateway(2)
  isDeaf = true
  await expect(gateway.take()).rejects.toThrow('lost')
  isDeaf = false
  expect(await gateway.free()).toBe(1)
  await pass(LEASE_MS / 2, [gateway])
  expect(await gateway.free()).toBe(2)
})

it('a request of a lost connection that is carried out late holds a place until the heartbeat after it', async () => {
  const [gateway, stray] = [new Gateway(2, 7), new Gateway(2, 7)]
  await gateway.take()
  isDown = true
  await gateway.release().catch(() => undefined)
  isDown = false
  await pass(LEASE_MS / 2, [gateway])
  // as the first process would have sent it
  const late = Object.assign(redisCharge(gateway.counter), { key: 'all', cost: 1 })
  await stray.store.take([late])
  stray.store.close()
  expect(await gateway.free()).toBe(1)
  await pass(LEASE_MS / 2, [gateway])
  expect(await gateway.free()).toBe(2)
})

it('nothing is sent while nothing is held', async () => {
  const gateway = new Gateway(5)
  await gateway.take()
  await gateway.release()
  const before = await server.client.info('stats')
  vi.advanceTimersByTime(10 * LEASE_MS)
  const calls = (info: string) => Number(/total_commands_processed:(\d+)/.exec(info)![1])
  expect(calls(await server.client.info('stats')) - calls(before)).toBe(1)
})

it('answers under way are neither given away nor counted twice by a heartbeat', async () => {
  const gateway = new Gateway(100)
  await gateway.take(3)
  const asked = [gateway.take(10), gateway.take(90), gateway.take(20)]
  vi.advanceTimersByTime(LEASE_MS)
  expect(await Promise.all(asked)).toEqual([true, false, true])
  expect(await gateway.free()).toBe(67)
})

it('a key that is reset is not held again by the next renewal', async () => {
  const gateway = new Gateway(2)
  expect([await gateway.take(), await gateway.take()]).toEqual([true, true])
  await gateway.store.reset(gateway.counter, 'all')
  gateway.store.renew()
  expect(await gateway.free()).toBe(2)
  await gateway.release()
  expect(await gateway.free()).toBe(2)
})
