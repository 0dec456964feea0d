import assert from 'node:assert/strict'
import { algorithms } from '../../algorithms/index.ts'
import { LedgerRegistry } from '../../stores/ledgers/ledger-registry.ts'
import { LedgerStore } from '../../stores/ledgers/ledger-store.ts'
import { type FleetCharge, fleetCharge } from '../../stores/store.ts'
import type { LedgerWrite, TransactionalStore } from '../../stores/transactional-store.ts'
import { compileRule } from '../compile-rule.ts'
import type { SuiteTest } from '../suite-test.ts'
import { sharedStoreSuite } from './shared-store-suite.ts'

/** An empty store that a test may use. */
export interface StoreUnderTest {
  readonly store: TransactionalStore
  /** This store as another process sees it, over a connection of its own; left out: `store`. */
  readonly other?: TransactionalStore | undefined
  close(): Promise<unknown>
}

export interface StoreSuiteOptions {
  /** Creates an empty store. */
  create(): Promise<StoreUnderTest>
}

const KEEP_MS = 600_000
/** The clock of a store may be wrong, and is no other unit. */
const CLOCKS_APART_MS = 86_400_000
/** Names that a database, a file system or a pattern could read in another way. */
const NAMES = [
  'plain',
  "it's",
  '100%',
  'a_b',
  'axb',
  '../up',
  'sp ace',
  '\u{1f3f9}{}',
  'UPPER',
  'upper',
  'x'.repeat(200),
]
const HOLDERS = 8
const MOVES = 10

