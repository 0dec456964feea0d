import { mkdtempSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { vi } from 'vitest'
import { algorithms } from '../../packages/limiter/src/algorithms/index.ts'
import { LimitCache } from '../../packages/limiter/src/limits/limit-cache.ts'
import { OutsideLimits } from '../../packages/limiter/src/limits/outside-limits.ts'
import { ScheduledCalls } from '../../packages/limiter/src/queue/scheduled-calls.ts'
import { SlotQueue } from '../../packages/limiter/src/queue/slot-queue.ts'
import { FleetReporter } from '../../packages/limiter/src/stats/history/fleet-reporter.ts'
import { CountingStore } from '../../packages/limiter/src/stores/counting/client.ts'
import { GrantedPermits } from '../../packages/limiter/src/stores/counting/granted-permits.ts'
import { encode } from '../../packages/limiter/src/stores/counting/messages.ts'
import { CountingServer } from '../../packages/limiter/src/stores/counting/server.ts'
import { FailoverStore } from '../../packages/limiter/src/stores/failover/failover-store.ts'
import { Recovery } from '../../packages/limiter/src/stores/failover/recovery.ts'
import { Settlements } from '../../packages/limiter/src/stores/failover/settlements.ts'
import { StoreHealth } from '../../packages/limiter/src/stores/failover/store-health.ts'
import { HeldSlots } from '../../packages/limiter/src/stores/held-slots.ts'
import { Lease } from '../../packages/limiter/src/stores/leases/lease.ts'
import { LeaseBook } from '../../packages/limiter/src/stores/leases/lease-book.ts'
import { LedgerStore } from '../../packages/limiter/src/stores/ledgers/ledger-store.ts'
import { Heartbeat } from '../../packages/limiter/src/stores/membership/heartbeat.ts'
import { MemoryStore } from '../../packages/limiter/src/stores/memory/memory-store.ts'
import { RedisStore } from '../../packages/limiter/src/stores/redis/redis-store.ts'
import { sharedCharge } from '../../packages/limiter/src/stores/shared-charge.ts'
import { fleetCharge } from '../../packages/limiter/src/stores/store.ts'
import { LeasingStore } from '../../packages/limiter/src/testing/stores/leasing-store.ts'
import { FleetDouble } from './fleet/fake-fleet.ts'
import { counter, fail, failFirst, type Loop } from './loop.ts'

const window = algorithms.find(({ name }) => name === 'sliding-window')!
const untilReal = async (isTrue: () => boolean): Promise<void> => {
  for (let turn = 0; turn < 10_000 && !isTrue(); turn++) await nextTurn()
}
const socketPath = (): string => join(mkdtempSync(join(tmpdir(), 'diana-loops-')), 'socket')

/** A rule of which calls wait, as far as queues look at it. */
const stateOf = (table: object) =>
  ({ rule: { id: 'r', by: [], queueTimeoutMs: 500, queueSize: 10, meters: [] }, waiting: 0, table }) as never

function book() {
  const store = new LeasingStore()
  const meters = [window.meter({ count: 100_000, periodMs: 1000 }, {})]
  const shared = store.createCounter({ id: 'r', meters, algorithm: 'sliding-window', enforced: true })
  const table = new MemoryStore().createTable('r', meters)
  let now = 1e15
  const leases = new LeaseBook({
    request: () => new Promise(() => {}),
    mayAsk: () => true,
    processes: () => 1,
    now: () => now,
    isDenied: () => false,
    onReport: () => {},
    onRefund: () => {},
  })
  const meet = (): void => {
    for (let turn = 0; turn < 200; turn++) {
      now += 100
      for (const key of ['ann', 'bad', 'cat'])
        leases.meet([Object.assign(sharedCharge(shared, table, 'share'), { key, cost: 1 })], now)
    }
  }
  return { leases, meet }
}

export const loopsOfLimiter: readonly Loop[] = [
  {
    place: 'the clock of limits',
    ms: 1000,
    start: () => {
      let calls = 0
      const limits = new OutsideLimits({ nowMs: () => (++calls === 2 ? fail() : 0) })
      limits.limitsOf({ standard: { rule: { id: 'r', plans: { overrides: true } } } } as never)
      return [() => calls - 2]
    },
  },
  {
    place: 'limits of operators',
    ms: 1000,
    start: () => {
      const seen = new Map([
        ['ann', 0],
        ['cat', 0],
      ])
      vi.spyOn(LimitCache.prototype, 'refresh').mockImplementation(key => {
        if (key === 'bad') fail()
        seen.set(key, seen.get(key)! + 1)
      })
      const limits = new OutsideLimits({ nowMs: () => 0 })
      limits.limitsOf({ standard: { rule: { id: 'r', plans: { overrides: true } } } } as never)
      const changes = ['ann', 'bad', 'cat'].map(key => ['r', key] as const)
      vi.spyOn(limits.overrides, 'changes').mockImplementation(async () => changes as never)
      return [() => seen.get('ann')!, () => seen.get('cat')!]
    },
  },
  {
    place: 'slots held in the store',
    ms: 60_000,
    start: () => {
      const { run, later } = failFirst()
      const slots = new HeldSlots(async () => fail())
      vi.spyOn(slots, 'renewAll').mockImplementation(async () => run())
      return [later]
    },
  },
  {
    place: 'answers of the store',
    ms: 100,
    start: () => {
      const answered = [counter(), counter()]
      const store = new LedgerStore({ transact: async () => fail() }, { algorithms: [] })
      const meters = [window.meter({ count: 1, periodMs: 1000 }, {})]
      const shared = store.createCounter({ id: 'r', meters, algorithm: 'sliding-window', enforced: true })
      for (const failed of [answered[0]!.visit, fail, answered[1]!.visit]) {
        store.takeFor({ answered: () => {}, failed }, [Object.assign(fleetCharge(shared), { key: 'a', cost: 1 })])
      }
      return answered.map(one => () => one.count)
    },
  },
  {
    place: 'answers of Redis',
    ms: 100,
    start: () => {
      const answered = [counter(), counter()]
      const store = new RedisStore(async () => fail())
      const meters = [window.meter({ count: 1, periodMs: 1000 }, {})]
      const shared = store.createCounter({ id: 'r', meters, algorithm: 'sliding-window', enforced: true } as never)
      const charge = () => [Object.assign(fleetCharge(shared), { key: 'a', cost: 1 })]
      const listen = (failed: () => void) => ({ answered: () => {}, failed })
      for (const failed of [answered[0]!.visit, fail, answered[1]!.visit])
        store.takeFor(listen(failed), charge() as never)
      return answered.map(one => () => one.count)
    },
  },
  {
    place: 'counts for other processes',
    ms: 20_000,
    start: async () => {
      const dropped = counter()
      vi.spyOn(MemoryStore.prototype, 'dropTable').mockImplementation(dropped.visit)
      const meterOf = (isBad: boolean) => {
        const meter = window.meter({ count: 1, periodMs: 1000 }, {})
        vi.spyOn(meter, 'idleAt').mockImplementation(() => (isBad ? fail() : 0))
        return meter
      }
      const server = new CountingServer({
        algorithms: [
          { ...window, name: 'bad', meter: () => meterOf(true) },
          { ...window, meter: () => meterOf(false) },
        ],
        now: () => 1e15,
      })
      const path = socketPath()
      await server.listen(path)
      const socket = connect(path)
      const define = vi.spyOn(MemoryStore.prototype, 'createTable')
      for (const [number, algorithm] of ['sliding-window', 'bad', 'sliding-window'].entries()) {
        const rule = { id: `r${number}`, algorithm, by: [], terms: [[{ count: 1, periodMs: 1000 }], {}] }
        socket.write(encode(['define', number, rule]))
      }
      await untilReal(() => define.mock.calls.length === 3)
      socket.destroy()
      return [() => dropped.count - 1]
    },
  },
  {
    place: 'calls to the counting process',
    ms: 10,
    start: async () => {
      const server = new CountingServer({ algorithms, now: () => 1e15 })
      const path = socketPath()
      await server.listen(path)
      const store = new CountingStore({ socket: path })
      const rejected = counter()
      const meters = [window.meter({ count: 1, periodMs: 1000 }, {})]
      const terms = { toJSON: fail }
      const shared = store.createCounter({
        ...{ id: 'r', meters, algorithm: 'sliding-window', enforced: true },
        terms: [terms],
      } as never)
      await store.waitUntilConnected(1000)
      for (let call = 0; call < 3; call++)
        store.take([Object.assign(fleetCharge(shared), { key: 'a', cost: 1 })]).catch(rejected.visit)
      return [() => rejected.count - 2]
    },
  },
  {
    place: 'calls that waited for permits',
    ms: 100,
    start: () => {
      const table = new MemoryStore().createTable('r', [window.meter({ count: 100, periodMs: 1000 }, {})])
      const granted = new GrantedPermits<string>(new MemoryStore(), table, () => {})
      const request = { counter: undefined, key: 'ann', sequence: 1, used: [], kept: 0, needed: 5, wanted: 0 }
      granted.request('a process', request, 1e15)
      const ended = [counter(), counter()]
      granted.recall('ann', ended[0]!.visit)
      granted.recall('ann', fail)
      granted.recall('ann', ended[1]!.visit)
      return ended.map(one => () => one.count)
    },
  },
  {
    place: 'leases',
    ms: 100,
    start: () => {
      const seen = new Map<string, number>()
      vi.spyOn(Lease.prototype, 'hurry').mockImplementation(function (this: Lease) {
        if (this.key === 'bad') fail()
        seen.set(this.key, (seen.get(this.key) ?? 0) + 1)
      })
      book().meet()
      return [() => seen.get('ann') ?? 0, () => seen.get('cat') ?? 0]
    },
  },
  {
    place: 'leases',
    name: 'a request that cannot be made',
    ms: 100,
    start: () => {
      const seen = new Map<string, number>()
      vi.spyOn(Lease.prototype, 'ask').mockImplementation(function (this: Lease) {
        if (this.key === 'bad') fail()
        seen.set(this.key, (seen.get(this.key) ?? 0) + 1)
        return { used: [] } as never
      })
      book().meet()
      return [() => seen.get('ann') ?? 0, () => seen.get('cat') ?? 0]
    },
  },
  {
    place: 'calls that wait',
    ms: 100,
    start: () => {
      const passed = [counter(), counter()]
      let rejected = 0
      const clock = () => performance.now() * 1000
      const calls = new ScheduledCalls({ now: clock, onFreed: () => {} })
      const since = clock()
      const visits = [passed[0]!.visit, fail, passed[1]!.visit]
      for (const [index, afterWait] of visits.entries()) {
        const receipt = { state: stateOf({}), slot: index, key: 'a', cost: 1, passAt: since + 10_000 }
        const pending = { receipts: [receipt], afterWait: (): unknown => afterWait() ?? {} }
        calls.hold(pending as never, since).catch(() => rejected++)
      }
      return [...passed.map(one => () => one.count), () => rejected]
    },
  },
  {
    place: 'calls that wait for slots',
    ms: 400,
    start: () => {
      const asked = [counter(), counter()]
      let rejected = 0
      const queue = new SlotQueue()
      const state = stateOf({})
      const wait = (key: string, attempt: () => unknown) =>
        queue.join({ state, key, rank: 0, polls: true, attempt } as never).catch(() => rejected++)
      const verdict = { exhaustedRule: state, refusedBy: () => ({}) }
      const visit = (at: number) => () => {
        asked[at]!.visit()
        return verdict
      }
      wait('ann', visit(0))
      wait('bad', fail)
      // behind the bad one
      wait('bad', visit(1))
      return [...asked.map(one => () => one.count), () => rejected]
    },
  },
  {
    place: 'calls that wait for slots',
    name: 'the end of their time',
    ms: 600,
    start: () => {
      const ended = counter()
      let rejected = 0
      const queue = new SlotQueue()
      const state = stateOf({})
      const verdict = { exhaustedRule: state, refusedBy: () => ({}) }
      const ticket = { state, key: 'a', rank: 0, polls: false }
      void queue.join({ ...ticket, attempt: fail } as never).catch(() => rejected++)
      void queue.join({ ...ticket, attempt: () => verdict } as never).then(ended.visit)
      return [() => ended.count, () => rejected]
    },
  },
  {
    place: 'heartbeats',
    ms: 20_000,
    start: () => {
      const { run, later } = failFirst()
      const fleet = { register: async () => false, beatMs: 1000 }
      const isPaused = () => {
        run()
        return true
      }
      const options = { timeoutMs: 100, classify: () => ({}), isPaused, onTrouble: () => {}, onForgotten: () => {} }
      void new Heartbeat(fleet as never, options as never).start()
      return [later]
    },
  },
  {
    place: 'settlements',
    ms: 2000,
    start: () => {
      const settled = counter()
      let looks = 0
      // away at first; the first look of the timer throws
      const isAway = () => {
        looks++
        if (looks === 2) fail()
        return looks < 3
      }
      const settle = async () => settled.visit()
      void new Settlements({ settle, isAway, now: () => 0 }).send({} as never, 1e9)
      return [() => settled.count]
    },
  },
  {
    place: 'statistics of the fleet',
    ms: 60_000,
    start: () => {
      let reads = 0
      const stats = () => {
        reads++
        return reads === 2 ? fail() : { total: {}, rules: [] }
      }
      new FleetReporter({ send: async () => fail(), prefix: 'p', stats: stats as never }).start()
      return [() => reads - 2]
    },
  },
  {
    place: 'calls that the store missed',
    ms: 3000,
    start: async () => {
      const { run, later } = failFirst()
      vi.spyOn(StoreHealth.prototype, 'exceeded').mockImplementation(run)
      const fleet = new FleetDouble()
      const meters = [window.meter({ count: 1000, periodMs: 3_600_000 }, {})]
      const memory = new MemoryStore()
      const table = memory.createTable('r', meters)
      const shared = fleet.createCounter({ id: 'r', meters, algorithm: 'sliding-window', enforced: true })
      const membership = { era: 'one', size: 1, rank: 0, heard: 1, back: 1 }
      const store = new FailoverStore(fleet, memory, {
        ...{
          timeoutMs: 20,
          hasParts: true,
          now: () => fleet.now,
          rules: () => ['r'],
          onPart: () => {},
          onChange: () => {},
        },
        registry: { register: async () => membership, leave: async () => {} },
      } as never)
      await store.start()
      // one part of the store fails, and calls are decided in this process
      const take = () => {
        fleet.before = async () => fail()
        void store.take([Object.assign(sharedCharge(shared, table, 'share'), { key: 'a', cost: 1 })], fleet.now)
        fleet.before = async () => {}
      }
      for (const ms of [0, 1500]) setTimeout(take, ms)
      return [later]
    },
  },
  {
    place: 'the return to the store',
    ms: 5000,
    start: () => {
      const probes = counter()
      const probe = async () => {
        probes.visit()
        if (probes.count < 3) throw new Error('away')
      }
      const timers = {
        now: () => performance.now(),
        pause: (ms: number) => new Promise<void>(resolve => setTimeout(resolve, ms)),
        random: () => 0.5,
      }
      const bad = { failed: fail, reconnect: fail, recovered: fail }
      new Recovery(
        { fleetSize: () => 1, probe, gather: async () => true, rejoin: async () => true, ...bad },
        timers,
      ).begin()
      return [() => probes.count - 2]
    },
  },
]
