import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Meter } from '../algorithms/algorithm.ts'
import { concurrency } from '../algorithms/concurrency.ts'
import { type RedisServer, startRedis } from '../sources/doubles/redis-server.ts'
import { subjects } from '../testing/subject.ts'
import { costFrom, type Dice, nextMoment, pick, startFrom } from '../testing/walk.ts'
import { type LocalCharge, localCharge, MemoryStore } from './memory.ts'
import { RedisStore } from './redis.ts'
import { LEASE_MS, type RedisCharge, type RedisCounter, redisCharge } from './redis-counter.ts'
import { CROWD, type Table } from './table.ts'

const STEPS = 40

interface Rule {
  readonly id: string
  readonly algorithm: string
  readonly enforced: boolean
  readonly timeoutUs: number | undefined
  readonly options: Dice
  meters: readonly Meter[]
  counter: RedisCounter
  readonly table: Table
}

interface Receipt {
  readonly rule: Rule
  readonly key: string
  readonly cost: number
  readonly moment: number
}

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
  await server.client.config('SET', 'appendonly', 'no')
})
afterAll(() => server.close())

const die = fc.nat(9999)
const dice = fc.array(die, { minLength: 6, maxLength: 6 })
const algorithmNames = [...Object.keys(subjects), 'concurrency']
let walks = 0

function metersOf(algorithm: string, levels: readonly Dice[], options: Dice, timeoutUs: number | undefined): Meter[] {
  return levels.map(limit => {
    if (algorithm === 'concurrency') return concurrency.meter({ count: limit[0]! % 7, periodMs: 0 }, {})
    return subjects[algorithm]!(limit, options, timeoutUs).meter
  })
}

/** One and the same walk on both stores. */
class Walk {
  readonly #memory = new MemoryStore()
  readonly #redis: RedisStore
  readonly #rules: readonly Rule[]
  readonly #receipts: Receipt[] = []
  readonly #end: number
  #now: number
  #retryUs = 0

