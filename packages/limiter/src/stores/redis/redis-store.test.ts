import { type RedisServer, startRedis } from '@test/servers/redis-server'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Meter } from '../../algorithms/algorithm.ts'
import { concurrency } from '../../algorithms/concurrency.ts'
import { fixedWindow } from '../../algorithms/fixed-window.ts'
import { algorithms } from '../../algorithms/index.ts'
import { slidingLogLua } from '../../algorithms/lua/generated.ts'
import { slidingLog } from '../../algorithms/sliding-log.ts'
import { tokenBucket } from '../../algorithms/token-bucket.ts'
import { takeBack } from '../store.ts'
import { type RedisCharge, type RedisCounter, redisCharge } from './counter.ts'
import { RedisStore, type RedisStoreOptions } from './redis-store.ts'

const NOON = 1_794_744_000_000_000

let server: RedisServer
let commands: (readonly string[])[]
const stores: RedisStore[] = []

beforeAll(async () => {
  server = await startRedis()
  await server.client.config('SET', 'appendonly', 'no')
})
afterAll(() => server.close())
beforeEach(async () => {
  commands = []
  await server.client.flushall()
})
afterEach(() => {
  for (const store of stores.splice(0)) store.close()
})

async function send(command: readonly string[]): Promise<unknown> {
  commands.push(command)
  const [name, ...args] = command
  return await server.client.call(name!, ...args)
}

function createStore(options: RedisStoreOptions = {}): RedisStore {
  const store = new RedisStore(send, { now: () => NOON, ...options })
  stores.push(store)
  return store
}

function createCounter(store: RedisStore, meters: readonly Meter[], id = 'rule', enforced = true): RedisCounter {
  return store.createCounter({ id, meters, algorithm: 'any', enforced })
}

function perMinute(count: number): Meter {
  return fixedWindow.meter({ count, periodMs: 60_000 }, {})
}

function charge(counter: RedisCounter, key = 'someone', cost = 1): RedisCharge {
  return { ...redisCharge(counter), key, cost }
}

async function left(store: RedisStore, counter: RedisCounter, key = 'someone'): Promise<number | undefined> {
  const look = charge(counter, key, 0)
  await store.look([look])
  return look.remaining[0]
}

describe('calls of one turn of the event loop', () => {
  it('calls of one turn travel together and are decided in order', async () => {
    const store = createStore()
    const counter = createCounter(store, [perMinute(5)])
    await left(store, counter)
    commands = []
    const answers = await Promise.all(Array.from({ length: 20 }, () => store.take([charge(counter)])))
    expect(answers.map(({ allowed }) => allowed)).toEqual(Array.from({ length: 20 }, (_, i) => i < 5))
    expect(commands.map(([name]) => name)).toEqual(['FCALL'])
  })

  it('many calls of one turn travel in several batches, still in order', async () => {
    const store = createStore()
    const counter = createCounter(store, [perMinute(150)])
    await left(store, counter)
    commands = []
    const answers = await Promise.all(Array.from({ length: 300 }, () => store.take([charge(counter)])))
    expect(answers.map(({ allowed }) => allowed)).toEqual(Array.from({ length: 300 }, (_, i) => i < 150))
    expect(commands.length).toBe(10)
  })

  it('calls do not wait for the end of the turn while few are under way', async () => {
    const store = createStore()
    const counter = createCounter(store, [perMinute(5)])
    const asked = Promise.all([store.take([charge(counter)]), store.take([charge(counter)])])
    await Promise.resolve().then(() => new Promise<void>(resolve => process.nextTick(resolve)))
    expect(commands.length).toBe(1)
    await asked
  })

  it('steady traffic is sent in two alternating batches, so that neither side idles', async () => {
    const store = createStore()
    const counter = createCounter(store, [perMinute(1000)])
    const ask = () => Promise.all(Array.from({ length: 16 }, () => store.take([charge(counter)])))
    await ask()
    commands = []
    const asked = ask()
    expect(commands.length).toBe(2)
    await asked
    expect(await left(store, counter)).toBe(1000 - 2 * 16)
  })

  it('calls of one turn are judged by different limits if a rule has just changed', async () => {
    const store = createStore()
    const before = createCounter(store, [perMinute(5)])
    const after = createCounter(store, [fixedWindow.meter({ count: 3, periodMs: 3_600_000 }, {})])
    const charges = [before, before, after, before, after].map(counter => charge(counter))
    await Promise.all(charges.map(one => store.take([one])))
    expect(charges.map(({ remaining, fits }) => [remaining[0], fits])).toEqual([
      [4, true],
      [3, true],
      [0, true],
      [1, true],
      [0, false],
    ])
  })

  it('a call that has more rules than fit into a batch is judged', async () => {
    const store = createStore()
    const counters = Array.from({ length: 1500 }, (_, i) => createCounter(store, [perMinute(1)], `rule ${i}`))
    const first = await store.take(counters.map(counter => charge(counter)))
    const second = await store.take(counters.slice(-1).map(counter => charge(counter)))
    expect([first.allowed, second.allowed]).toEqual([true, false])
  })
})

