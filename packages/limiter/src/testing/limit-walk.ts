import assert from 'node:assert/strict'
import type { Algorithm, Limit, Meter } from '../algorithms/algorithm.ts'
import { fixedWindow } from '../algorithms/fixed-window.ts'
import { leakyBucket } from '../algorithms/leaky-bucket.ts'
import { slidingLog } from '../algorithms/sliding-log.ts'
import { slidingWindow } from '../algorithms/sliding-window.ts'
import { tokenBucket } from '../algorithms/token-bucket.ts'
import { warmUp } from '../algorithms/warm-up.ts'
import { LimitFamily } from '../stores/memory/limit-family.ts'
import { localCharge, MemoryStore } from '../stores/memory/memory-store.ts'
import { refundLocal } from '../stores/memory/refund-local.ts'
import { resetsSoFar, type Table } from '../stores/memory/table.ts'
import { type RedisCounter, redisCharge } from '../stores/redis/counter.ts'
import { RedisStore } from '../stores/redis/redis-store.ts'
import type { SendCommand } from '../stores/redis/send-command.ts'
import { type Dice, pick } from './walk.ts'

/** Returns the most calls that a limit lets pass in an interval of some microseconds. */
type Bound = (us: number) => number

interface Subject {
  readonly algorithm: Algorithm
  readonly options: Readonly<Record<string, unknown>>
  boundOf(limit: Limit): Bound
}

const windows =
  ({ count, periodMs }: Limit) =>
  (us: number) =>
    count * (Math.floor(us / (periodMs * 1000)) + 1)
const twice =
  ({ count, periodMs }: Limit) =>
  (us: number) =>
    count * (Math.floor(us / (periodMs * 1000)) + 2)
const bucket =
  ({ count, periodMs }: Limit) =>
  (us: number) =>
    count + Math.floor((us * count) / (periodMs * 1000) + 1e-6)

/** The algorithms that count a key with several limits. */
export const limitSubjects: Readonly<Record<string, Subject>> = {
  'sliding-window': { algorithm: slidingWindow, options: {}, boundOf: windows },
  'sliding-log': { algorithm: slidingLog, options: {}, boundOf: windows },
  'fixed-window': { algorithm: fixedWindow, options: {}, boundOf: twice },
  'token-bucket': { algorithm: tokenBucket, options: {}, boundOf: bucket },
  'leaky-bucket': { algorithm: leakyBucket, options: {}, boundOf: bucket },
  // its calls pay later, so that a cost of any size passes
  'warm-up': { algorithm: warmUp, options: { warmUp: 1000 }, boundOf: () => () => Number.POSITIVE_INFINITY },
}

interface Counted {
  readonly limit: Limit
  readonly table: Table
  readonly counter: RedisCounter
}

/**
 * A key whose limit changes from call to call, in memory and in Redis: upgrades, downgrades, limits that the rule does not state, and
 * refunds. Both must give the same answers, and no interval may have more calls than the largest of the limits admits.
 */
export class LimitWalk {
  readonly #memory = new MemoryStore()
  readonly #redis: RedisStore
  readonly #subject: Subject
  readonly #family = new LimitFamily()
  readonly #stated: Counted[]
  readonly #others: Counted[]
  readonly #admitted: {
    readonly moment: number
    readonly cost: number
    readonly table: Table
    readonly slot: number
  }[] = []
  #now = 1_794_744_000_000_000
  #current = 0

  constructor(name: string, send: SendCommand, prefix: string, limits: readonly Limit[], stated: number) {
    this.#subject = limitSubjects[name]!
    this.#redis = new RedisStore(send, { prefix, now: () => this.#now })
    const meters = limits.map(limit => this.#subject.algorithm.meter(limit, this.#subject.options))
    const counted = limits.map((limit, i) => this.#countedBy(limit, i, meters[i]!, meters.slice(0, stated)))
    counted.forEach(({ table }, i) => void this.#family.add(table, i < stated))
    this.#stated = counted.slice(0, stated)
    this.#others = counted.slice(stated)
  }

  async step([what = 0, which = 0, wait = 0, many = 0]: Dice): Promise<void> {
    this.#now += pick([0, 0, 0, 1, 1000, 100_000, 400_000, 1_000_000, 7_000_000, 61_000_000, 200_000_000], wait)
    const limits = what % 11 === 0 && this.#others.length > 0 ? this.#others : this.#stated
    if (what % 3 === 0) this.#current = which
    // the store cannot take back what a limit from outside has admitted once another limit has continued it
    if (what % 13 === 1 && this.#others.length === 0) return this.#refund(which)
    await this.#ask(pick(limits, this.#current), what % 7 === 2 ? 'look' : 'take', pick([1, 1, 1, 2, 5], many))
  }

  /** Throws if an interval has more calls than any of the limits admits. */
  assertBound(): void {
    // a limit from outside of another period continues what the one before it has in its window
    if (this.#others.length > 0 && !this.#isOnePeriod) return
    const bounds = [...this.#stated, ...this.#others].map(({ limit }) => this.#subject.boundOf(limit))
    for (let first = 0; first < this.#admitted.length; first++) {
      let sum = 0
      for (let last = first; last < this.#admitted.length; last++) {
        sum += this.#admitted[last]!.cost
        const us = this.#admitted[last]!.moment - this.#admitted[first]!.moment
        const most = Math.max(...bounds.map(bound => bound(us)))
        assert.ok(sum <= most, `${sum} calls in ${us} us, and the largest limit admits ${most}`)
      }
    }
  }

  get #isOnePeriod(): boolean {
    return new Set([...this.#stated, ...this.#others].map(({ limit }) => limit.periodMs)).size === 1
  }

  close(): void {
    this.#redis.close()
  }

  #countedBy(limit: Limit, i: number, meter: Meter, limitMeters: readonly Meter[]): Counted {
    const table = this.#memory.createTable(`limit ${i}`, [meter])
    const { name } = this.#subject.algorithm
    const rule = { id: 'rule', algorithm: name, enforced: true, meters: [meter], limitMeters }
    return { limit, table, counter: this.#redis.createCounter(rule) }
  }

  async #ask({ table, counter }: Counted, what: 'look' | 'take', cost: number): Promise<void> {
    const local = { ...localCharge(table), key: 'ann', cost, mayWait: false }
    const shared = { ...redisCharge(counter), key: 'ann', cost, mayWait: false }
    const allowed = this.#memory[what]([local], 1, this.#now)
    const answer = await this.#redis[what]([shared])
    const seen = ({ fits, delays, remaining, resets }: typeof local | typeof shared) => ({
      fits,
      delays,
      remaining,
      resets,
    })
    assert.deepStrictEqual({ allowed: answer.allowed, ...seen(shared) }, { allowed, ...seen(local) })
    if (what === 'take' && allowed) this.#admitted.push({ moment: this.#now, cost, table, slot: local.slot })
  }

  async #refund(which: number): Promise<void> {
    const place = which % 2 === 0 ? this.#admitted.length - 1 : which % Math.max(1, this.#admitted.length)
    const [charged] = this.#admitted.splice(place, 1)
    if (charged === undefined) return
    const { cost, moment, table } = charged
    const { counter } = this.#stated.find(one => one.table === table) ?? this.#stated[0]!
    this.#redis.giveBack([{ counter, key: 'ann', cost, moment, wait: 0 }])
    refundLocal({ ...charged, key: 'ann', resetsBefore: resetsSoFar() }, this.#now, 'all')
    await this.#redis.look([redisCharge(counter)])
  }
}