  constructor(start: number, algorithms: readonly string[], ruleDice: readonly Dice[]) {
    this.#now = startFrom(start)
    this.#end = this.#now + LEASE_MS * 1000 - 1
    const walk = walks++
    this.#redis = new RedisStore(([command, ...args]) => server.client.call(command!, ...args), {
      prefix: `walk${walk}`,
      now: () => this.#now,
    })
    this.#rules = ruleDice.map((numbers, i) => {
      const [levels = 0, wait = 0, shadow = 0] = numbers
      const id = `rule${i}`
      const algorithm = pick(algorithms, i)
      const enforced = shadow % 4 > 0
      const timeoutUs = pick([undefined, undefined, 1, 1000, 1_000_000], wait)
      const limits = Array.from({ length: 1 + (levels % 3) }, (_, level) => numbers.slice(level, level + 2))
      const meters = metersOf(algorithm, limits, numbers, timeoutUs)
      const counter = this.#redis.createCounter({ id, algorithm, enforced, meters })
      return {
        id,
        algorithm,
        enforced,
        timeoutUs,
        options: numbers,
        meters,
        counter,
        table: this.#memory.createTable(id, meters),
      }
    })
  }

  async step(numbers: Dice): Promise<void> {
    const [what = 0, who = 0, many = 0] = numbers
    const limit = { count: 1 + (many % 20), periodMs: pick([1, 100, 1000, 60_000], many) }
    const next = nextMoment(this.#now, numbers.slice(3), limit, this.#retryUs)
    // nobody renews a lease here, and in memory none ends
    this.#now = this.#rules.some(({ counter }) => counter.held) ? Math.min(next, this.#end) : next
    if (what % 12 === 0) return await this.#giveBack(who)
    if (what % 12 === 1) return await this.#change(pick(this.#rules, who), numbers)
    // calls of one turn travel together, one that comes alone goes another way through the script
    const calls = pick([1, 1, 2, 5], many)
    await Promise.all(Array.from({ length: calls }, (_, i) => this.#charge(numbers.map(die => die + i * 37))))
  }

  close(): void {
    this.#redis.close()
  }

  async #charge(numbers: Dice): Promise<void> {
    const [kind = 0, who = 0, wait = 0] = numbers
    const what = kind % 12 === 2 ? 'look' : 'take'
    const met = this.#rules.filter((_, i) => ((who >> i) & 1) === 0 || i === who % this.#rules.length)
    const charges = met.map((rule, i) => {
      const key = pick(['one', 'other', 'third'], who >> (2 + i))
      const cost = costFrom(numbers.slice(2), 10)
      const mayWait = (wait >> i) % 3 > 0
      const { enforced } = rule
      const local: LocalCharge = { ...localCharge(rule.table), key, cost, enforced, mayWait }
      const shared: RedisCharge = { ...redisCharge(rule.counter), key, cost, enforced, mayWait }
      return { rule, local, shared }
    })
    const locals = charges.map(({ local }) => local)
    const allowed = this.#memory[what](locals, locals.length, this.#now)
    const said = locals.map(seen)
    const answer = await this.#redis[what](charges.map(({ shared }) => shared))
    expect({ ...answer, charges: charges.map(({ shared }) => seen(shared)) }).toEqual({
      allowed,
      now: this.#now,
      charges: said,
    })
    const retryUs = Math.max(...locals.map(({ wait }) => wait))
    // a changed limit may ask for thousands of years, which no clock counts in microseconds
    this.#retryUs = retryUs < 1e14 ? retryUs : 0
    if (what === 'look' || !allowed) return
    for (const { rule, local } of charges) {
      const { key, cost, fits, wait } = local
      if (cost > 0 && fits) this.#receipts.push({ rule, key, cost, moment: this.#now + wait })
    }
  }

  async #giveBack(which: number): Promise<void> {
    const last = this.#receipts.length - 1
    if (last < 0) return
    const [receipt] = this.#receipts.splice(which % 3 > 0 ? last : which % (last + 1), 1)
    const { rule, key, cost, moment } = receipt!
    this.#redis.giveBack([{ counter: rule.counter, key, cost, moment }])
    this.#amend(rule, key, cost, moment)
    await this.#arrival(rule)
  }

  /** Nobody waits for a charge to be given back; whatever is asked next is answered after it. */
  async #arrival({ counter }: Rule): Promise<void> {
    await this.#redis.look([redisCharge(counter)])
  }

  #amend({ table, meters }: Rule, key: string, cost: number, moment: number): void {
    const slot = table.find(key)
    if (slot === CROWD && key !== '') return
    meters.forEach((meter, level) => {
      meter.giveBack(table.state(slot), table.base(slot) + table.offsets[level]!, this.#now, cost, moment)
    })
  }

  /** Redis adopts a key's state when it next writes it, which is now. */
  async #change(rule: Rule, numbers: Dice): Promise<void> {
    const levels = Array.from({ length: 1 + (numbers[2]! % 3) }, (_, level) => numbers.slice(level, level + 2))
    rule.meters = metersOf(rule.algorithm, levels, rule.options, rule.timeoutUs)
    rule.counter = this.#redis.createCounter(rule)
    rule.table.adopt(rule.meters, this.#now)
    for (const key of ['one', 'other', 'third']) {
      this.#redis.giveBack([{ counter: rule.counter, key, cost: 0, moment: this.#now }])
      this.#amend(rule, key, 0, this.#now)
    }
    await this.#arrival(rule)
  }
}

/** What a store said of a charge; Redis says never where it would be longer than 285 years. */
function seen({ delays, wait, fits, remaining, resets }: LocalCharge | RedisCharge): object {
  const sane = (us: number) => (us > Number.MAX_SAFE_INTEGER ? Number.POSITIVE_INFINITY : us)
  return { delays: delays.map(sane), wait: sane(wait), fits, remaining, resets: resets.map(sane) }
}

async function walk(start: number, algorithms: readonly string[], rules: Dice[], steps: Dice[]): Promise<void> {
  const one = new Walk(start, algorithms, rules)
  try {
    for (const step of steps) await one.step(step)
  } finally {
    one.close()
  }
}

describe('memory and Redis give equal answers', () => {
  it.each(algorithmNames)('to calls by one rule: %s', async algorithm => {
    await fc.assert(
      fc.asyncProperty(die, dice, fc.array(dice, { minLength: STEPS, maxLength: STEPS }), (start, rule, steps) =>
        walk(start, [algorithm], [rule], steps),
      ),
      { numRuns: 30 },
    )
  })

  it('to calls by several rules at once, all or nothing', async () => {
    const several = fc.array(dice, { minLength: 2, maxLength: 4 })
    const names = fc.shuffledSubarray(algorithmNames, { minLength: 4 })
    await fc.assert(
      fc.asyncProperty(die, names, several, fc.array(dice, { minLength: STEPS, maxLength: STEPS }), walk),
      { numRuns: 100 },
    )
  })
})
