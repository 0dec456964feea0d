import { randomRuns } from '@test/random-runs'
import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { CalendarWindow } from '../../../packages/limiter/src/algorithms/calendar/calendar-window.ts'
import { type CalendarOptions, readCalendar } from '../../../packages/limiter/src/algorithms/calendar/read-calendar.ts'
import type { CalendarUnit } from '../../../packages/limiter/src/common/calendar-unit.ts'
import { USUAL_MS } from '../../../packages/limiter/src/common/calendar-unit.ts'
import { type RedisCounter, redisCharge } from '../../../packages/limiter/src/stores/redis/counter.ts'
import { RedisStore } from '../../../packages/limiter/src/stores/redis/redis-store.ts'
import { compileRule } from '../../../packages/limiter/src/testing/compile-rule.ts'
import { createStoreDecider } from '../../../packages/limiter/src/testing/stores/store-decider.ts'
import { createTestDecider } from '../../../packages/limiter/src/testing/test-decider.ts'
import {
  type Row,
  runTimeline,
  type TimelineDecider,
  type TimelineRule,
} from '../../../packages/limiter/src/testing/timeline.ts'
import { type RedisServer, startRedis } from '../../helpers/servers/redis-server.ts'

const SECOND = 1_000_000
const HOUR = 3600 * SECOND
const DAY = 24 * HOUR

let server: RedisServer
let now = 0
beforeAll(async () => {
  server = await startRedis()
  await server.client.config('SET', 'appendonly', 'no')
})
beforeEach(() => server.client.flushall())
afterAll(() => server.close())

const send = ([command, ...args]: readonly string[]) => server.client.call(command!, ...args)
const openStore = () => new RedisStore(send, { now: () => now })
const at = (text: string) => Date.parse(text) * 1000

const HOUR_MS = HOUR / 1000
type MomentRow = Omit<Row, 'at'> & { readonly at: string }
const moments: readonly { readonly title: string; readonly rule: TimelineRule; readonly rows: readonly MomentRow[] }[] =
  [
    {
      title: 'a day of 23 hours in Berlin',
      rule: { algorithm: 'fixed-window', limit: '3/day', zone: 'Europe/Berlin' },
      rows: [
        { at: '2026-03-28T22:59:59.999Z', expected: 'pass', remaining: 2, resetAfterMs: 1 },
        { at: '2026-03-28T23:00:00Z', times: 3, expected: 'pass', resetAfterMs: 23 * HOUR_MS },
        { at: '2026-03-29T00:59:59Z', expected: 'refuse', remaining: 0, retryAfterMs: 21 * HOUR_MS + 1000 },
        { at: '2026-03-29T21:59:59.999Z', expected: 'refuse', retryAfterMs: 1, resetAfterMs: 1 },
        { at: '2026-03-29T22:00:00Z', cost: 3, expected: 'pass', remaining: 0, resetAfterMs: 24 * HOUR_MS },
      ],
    },
    {
      title: 'a day of 25 hours in New York',
      rule: { algorithm: 'fixed-window', limit: '2/day', zone: 'America/New_York' },
      rows: [
        { at: '2026-11-01T04:00:00Z', cost: 2, expected: 'pass', remaining: 0, resetAfterMs: 25 * HOUR_MS },
        { at: '2026-11-02T04:30:00Z', expected: 'refuse', retryAfterMs: HOUR_MS / 2 },
        { at: '2026-11-02T05:00:00Z', cost: 0, expected: 'pass', remaining: 2, resetAfterMs: 0 },
        { at: '2026-11-02T05:00:00Z', cost: 3, expected: 'refuse', remaining: 2 },
      ],
    },
    {
      title: 'a day without midnight in São Paulo, and one with the hour before midnight twice',
      rule: { algorithm: 'fixed-window', limit: '1/day', zone: 'America/Sao_Paulo' },
      rows: [
        { at: '2018-11-04T02:59:59Z', expected: 'pass', resetAfterMs: 1000 },
        { at: '2018-11-04T03:00:00Z', expected: 'pass', resetAfterMs: 23 * HOUR_MS },
        { at: '2019-02-16T02:00:00Z', expected: 'pass', resetAfterMs: 25 * HOUR_MS },
        { at: '2019-02-17T02:30:00Z', expected: 'refuse', retryAfterMs: HOUR_MS / 2 },
      ],
    },
    ...([29, 30, 31] as const).map(anchor => ({
      title: `months from day ${anchor}, through February`,
      rule: { algorithm: 'fixed-window', limit: '1/month', anchor },
      rows: [
        { at: `2026-01-${anchor}T00:00:00Z`, expected: 'pass' as const, resetAfterMs: (59 - anchor) * 24 * HOUR_MS },
        { at: '2026-02-27T23:59:59Z', expected: 'refuse' as const, retryAfterMs: 1000 },
        { at: '2026-02-28T00:00:00Z', expected: 'pass' as const, resetAfterMs: anchor * 24 * HOUR_MS },
        { at: '2028-02-15T00:00:00Z', expected: 'pass' as const },
        { at: '2028-02-28T23:59:59Z', expected: 'refuse' as const, retryAfterMs: 1000 },
        { at: '2028-02-29T00:00:00Z', expected: 'pass' as const, resetAfterMs: anchor * 24 * HOUR_MS },
      ],
    })),
    {
      title: 'a year with a leap day, beside a limit per second',
      rule: { algorithm: 'fixed-window', limit: ['1/s', '2/year'] },
      rows: [
        { at: '2028-01-01T00:00:00Z', expected: 'pass', resetAfterMs: 366 * 24 * HOUR_MS },
        { at: '2028-01-01T00:00:00.500Z', expected: 'refuse', retryAfterMs: 500, remaining: 0 },
        { at: '2028-02-29T12:00:00Z', expected: 'pass' },
        { at: '2028-12-31T12:00:00Z', expected: 'refuse', retryAfterMs: 12 * HOUR_MS },
        { at: '2029-01-01T00:00:00Z', expected: 'pass', resetAfterMs: 365 * 24 * HOUR_MS },
      ],
    },
  ]