/** Lists the promises of a store of your own, as tests for any test runner. */
export function storeSuite({ create }: StoreSuiteOptions): readonly SuiteTest[] {
  const tests: SuiteTest[] = []
  const add = (name: string, test: (store: TransactionalStore, other: TransactionalStore) => Promise<void>): void => {
    const run = async (): Promise<void> => {
      const { store, other = store, close } = await create()
      await test(store, other).finally(close)
    }
    tests.push({ name, run })
  }

  add('what a transaction writes, the next one reads, under keys of all kinds', async (store, other) => {
    const long = JSON.stringify('\u{1f3f9} "quoted" \\ \n'.repeat(5000))
    for (const name of NAMES) await write(store, { [name]: `${name} ${long}` })
    assert.deepEqual(
      await read(other, NAMES),
      NAMES.map(name => `${name} ${long}`),
    )
    await write(other, { plain: undefined, [NAMES[1]!]: 'less' })
    assert.deepEqual(await read(store, NAMES.slice(0, 3)), [undefined, 'less', `${NAMES[2]} ${long}`])
  })

  add('a transaction whose change throws writes nothing, and fails', async store => {
    await write(store, { one: '1' })
    const failing = async (): Promise<unknown> => {
      return await store.transact(['one'], () => {
        throw new Error('no change')
      })
    }
    await assert.rejects(failing)
    assert.deepEqual(await read(store, ['one']), ['1'])
    await write(store, { one: '2' })
    assert.deepEqual(await read(store, ['one']), ['2'])
  })

  add('transactions that come together lose no count', async (store, other) => {
    const add = (through: TransactionalStore) =>
      change(through, ['sum'], ([sum]) => ({ sum: String(Number(sum ?? 0) + 1) }))
    await Promise.all(Array.from({ length: HOLDERS * MOVES }, (_, i) => add(i % 2 === 0 ? store : other)))
    assert.deepEqual(await read(store, ['sum']), [String(HOLDERS * MOVES)])
  })

  add('a transaction is seen whole or not at all', async (store, other) => {
    const keys = ['left', 'right']
    const moving = Array.from({ length: HOLDERS * MOVES }, (_, i) =>
      write(store, { left: String(i), right: String(i) }),
    )
    const seen = Array.from({ length: HOLDERS * MOVES }, () => read(other, keys))
    for (const [left, right] of await Promise.all(seen)) assert.equal(left, right)
    await Promise.all(moving)
  })

  add(
    'transactions that read the same ledgers and write different ones come one after the other',
    async (store, other) => {
      for (let round = 0; round < MOVES; round++) {
        const keys = [`a${round}`, `b${round}`]
        // each takes the last place, unless the other one has
        const takeAs = (through: TransactionalStore, own: string) => {
          return change(through, keys, held => (held.some(Boolean) ? {} : { [own]: 'held' }))
        }
        await Promise.all([takeAs(store, keys[0]!), takeAs(other, keys[1]!)])
        assert.equal((await read(store, keys)).filter(Boolean).length, 1)
      }
    },
  )

  add('a store that gives the time gives milliseconds since 1970, and never earlier ones', async (store, other) => {
    const times: number[] = []
    for (const through of [store, other, store]) {
      await through.transact(['time'], (_, nowMs = Date.now()) => {
        times.push(nowMs)
        return []
      })
    }
    assert.deepEqual(
      times,
      times.toSorted((a, b) => a - b),
    )
    for (const nowMs of times) assert.ok(Math.abs(nowMs - Date.now()) < CLOCKS_APART_MS, `the time is ${nowMs}`)
  })

  add('keys lists the keys that begin with a text, and no more than asked for', async store => {
    if (store.keys === undefined) return
    await write(store, { a_1: '1', a_2: '2', ab1: '3', A_1: '4', 'a%': '5' })
    assert.deepEqual([...(await store.keys('a_', 10))].sort(), ['a_1', 'a_2'])
    assert.deepEqual(await store.keys('a%', 10), ['a%'])
    assert.equal((await store.keys('a', 2)).length, 2)
  })

  add('two processes admit no more than the limit, and each sees what the other has counted', async (store, other) => {
    const rule = compileRule({ limit: '20/h' })
    const processes = [store, other].map(one => new LedgerStore(one, { algorithms }))
    const counters = processes.map(one => one.createCounter(rule))
    const take = async (i: number): Promise<boolean> => {
      return (await processes[i]!.take([chargeOf(counters[i]!)])).allowed
    }
    const calls = await Promise.all(Array.from({ length: 50 }, (_, i) => take(i % 2)))
    assert.equal(calls.filter(Boolean).length, 20)
    const look = chargeOf(counters[1]!)
    await processes[1]!.look([look])
    assert.deepEqual(look.remaining, [0])
    for (const one of processes) one.close()
  })

  add('processes know of each other until they leave', async (store, other) => {
    const [one, two] = [new LedgerRegistry(store), new LedgerRegistry(other)]
    const sign = { isBack: true, withinMs: 5000, memberMs: 5000 }
    await Promise.all([one.register(sign), two.register(sign)])
    const { size, era } = await one.register(sign)
    assert.deepEqual([size, (await two.register(sign)).era], [2, era])
    await two.leave()
    assert.equal((await one.register(sign)).size, 1)
  })

  const createShared = async (now: () => number) => {
    const { store, close } = await create()
    const shared = new LedgerStore(withoutClock(store), { algorithms, now })
    const closeBoth = async (): Promise<void> => {
      shared.close()
      await close()
    }
    return { store: shared, close: closeBoth }
  }
  return [...tests, ...sharedStoreSuite({ create: createShared })]
}

/** Lets a test set the time, also in a store that gives one. */
function withoutClock(store: TransactionalStore): TransactionalStore {
  const keys = store.keys?.bind(store)
  return {
    transact: (names, change) => store.transact(names, ledgers => change(ledgers)),
    ...(keys && { keys }),
  }
}

function chargeOf(counter: FleetCharge['counter']): FleetCharge {
  return { ...fleetCharge(counter), key: 'ann', cost: 1, mayWait: false }
}

/** Runs one transaction; `decide` gets the ledgers and returns those to be written. */
async function change(
  store: TransactionalStore,
  keys: readonly string[],
  decide: (ledgers: readonly (string | undefined)[]) => Readonly<Record<string, string | undefined>>,
): Promise<void> {
  await store.transact([...keys].sort(), ledgers => {
    const written = decide(keys.map(key => ledgers.get(key) ?? undefined))
    return Object.entries(written).map(([key, ledger]): LedgerWrite => ({ key, ledger, keepMs: KEEP_MS }))
  })
}

async function write(store: TransactionalStore, ledgers: Readonly<Record<string, string | undefined>>): Promise<void> {
  await change(store, Object.keys(ledgers), () => ledgers)
}

async function read(store: TransactionalStore, keys: readonly string[]): Promise<(string | undefined)[]> {
  let found: (string | undefined)[] = []
  await change(store, keys, ledgers => {
    found = [...ledgers]
    return {}
  })
  return found
}
