import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Algorithm, Meter } from '../../../packages/limiter/src/algorithms/algorithm.ts'
import { blockMeter } from '../../../packages/limiter/src/algorithms/block.ts'
import { concurrency } from '../../../packages/limiter/src/algorithms/concurrency.ts'
import { fixedWindow } from '../../../packages/limiter/src/algorithms/fixed-window.ts'
import { leakyBucket } from '../../../packages/limiter/src/algorithms/leaky-bucket.ts'
import { slidingLog } from '../../../packages/limiter/src/algorithms/sliding-log.ts'
import { slidingWindow } from '../../../packages/limiter/src/algorithms/sliding-window.ts'
import { tokenBucket } from '../../../packages/limiter/src/algorithms/token-bucket.ts'
import { LEASE_MS } from '../../../packages/limiter/src/stores/held-slots.ts'
import { type RedisCounter, redisCharge } from '../../../packages/limiter/src/stores/redis/counter.ts'
import { RedisStore } from '../../../packages/limiter/src/stores/redis/redis-store.ts'
import { type RedisServer, startRedis } from '../../helpers/servers/redis-server.ts'

const SECOND = 1_000_000
const HOUR = 3600 * SECOND
const DAY = 24 * HOUR

let server: RedisServer
let round = 0
beforeAll(async () => {
  server = await startRedis()
  await server.client.config('SET', 'appendonly', 'no')
})
afterAll(() => server.close())

/** A store on a Redis whose clock is set by the test. */
class Stage {
  now = 1_794_744_000_123_456
  readonly store: RedisStore
  readonly counter: RedisCounter

  constructor(meters: readonly Meter[]) {
    this.store = new RedisStore(([command, ...args]) => server.client.call(command!, ...args), {
      prefix: `steps${++round}`,
      now: () => this.now,
    })
    this.counter = this.store.createCounter({ id: 'rule', algorithm: 'any', enforced: true, meters })
  }

  async take(key = 'someone', cost = 1): Promise<boolean> {
    return (await this.store.take([{ ...redisCharge(this.counter), key, cost }])).allowed
  }

  async takeAll(key = 'someone'): Promise<number> {
    let taken = 0
    while (taken < 1000 && (await this.take(key))) taken++
    return taken
  }
}

const algorithms: readonly (readonly [string, (count: number, periodMs: number) => Meter])[] = [
  ['sliding-window', plain(slidingWindow)],
  ['sliding-log', plain(slidingLog)],
  ['fixed-window', plain(fixedWindow)],
  [
    'fixed-window from the first call',
    (count, periodMs) => fixedWindow.meter({ count, periodMs }, { align: 'first-call' }),
  ],
  ['token-bucket', plain(tokenBucket)],
  [
    'token-bucket refilled by intervals',
    (count, periodMs) => tokenBucket.meter({ count, periodMs }, { refill: 'interval' }),
  ],
  ['leaky-bucket', (count, periodMs) => leakyBucket.meter({ count, periodMs }, { burst: count - 1 })],
]

function plain(algorithm: Algorithm) {
  return (count: number, periodMs: number): Meter => algorithm.meter({ count, periodMs }, {})
}

