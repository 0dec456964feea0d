import { setTimeout as pause } from 'node:timers/promises'
import { FleetDouble } from '@test/fleet/fake-fleet'
import { afterEach, describe, expect, it } from 'vitest'
import { algorithms } from '../../algorithms/index.ts'
import { partMeter } from '../../algorithms/part.ts'
import { ShareBook } from '../membership/shares.ts'
import { MemoryStore } from '../memory/memory-store.ts'
import { sharedCharge } from '../shared-charge.ts'
import type { FleetCharge } from '../store.ts'
import { FailoverStore } from './failover-store.ts'

const TIMEOUT_MS = 40
const SILENT_MS = 200

const members: FailoverStore[] = []
afterEach(async () => {
  for (const member of members.splice(0)) await member.close()
})

/** How long a question is on its way, and then its answer. */
type Latency = () => readonly [thereMs: number, backMs: number]

/** A connection of one process: what is asked arrives in its order, and so do the answers. */
function connect(fleet: FleetDouble, latency: Latency) {
  let [sentUntil, answeredUntil] = [0, 0]
  const inOrder = async (until: number): Promise<void> => pause(Math.max(0, until - performance.now()))
  return {
    createCounter: fleet.createCounter.bind(fleet),
    giveBack: fleet.giveBack.bind(fleet),
    catchUp: fleet.catchUp.bind(fleet),
    keys: fleet.keys.bind(fleet),
    reset: fleet.reset.bind(fleet),
    look: fleet.look.bind(fleet),
    close: () => {},
    async take(charges: readonly FleetCharge[]) {
      const [thereMs, backMs] = latency()
      sentUntil = Math.max(sentUntil, performance.now() + thereMs)
      await inOrder(sentUntil)
      const copies = charges.map(charge => ({ ...charge, delays: [], remaining: [0], resets: [0] }))
      const answer = await fleet.take(copies)
      answeredUntil = Math.max(answeredUntil, performance.now() + backMs)
      await inOrder(answeredUntil)
      for (const [i, copy] of copies.entries()) Object.assign(charges[i]!, { ...copy, ...pickKept(charges[i]!) })
      return answer
    },
  }
}

/** What the caller owns of a charge; the rest is the answer. */
function pickKept({ counter, key, cost, enforced, mayWait }: FleetCharge) {
  return { counter, key, cost, enforced, mayWait }
}

async function join(fleet: FleetDouble, book: ShareBook, latency: Latency, words: { count: number; name?: string }) {
  const { count, name = 'sliding-window' } = words
  const algorithm = algorithms.find(candidate => candidate.name === name)!
  const terms = { limit: { count, periodMs: 3_600_000 }, options: {} }
  const meters = [algorithm.meter(terms.limit, {})]
  const memory = new MemoryStore()
  const table = memory.createTable('rule', meters)
  const connection = connect(fleet, latency)
  const counter = connection.createCounter({ id: 'rule', meters, algorithm: name, enforced: true })
  const id = `process-${members.length}`
  const store = new FailoverStore(connection, memory, {
    timeoutMs: TIMEOUT_MS,
    assumedFleet: 3,
    registry: {
      register: async () => ({ era: 'one', size: 3, rank: 0, heard: 3, back: 3 }),
      share: async claim => book.claim(id, claim, performance.now()),
      leave: async () => {},
    },
    now: () => fleet.now,
    rules: () => ['rule'],
    onPart: part => table.adopt([partMeter(algorithm, terms, part)], fleet.now),
    onChange: () => {},
  })
  members.push(store)
  await store.start()
  const take = async (key: string) =>
    await store.take([Object.assign(sharedCharge(counter, table, 'share'), { key, cost: 1 })], fleet.now)
  return { store, take }
}

async function fleetOf(latencies: readonly Latency[], count: number) {
  const fleet = new FleetDouble()
  const book = new ShareBook()
  const all = []
  for (const latency of latencies) all.push(await join(fleet, book, latency, { count }))
  return { fleet, all }
}

const healthy = (all: readonly { store: FailoverStore }[]) => all.map(({ store }) => store.status.healthy)
const inTime: Latency = () => [0, 0]

describe('answers of a store that are late', () => {
  it.each([
    ['of all processes', [30, 30, 30]],
    ['of one process', [45, 0, 0]],
    ['on the way back', [0, 0, 0]],
  ])(
    'admit no call beyond the limit of 24 for any of 100 callers, when they are late by jitter %s',
    async (_, most) => {
      const random = (ms: number) => Math.random() * ms * 2
      const latencies = most.map(
        (ms): Latency =>
          () =>
            ms === 0 && _ === 'on the way back' ? [0, random(30)] : [random(ms), 0],
      )
      const { all } = await fleetOf(latencies, 24)
      const over: number[] = []
      await Promise.all(
        Array.from({ length: 100 }, async (_, i) => {
          let admitted = 0
          await Promise.all(
            all.map(async ({ take }) => {
              for (let call = 0; call < 12; call++) if (await take(`caller-${i}`)) admitted++
            }),
          )
          if (admitted > 24) over.push(admitted - 24)
        }),
      )
      expect(healthy(all)).toEqual([true, true, true])
      expect(over).toEqual([])
    },
  )

  it('a call of an unknown caller waits for the late answer of the store, which decides it', async () => {
    const { all } = await fleetOf([() => [TIMEOUT_MS * 2, 0], inTime, inTime], 3)
    const [late, other] = all as [(typeof all)[0], (typeof all)[0]]
    const waiting = Promise.all([late.take('ann'), late.take('ann')])
    expect([await other.take('ann'), await other.take('ann'), await other.take('ann')]).toEqual([true, true, true])
    expect(await waiting).toEqual([false, false])
    expect(healthy(all)).toEqual([true, true, true])
  })

  it('the wait for a silent store ends when it has answered nothing for five deadlines', async () => {
    const { all } = await fleetOf([() => [60_000, 0], inTime, inTime], 30)
    const since = performance.now()
    expect(await all[0]!.take('ann')).toBe(true)
    expect(performance.now() - since).toBeGreaterThan(SILENT_MS * 0.9)
    expect(performance.now() - since).toBeLessThan(SILENT_MS * 3)
    expect(healthy(all)).toEqual([false, true, true])
    let admitted = 1
    for (let i = 0; i < 30; i++) if (await all[0]!.take('ann')) admitted++
    expect(admitted).toBe(10)
  })
})