describe('a call by several rules', () => {
  it('a call is charged by no rule if one refuses', async () => {
    const store = createStore()
    const [wide, narrow] = [
      createCounter(store, [perMinute(10)], 'wide'),
      createCounter(store, [perMinute(1)], 'narrow'),
    ]
    const both = () => store.take([charge(wide), charge(narrow)])
    expect([(await both()).allowed, (await both()).allowed]).toEqual([true, false])
    expect([await left(store, wide), await left(store, narrow)]).toEqual([9, 0])
  })

  it('a call is counted exactly at any cost, alone and among others', async () => {
    const store = createStore()
    const most = 2 ** 53 - 1
    const counter = createCounter(store, [perMinute(most)])
    const large = 2 ** 52 + 1
    const [alone, other, third] = [
      charge(counter, 'one', large),
      charge(counter, 'two', large),
      charge(counter, 'three', 1),
    ]
    await store.take([alone])
    await Promise.all([store.take([other]), store.take([third])])
    expect([alone, other, third].map(({ remaining }) => remaining[0])).toEqual([most - large, most - large, most - 1])
  })

  it('a call is not refused by a rule in shadow, which counts nothing then', async () => {
    const store = createStore()
    const wide = createCounter(store, [perMinute(10)], 'wide')
    const shadow = createCounter(store, [perMinute(1)], 'shadow', false)
    await store.take([charge(wide), charge(shadow)])
    const second = charge(shadow)
    expect((await store.take([charge(wide), second])).allowed).toBe(true)
    expect([second.fits, await left(store, wide), await left(store, shadow)]).toEqual([false, 8, 0])
  })

  it('a call by several rules can be refunded', async () => {
    const store = createStore()
    const counters = [createCounter(store, [perMinute(10)], 'a'), createCounter(store, [perMinute(5)], 'b')]
    const charges = counters.map(counter => charge(counter, 'someone', 2))
    takeBack(store, charges, (await store.take(charges)).now)
    expect(await Promise.all(counters.map(counter => left(store, counter)))).toEqual([10, 5])
    expect(await Promise.all(counters.map(counter => store.keys(counter, 10)))).toEqual([[], []])
  })

  it('a call by several rules is forgotten by a reset', async () => {
    const store = createStore()
    const counter = createCounter(store, [perMinute(1)])
    await store.take([charge(counter)])
    await store.reset(counter, 'someone')
    expect(await left(store, counter)).toBe(1)
  })
})