describe('calendar periods, in a table of moments', () => {
  const run = (rule: TimelineRule, title: string, rows: readonly MomentRow[], judge: TimelineDecider) =>
    runTimeline({ title, rule, rows: rows.map(row => ({ ...row, at: Date.parse(row.at) })) }, judge)

  it.each(moments)('in memory: $title', async ({ title, rule, rows }) => {
    const decider = createTestDecider([rule])
    await run(rule, title, rows, (atMs, cost, key) => {
      return decider.takeLocal({ method: 'GET', path: '/', attributes: { key } }, cost, Math.round(atMs * 1000))
    })
  })

  it.each(moments)('in Redis: $title', async ({ title, rule, rows }) => {
    const store = openStore()
    const decide = createStoreDecider(store, compileRule(rule))
    await run(rule, title, rows, (atMs, cost, key) => {
      now = Math.round(atMs * 1000)
      return decide(cost, key)
    })
    store.close()
  })
})

/** A process with a limit per calendar period; `identity` is the same for processes with the same rule. */
class Process {
  readonly store = openStore()
  counter: RedisCounter

  constructor(count: number, unit: CalendarUnit, options: CalendarOptions, identity = JSON.stringify(options)) {
    this.counter = this.use(count, unit, options, identity)
  }

  use(count: number, unit: CalendarUnit, options: CalendarOptions, identity = JSON.stringify(options)): RedisCounter {
    const limit = { count, periodMs: USUAL_MS[unit], unit }
    const meters = [new CalendarWindow(limit, unit, readCalendar(unit, options), identity)]
    this.counter = this.store.createCounter({ id: 'rule', algorithm: 'fixed-window', enforced: true, meters })
    return this.counter
  }

  async take(cost = 1, key = 'ann'): Promise<boolean> {
    return (await this.store.take([{ ...redisCharge(this.counter), key, cost }])).allowed
  }