describe.each(algorithms)('%s', (_name, meterOf) => {
  it.each([
    ['a minute', 60 * SECOND],
    ['an hour', HOUR],
    ['a day', DAY],
  ])(
    'when the clock of Redis steps back by %s, callers are refused for one period at most, and none is admitted twice',
    async (_, stepUs) => {
      const stage = new Stage([meterOf(10, 10_000)])
      expect(await stage.takeAll('idle')).toBe(10)
      stage.now += 3 * SECOND
      expect(await stage.takeAll()).toBe(10)
      stage.now += 0.5 * SECOND
      expect(await stage.take()).toBe(false)
      stage.now -= stepUs
      expect(await stage.take()).toBe(false)
      stage.now += 10.5 * SECOND
      expect(await stage.takeAll()).toBe(10)
      expect(await stage.takeAll('idle')).toBe(10)
      stage.store.close()
    },
  )

  it('when the clock of Redis steps forward by a day and back again, admits one burst for each step at most', async () => {
    const stage = new Stage([meterOf(10, 10_000)])
    await stage.takeAll()
    stage.now += DAY
    expect(await stage.takeAll()).toBe(10)
    stage.now -= DAY
    expect(await stage.takeAll()).toBe(0)
    stage.now += 10.5 * SECOND
    expect(await stage.takeAll()).toBe(10)
    stage.store.close()
  })

  it('a short level goes on after its own period, though a long level is as it was', async () => {
    const stage = new Stage([meterOf(5, 1000), meterOf(500, 86_400_000)])
    for (let i = 0; i < 20; i++) {
      stage.now += 1.1 * SECOND
      await stage.takeAll()
    }
    stage.now -= HOUR
    await stage.takeAll()
    stage.now += 2 * SECOND
    expect(await stage.takeAll()).toBe(5)
    stage.store.close()
  })

  it('all callers are found after a step of the clock', async () => {
    const stage = new Stage([meterOf(3, 10_000)])
    const callers = Array.from({ length: 30 }, (_, i) => `caller ${i}`)
    for (const caller of callers) await stage.takeAll(caller)
    stage.now -= HOUR
    for (const caller of callers) expect(await stage.take(caller)).toBe(false)
    stage.now += 10.5 * SECOND
    for (const caller of callers) expect(await stage.takeAll(caller)).toBe(3)
    stage.store.close()
  })
})

it('a step of the clock of Redis is reported once, and a late answer is none', async () => {
  const steps: number[] = []
  let [aheadUs, lateMs] = [0, 0]
  const store = new RedisStore(
    async ([command, ...args]) => {
      const reply = await server.client.call(command!, ...args)
      await pause(lateMs)
      return reply
    },
    { prefix: `steps${++round}`, now: () => Math.round((performance.timeOrigin + performance.now()) * 1000) + aheadUs },
  )
  store.watch({ countsLost: () => {}, clockStepped: byMs => steps.push(byMs), recalled: () => {} })
  const meters = [slidingWindow.meter({ count: 100, periodMs: 1000 }, {})]
  const counter = store.createCounter({ id: 'rule', algorithm: 'any', enforced: true, meters })
  const take = () => store.take([{ ...redisCharge(counter), key: 'someone', cost: 1 }])
  await take()
  lateMs = 700
  await take()
  lateMs = 0
  await take()
  expect(steps).toEqual([])
  for (const [i, stepUs] of [-HOUR, DAY].entries()) {
    aheadUs += stepUs
    await take()
    await take()
    expect(steps.length).toBe(i + 1)
    expect(Math.abs(steps[i]! - stepUs / 1000)).toBeLessThan(2000)
  }
  store.close()
})

describe('after a step back of the clock of Redis', () => {
  it('a block lasts for its own time at most', async () => {
    const stage = new Stage([blockMeter])
    const isBlocked = async () => !(await stage.take('someone', 0))
    await stage.take('someone', 60_000)
    stage.now += 10 * SECOND
    expect(await isBlocked()).toBe(true)
    stage.now -= DAY
    expect(await isBlocked()).toBe(true)
    stage.now += 61 * SECOND
    expect(await isBlocked()).toBe(false)
    stage.store.close()
  })

  it('the places of a process that died are free after one lease', async () => {
    const stage = new Stage([concurrency.meter({ count: 2, periodMs: 0 }, {})])
    expect(await stage.takeAll()).toBe(2)
    const other = new RedisStore(([command, ...args]) => server.client.call(command!, ...args), {
      prefix: `steps${round}`,
      now: () => stage.now,
    })
    const { meters } = stage.counter
    const counter = other.createCounter({ id: 'rule', algorithm: 'any', enforced: true, meters })
    const take = async () => (await other.take([{ ...redisCharge(counter), key: 'someone', cost: 1 }])).allowed
    stage.store.close()
    stage.now -= DAY
    expect(await take()).toBe(false)
    stage.now += LEASE_MS * 1000
    expect(await take()).toBe(true)
    other.close()
  })
})