describe('what may go wrong', () => {
  it('any other error of Redis reaches all callers', async () => {
    const failing = new RedisStore(() => Promise.reject(new Error('OOM command not allowed')))
    stores.push(failing)
    const counter = createCounter(failing, [perMinute(10)])
    const asked = [failing.take([charge(counter)]), failing.look([charge(counter)]), failing.take([charge(counter)])]
    failing.giveBack([{ counter, key: 'someone', cost: 1, moment: NOON }])
    for (const { status, ...rest } of await Promise.allSettled(asked)) {
      expect([status, rest]).toEqual(['rejected', { reason: new Error('OOM command not allowed') }])
    }
  })

  it.each([[undefined], ['OK'], [[]], [[1]], [[NOON, 1, 5, 6]], [[NOON, -1, 0]], [[NOON, -9]], [[NOON, 'x']]])(
    'a reply of %j is an error',
    async reply => {
      const store = new RedisStore(() => Promise.resolve(reply))
      stores.push(store)
      await expect(store.take([charge(createCounter(store, [perMinute(10)]))])).rejects.toThrow('Redis answered')
    },
  )

  it('numbers that a client answers as text are understood', async () => {
    const store = new RedisStore(async command => ((await send(command)) as number[]).map(String), { now: () => NOON })
    stores.push(store)
    const counter = createCounter(store, [perMinute(10)])
    await store.take([charge(counter)])
    expect(await left(store, counter)).toBe(9)
  })

  // values of msgpack: a list, a text, numbers, nothing
  it.each([
    ['text', Buffer.from('hello')],
    ['nothing', Buffer.from('')],
    ['eight bytes', Buffer.from('12345678')],
    ['the mark of an unknown limit', Buffer.from([1, 1, 7])],
    ['a mark alone', Buffer.from([7])],
    ['a text for a mark', Buffer.from([1, 1, 0xa1, 0x61])],
    ['an empty list', Buffer.from([0x90])],
    ['an empty map', Buffer.from([0x80])],
    ['a list of texts', Buffer.from([0x96, ...Array.from({ length: 6 }, () => [0xa1, 0x61]).flat()])],
    ['lists in lists', Buffer.from([0x96, 0, 0, 0, 0x90, 0x90, 0x91, 0x90])],
    ['leases of texts', Buffer.from([0x95, 0, 0, 0, 0x93, 0xa1, 0x61, 1, 1, 0xc2])],
    ['reservations of texts', Buffer.from([0x95, 0, 0, 0, 0xc2, 0x94, 0, 0, 0, 0xa1, 0x61])],
    ['a limit without levels', Buffer.from([0x96, 0, 0, 0, 0xc2, 0xc2, 0x94, 1, 1, 1, 0x90])],
    ['a limit with levels of texts', Buffer.from([0x96, 0, 0, 0, 0xc2, 0xc2, 0x95, 1, 1, 1, 0x91, 0xa1, 0x61, 5])],
    ['a list that is cut', Buffer.from([0xdc, 0xff, 0xff, 1])],
    ['deep lists', Buffer.alloc(100_000, 0x91)],
    ['a very long text', Buffer.alloc(2_000_000, 'x')],
    ['very many numbers', Buffer.alloc(2_000_000, 1)],
  ])('%s in place of a ledger counts as nothing', async (_, garbage) => {
    const store = createStore()
    const counter = createCounter(store, [perMinute(10)])
    const ledger = counter.ledgerKeyOf('someone')
    await store.take([charge(counter)])
    await server.client.set(ledger, garbage)
    await store.take([charge(counter)])
    expect(await left(store, counter)).toBe(9)
    expect(await server.client.pttl(ledger)).toBeGreaterThan(0)
  })

  it('any bytes in place of a ledger count as nothing, or as numbers of its limit', async () => {
    const store = createStore()
    const counters = algorithms
      .filter(({ limit }) => limit === 'rate')
      .map(algorithm =>
        createCounter(store, [algorithm.meter({ count: 5, periodMs: 1000 }, { warmUp: 1000 })], algorithm.name),
      )
    for (const counter of counters) {
      await store.take([charge(counter)])
      const ledger = counter.ledgerKeyOf('someone')
      const known = await server.client.getBuffer(ledger)
      for (let round = 0; round < 60; round++) {
        const bytes = Buffer.from(known!)
        bytes[(round * 7) % bytes.length]! ^= 1 << (round % 8)
        await server.client.set(ledger, round % 2 === 0 ? bytes : bytes.subarray(0, round % bytes.length))
        const answer = charge(counter)
        await store.take([answer])
        expect(answer.delays.every(delay => delay >= 0)).toBe(true)
      }
    }
  })

  it('a value that is no ledger and no era of Diana counts as nothing', async () => {
    const store = createStore()
    const counter = createCounter(store, [perMinute(10)])
    for (const key of [counter.ledgerKeyOf('someone'), 'diana:era']) {
      for (const spoil of [
        () => server.client.set(key, 'x'),
        () => server.client.lpush(key, 'x'),
        () => server.client.hset(key, 'x', 'x'),
      ]) {
        await server.client.flushall()
        await spoil()
        // the first request after the counts were lost is answered so
        await store.take([charge(counter)]).catch(() => store.take([charge(counter)]))
        expect(await left(store, counter)).toBe(9)
      }
    }
  })

  it('a closed store says so', async () => {
    const store = createStore()
    const counter = createCounter(store, [perMinute(10)])
    store.close()
    await expect(store.take([charge(counter)])).rejects.toThrow('the store is closed')
  })
})