  async takeAll(key = 'ann'): Promise<number> {
    let taken = 0
    while (await this.take(1, key)) taken++
    return taken
  }

  async retryUs(): Promise<number> {
    const charge = { ...redisCharge(this.counter), key: 'ann', cost: 1 }
    await this.store.look([charge])
    return charge.delays[0]!
  }

  async resetUs(): Promise<number> {
    const charge = { ...redisCharge(this.counter), key: 'ann' }
    await this.store.look([charge])
    return charge.resets[0]!
  }
}

describe('calendar periods in Redis', () => {
  it('two processes whose time zone data differ by an hour go on with one count over both ends of the day', async () => {
    const early = new Process(5, 'day', { zone: 'Etc/GMT-2' }, 'same')
    const late = new Process(5, 'day', { zone: 'Etc/GMT-1' }, 'same')
    now = at('2026-05-01T12:00Z')
    expect(await early.takeAll()).toBe(5)
    now = at('2026-05-01T22:10Z')
    expect(await late.takeAll()).toBe(0)
    expect(await late.retryUs()).toBe(50 * 60 * SECOND)
    now = at('2026-05-01T23:00Z')
    expect(await late.takeAll()).toBe(5)
    expect(await early.takeAll()).toBe(0)
  })

  it('processes whose time zone data differ admit one limit per day in all, whichever of them opens it', async () => {
    const call = fc.record({
      who: fc.nat(1),
      passUs: fc.constantFrom(1, HOUR / 4, HOUR, 7 * HOUR),
      cost: fc.constantFrom(1, 2, 5),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(call, { minLength: 30, maxLength: 60, size: 'max' }), async calls => {
        await server.client.flushall()
        const zones = ['Etc/GMT-2', 'Etc/GMT-1']
        const processes = zones.map(zone => new Process(5, 'day', { zone }, 'same'))
        const begun = at('2026-05-01T12:00Z')
        now = begun
        let admitted = 0
        for (const { who, passUs, cost } of calls) {
          now += passUs
          if (await processes[who]!.take(cost)) admitted += cost
          expect(admitted).toBeLessThanOrEqual(5 * (2 + Math.floor((now - begun) / DAY)))
        }
        for (const { store } of processes) store.close()
      }),
      { numRuns: randomRuns(6) },
    )
  })

  it('Redis decides by its own clock when that of a process is wrong by days', async () => {
    const clock = vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 3 * (DAY / 1000))
    const store = new RedisStore(send)
    const decide = createStoreDecider(store, compileRule({ algorithm: 'fixed-window', limit: '2/day' }))
    const answers = [await decide(1, 'ann'), await decide(1, 'ann'), await decide(1, 'ann')]
    clock.mockRestore()
    const untilMidnightMs = DAY / 1000 - (Date.now() % (DAY / 1000))
    expect(answers.map(({ allowed }) => allowed)).toEqual([true, true, false])
    for (const { decisions } of answers)
      expect(Math.abs(decisions[0]!.resetAfterMs - untilMidnightMs)).toBeLessThan(60_000)
    store.close()
  })

  it('a clock of Redis that is set back over the end of a month gives no caller a second quota', async () => {
    const one = new Process(5, 'month', {})
    now = at('2026-03-01T00:00:10Z')
    expect(await one.takeAll()).toBe(5)
    now = at('2026-02-28T23:59:00Z')
    expect(await one.takeAll()).toBe(0)
    now = at('2026-03-15T00:00Z')
    expect(await one.takeAll()).toBe(0)
    now = at('2026-04-01T00:00Z')
    expect(await one.takeAll()).toBe(5)
  })

  it('a clock of Redis that was years ahead and is set back refuses no caller for years', async () => {
    const one = new Process(5, 'month', {})
    now = at('2036-03-01T00:00:10Z')
    expect(await one.take(3)).toBe(true)
    now = at('2026-03-05T00:00:10Z')
    expect(await one.takeAll()).toBe(2)
    expect(await one.resetUs()).toBe(at('2026-04-01T00:00Z') - now)
    now = at('2026-04-01T00:00Z')
    expect(await one.takeAll()).toBe(5)
  })

  it('a clock of Redis that is set back a little lets no count expire before the month ends', async () => {
    const one = new Process(5, 'month', {})
    now = at('2026-03-01T00:00:10Z')
    expect(await one.takeAll()).toBe(5)
    now -= HOUR
    await one.take(1, 'bob')
    now = at('2026-03-31T23:59:59Z')
    for (const key of ['bob', 'eve', 'joe']) await one.take(1, key)
    expect(await one.takeAll()).toBe(0)
  })

  it('calls of January are counted until the year ends, for any number of other callers', async () => {
    const one = new Process(2, 'year', {})
    now = at('2026-01-02T00:00Z')
    expect(await one.takeAll()).toBe(2)
    for (let day = 0; day < 363; day += 3) {
      now = at('2026-01-02T00:00Z') + day * DAY
      await one.take(1, `other-${day}`)
    }
    now = at('2026-12-31T23:59:59Z')
    const restarted = new Process(2, 'year', {})
    expect(await restarted.takeAll()).toBe(0)
    now = at('2027-01-01T00:00Z')
    expect(await restarted.takeAll()).toBe(2)
  })

  it('keys of a real Redis live until the year ends', async () => {
    const store = new RedisStore(send)
    const decide = createStoreDecider(
      store,
      compileRule({ algorithm: 'fixed-window', limit: '2/year', zone: 'Asia/Tokyo' }),
    )
    const { decisions } = await decide(1, 'ann')
    const [key] = (await server.client.keys('diana:rule:*')) as [string]
    expect(await server.client.pttl(key)).toBeGreaterThan(decisions[0]!.resetAfterMs)
    store.close()
  })

  it('a rule that changes its zone or its anchor keeps what was used, and admits no more than the limit in a period', async () => {
    const one = new Process(5, 'month', { anchor: 1 })
    now = at('2026-05-14T12:00Z')
    expect(await one.take(3)).toBe(true)
    one.use(5, 'month', { anchor: 15 })
    expect(await one.takeAll()).toBe(2)
    expect(await one.resetUs()).toBe(at('2026-05-15T00:00Z') - now)
    now = at('2026-05-15T00:00Z')
    expect(await one.take(4)).toBe(true)
    one.use(5, 'month', { anchor: 15, zone: 'Asia/Tokyo' })
    expect(await one.takeAll()).toBe(1)
    now = at('2026-06-14T15:00Z')
    expect(await one.takeAll()).toBe(5)
  })

  it('permits are leased until the period ends, and no longer', async () => {
    const one = new Process(1_000_000, 'day', { zone: 'Asia/Kathmandu' })
    now = at('2026-05-14T18:14:59.900Z')
    const { store, counter } = one
    const { amount, lastsUs } = await store.lease({
      counter,
      key: 'ann',
      sequence: 1,
      used: [],
      kept: 0,
      needed: 0,
      wanted: 100,
    })
    expect(amount).toBeGreaterThan(0)
    expect(lastsUs).toBeLessThanOrEqual(100_000)
    now = at('2026-05-14T18:15Z')
    const charge = { ...redisCharge(counter), key: 'ann', cost: 1_000_000 }
    expect((await store.take([charge])).allowed).toBe(true)
  })
})

describe('shares of calendar limits', () => {
  it('a share of a limit per month counts in the same months', () => {
    const rule = compileRule({ algorithm: 'fixed-window', limit: '10/month', zone: 'Europe/Berlin', anchor: 31 })
    const shares = [0, 1, 2].map(rank => rule.partOf({ rank, size: 3 })[0]!)
    const state = new Float64Array(3)
    const moment = at('2026-02-28T12:00Z')
    expect(shares.map(meter => meter.remaining(state, 0, moment))).toEqual([4, 3, 3])
    for (const meter of shares) expect(meter.rate!.endsAt!(state, 0, moment)).toBe(at('2026-03-30T22:00Z'))
  })
})
