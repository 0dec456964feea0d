import assert from 'node:assert/strict'
import type { CompiledRule } from '../../rules/compile.ts'
import { type FleetCharge, type FleetCounter, fleetCharge, type SharedStore, takeBack } from '../../stores/store.ts'
import { compileRule } from '../compile-rule.ts'
import type { SuiteTest } from '../suite-test.ts'
import { runTimeline, type TimelineRule } from '../timeline.ts'
import { timelines } from '../timelines.ts'
import { randomDice } from '../walk.ts'
import { StoreComparison, type TestClock } from './comparison.ts'
import { createStoreDecider } from './store-decider.ts'

/** An empty store that a test may use. */
export interface SharedStoreUnderTest {
  readonly store: SharedStore
  close(): Promise<void>
}

export interface SharedStoreSuiteOptions {
  /** Creates an empty store that reads the time, in whole microseconds, from `now`. */
  create(now: () => number): Promise<SharedStoreUnderTest>
}

const STEPS = 300
const rules: readonly TimelineRule[] = [
  { algorithm: 'sliding-window', limit: '5/s' },
  { algorithm: 'token-bucket', limit: ['3/s', '20/m'], burst: 4 },
  { algorithm: 'leaky-bucket', limit: '10/s', burst: 3, whenFull: 'wait' },
  { algorithm: 'fixed-window', limit: '2/s', whenFull: 'shadow' },
]

type StoreTest = (store: SharedStore, clock: TestClock) => Promise<void>

function testOf({ create }: SharedStoreSuiteOptions, name: string, test: StoreTest): SuiteTest {
  const run = async (): Promise<void> => {
    const clock = { now: 1_800_000_000_000_000 }
    const { store, close } = await create(() => clock.now)
    await test(store, clock).finally(() => close())
  }
  return { name, run }
}

/** Lists the tables of moments of all algorithms, as tests of a store for any test runner. */
export function timelineSuite(options: SharedStoreSuiteOptions): readonly SuiteTest[] {
  return timelines.map(timeline => {
    return testOf(options, `the store answers a table of moments: ${timeline.title}`, async (store, clock) => {
      const start = clock.now
      const decide = createStoreDecider(store, compileRule(timeline.rule))
      await runTimeline(timeline, (atMs, cost, key) => {
        clock.now = Math.round(start + atMs * 1000)
        return decide(cost, key)
      })
    })
  })
}

/** Lists the promises of every store that the limiter counts in, as tests for any test runner. */
export function sharedStoreSuite(options: SharedStoreSuiteOptions): readonly SuiteTest[] {
  const tests: SuiteTest[] = []
  const add = (name: string, test: StoreTest): void => void tests.push(testOf(options, name, test))

  add('a call that one rule refuses is charged by none', async store => {
    const [narrow, wide] = countersOf(store, { limit: '1/h' }, { limit: '10/h' })
    const charges = [charge(wide!), charge(narrow!)]
    assert.equal((await store.take(charges)).allowed, true)
    assert.equal((await store.take(charges)).allowed, false)
    await store.look(charges)
    assert.deepEqual(charges[0]!.remaining, [9])
  })

  add('calls that are decided at the same time exceed no limit', async store => {
    const [counter] = countersOf(store, { limit: '10/h' })
    const answers = await Promise.all(Array.from({ length: 30 }, () => store.take([charge(counter!)])))
    assert.equal(answers.filter(({ allowed }) => allowed).length, 10)
  })

  add('a freed concurrency slot admits the next call', async store => {
    const [counter] = countersOf(store, { algorithm: 'concurrency', limit: 1 })
    const { allowed, now } = await store.take([charge(counter!)])
    assert.equal(allowed, true)
    assert.equal((await store.take([charge(counter!)])).allowed, false)
    store.giveBack([{ counter: counter!, key: 'ann', cost: 1, moment: now }])
    await store.look([charge(counter!)])
    assert.equal((await store.take([charge(counter!)])).allowed, true)
  })

  add('refund takes back all charges of a call', async store => {
    const [counter] = countersOf(store, { limit: '2/h' })
    const charges = [charge(counter!)]
    const { now } = await store.take(charges)
    takeBack(store, charges, now)
    await store.look(charges)
    assert.deepEqual(charges[0]!.remaining, [2])
  })

  add('a charge of before a reset is not refunded after it', async (store, clock) => {
    const [counter] = countersOf(store, { limit: '2/h' })
    const { now } = await store.take([charge(counter!)])
    clock.now += 1000
    await store.reset(counter!, 'ann')
    clock.now += 1000
    const charges = [charge(counter!)]
    await store.take(charges)
    store.giveBack([{ counter: counter!, key: 'ann', cost: 1, moment: now }])
    await store.look(charges)
    assert.deepEqual(charges[0]!.remaining, [1])
  })

  add('keys lists the keys that have counts, up to the number asked for', async store => {
    if (store.keys === undefined) return
    const [counter] = countersOf(store, { limit: '2/h' })
    for (const key of ['ann', 'bob', 'eve']) await store.take([charge(counter!, key)])
    const keys = await store.keys(counter!, 10)
    assert.deepEqual(keys.filter(key => key !== '').sort(), ['ann', 'bob', 'eve'])
    assert.ok((await store.keys(counter!, 2)).length <= 2)
  })

  add('catchUp counts what fits of missed calls, and reports what does not', async store => {
    const [counter] = countersOf(store, { limit: '5/h' })
    const charges = [charge(counter!)]
    await store.take(charges)
    const missed = { counter: counter!, key: 'ann', levels: [{ known: 3, missing: 4 }], unfit: [] }
    await store.catchUp(missed)
    assert.deepEqual(missed.unfit, [2])
    await store.look(charges)
    assert.deepEqual(charges[0]!.remaining, [0])
  })

  for (const seed of [1, 2, 3]) {
    add(`${STEPS} random calls, refunds and resets are answered as in memory, seed ${seed}`, async (store, clock) => {
      const compiled = rules.map((rule, i) => compileRule(rule, { id: `rule-${i}` }))
      const comparison = new StoreComparison(store, clock, compiled, seed)
      const next = randomDice(seed)
      for (let step = 0; step < STEPS; step++) await comparison.step(next())
    })
  }
  return tests
}

function countersOf(store: SharedStore, ...rules: readonly TimelineRule[]): FleetCounter[] {
  return rules.map((rule, i) => store.createCounter(compileRule(rule, { id: `rule-${i}` }) satisfies CompiledRule))
}

function charge(counter: FleetCounter, key = 'ann'): FleetCharge {
  return { ...fleetCharge(counter), key, cost: 1, mayWait: false }
}