describe('keys', () => {
  const limits = [
    ['1/100ms', { count: 1, periodMs: 100 }],
    ['10/s', { count: 10, periodMs: 1000 }],
    ['500/30d', { count: 500, periodMs: 30 * 86_400_000 }],
  ] as const
  const rates = algorithms.filter(({ limit }) => limit === 'rate')

  it.each(rates.flatMap(algorithm => limits.map(([text, limit]) => [algorithm.name, text, algorithm, limit] as const)))(
    'of %s with %s expire after any operation, and not before they are idle',
    async (_name, _text, algorithm, limit) => {
      const store = createStore({ now: undefined })
      const counter = createCounter(store, [algorithm.meter(limit, { warmUp: 1000 })])
      const key = counter.ledgerKeyOf('someone')
      for (let call = 0; call < 3; call++) {
        const one = charge(counter)
        const { now } = await store.take([one])
        const idleMs = one.resets[0]! / 1000
        expect(await server.client.pttl(key)).toBeGreaterThanOrEqual(Math.floor(idleMs))
        store.giveBack([{ counter, key: 'someone', cost: call, moment: now + one.wait }])
        await store.look([one])
        expect(await server.client.pttl(key)).not.toBe(-1)
      }
    },
  )

  it('keys expire though another program has taken their expiry away', async () => {
    const store = createStore({ now: undefined })
    const counter = createCounter(store, [tokenBucket.meter({ count: 10, periodMs: 1000 }, {})])
    await store.take([charge(counter)])
    await server.client.persist(counter.ledgerKeyOf('someone'))
    await vi.waitFor(async () => {
      await store.take([charge(counter)])
      expect(await server.client.pttl(counter.ledgerKeyOf('someone'))).toBeGreaterThan(0)
    })
  })

  it('keys of another prefix are another count', async () => {
    const [one, other] = [createStore(), createStore({ prefix: 'other' })]
    const [counter, otherCounter] = [createCounter(one, [perMinute(1)]), createCounter(other, [perMinute(1)])]
    const answers = [await one.take([charge(counter)]), await other.take([charge(otherCounter)])]
    expect(answers.map(({ allowed }) => allowed)).toEqual([true, true])
  })

  it('keys are shared by processes whose libraries differ', async () => {
    const [one, other] = [createStore(), createStore()]
    const counter = createCounter(one, [perMinute(10)])
    const log = slidingLog.meter({ count: 10, periodMs: 1000 }, {})
    createCounter(
      other,
      [Object.assign(log, { redis: { ...log.redis!, lua: { ...slidingLogLua, name: 'own-log' } } })],
      'more',
    )
    const otherCounter = createCounter(other, [perMinute(10)])
    for (let call = 0; call < 4; call++) {
      await one.take([charge(counter)])
      await other.take([charge(otherCounter)])
    }
    const libraries = new Set(commands.filter(([name]) => name === 'FCALL').map(([, library]) => library))
    expect([libraries.size, await left(one, counter), await left(other, otherCounter)]).toEqual([2, 2, 2])
  })
})

describe('callers', () => {
  it('the callers of one rule are listed, whatever their names', async () => {
    const store = createStore()
    const [counter, other] = ['rule', 'rule*'].map(id => createCounter(store, [perMinute(5)], id)) as [
      RedisCounter,
      RedisCounter,
    ]
    const callers = ['', '*', '{x}', '}', '%2A;', 'ann', '\ud800', '[a-z]', '?', 'é', '\\']
    await Promise.all(callers.map(caller => store.take([charge(counter, caller)])))
    await store.take([charge(other, 'other')])
    expect((await store.keys(counter, 100)).sort()).toEqual([...callers].sort())
    expect(await store.keys(other, 100)).toEqual(['other'])
    expect((await store.keys(counter, 3)).length).toBe(3)
  })

  it('a caller has a key that people can read', async () => {
    const store = createStore()
    const counter = store.createCounter({
      id: 'login',
      meters: [perMinute(5)],
      algorithm: 'any',
      by: ['account'],
      enforced: true,
    })
    await store.take([charge(counter, 'ann')])
    expect((await server.client.keys('*')).sort()).toEqual(['diana:era', 'diana:login:account{ann}'])
  })
})

describe('a state of many numbers', () => {
  it('a state of many numbers is kept whole', async () => {
    const store = createStore()
    const meters = [1, 2, 3].map(days => slidingLog.meter({ count: 1000, periodMs: days * 86_400_000 }, {}))
    const counter = createCounter(store, [...meters, concurrency.meter({ count: 7, periodMs: 0 }, {})])
    for (const cost of [6, 1]) await store.take([charge(counter, 'someone', cost)])
    const last = charge(counter)
    expect((await store.take([last])).allowed).toBe(false)
    expect(last.remaining).toEqual([993, 993, 993, 0])
  })
})
