import { EventEmitter } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { attempt, faultCounts, repeat, visitAll } from 'diana-limiter/gateway'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { SessionProbes } from '../packages/gateway/src/http/http2/session-probes.ts'
import { Transfers } from '../packages/gateway/src/inbound/calls/call-pace.ts'
import { BulkQueue } from '../packages/gateway/src/inbound/connections/bulk-queue.ts'
import { healthService } from '../packages/gateway/src/serve/grpc/health-service.ts'
import { Clients } from '../packages/gateway/src/services/clients.ts'
import { Slots } from '../packages/gateway/src/services/slots.ts'
import { fixedWindow } from '../packages/limiter/src/algorithms/fixed-window.ts'
import { Deadline } from '../packages/limiter/src/stores/failover/deadline.ts'
import { localCharge, MemoryStore } from '../packages/limiter/src/stores/memory/memory-store.ts'
import { endWhenSilent } from '../packages/limiter/src/stores/redis/connection/silence-watch.ts'

import { counter, fail, type Loop } from './helpers/loop.ts'
import { loopsOfGateway } from './helpers/loops-of-gateway.ts'
import { loopsOfLimiter } from './helpers/loops-of-limiter.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const sources = ['limiter', 'gateway', 'dashboard'].flatMap(name => {
  const folder = join(root, 'packages', name, 'src')
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter(file => /\.tsx?$/.test(file) && !/\.test\.tsx?$|(^|\/)testing\//.test(file))
    .map(file => ({ file: `${name}/${file}`, text: readFileSync(join(folder, file), 'utf8') }))
})

let warnings: string[] = []
const note = (warning: Error): void => void warnings.push(warning.message)
beforeEach(() => {
  warnings = []
  vi.spyOn(process, 'emitWarning').mockImplementation(text => note(new Error(String(text))))
  vi.useFakeTimers({
    toFake: ['setTimeout', 'setInterval', 'setImmediate', 'clearTimeout', 'clearInterval', 'performance'],
  })
})
afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

describe('work in the background', () => {
  test('no package sets an interval except by the function that catches its errors', () => {
    const found = sources.filter(({ text }) => /\bsetInterval\(/.test(text)).map(({ file }) => file)
    expect(found).toEqual(['limiter/common/background.ts'])
  })

  test('a repeated task goes on after an error and after a rejected promise, and each place is reported once', async () => {
    let turns = 0
    const work = repeat('a test of errors', 10, () => {
      turns++
      if (turns % 2 === 0) return Promise.reject(new Error('later'))
      return fail()
    })
    await vi.advanceTimersByTimeAsync(100)
    work.stop()
    await vi.advanceTimersByTimeAsync(100)
    expect(turns).toBe(10)
    expect(faultCounts()['a test of errors']).toBe(10)
    expect(warnings.filter(text => text.includes('a test of errors'))).toHaveLength(1)
  })

  test('a member that throws is dropped, also if it cannot be dropped, and all others are visited', () => {
    const members = new Set([1, 2, 3, 4, 5])
    const visited: number[] = []
    const visit = (member: number): unknown => (member % 2 === 0 ? fail() : visited.push(member))
    visitAll('a test of members', members, visit, member => (member === 2 ? fail() : members.delete(member)))
    expect(visited).toEqual([1, 3, 5])
    expect([...members]).toEqual([1, 2, 3, 5])
    expect(attempt('a test of members', () => 1)).toBe(true)
  })
})

const loops: readonly Loop[] = [
  ...loopsOfLimiter,
  ...loopsOfGateway,
  {
    place: 'transfers',
    ms: 1100,
    start: () => {
      const [first, last] = [counter(), counter()]
      const transfers = new Transfers()
      for (const check of [first.visit, fail, last.visit]) transfers.add({ check })
      // one whose isOver throws
      transfers.add({
        check: () => {},
        get isOver() {
          return fail()
        },
      })
      return [() => first.count, () => last.count]
    },
  },
  {
    place: 'idle connections to services',
    ms: 1600,
    start: () => {
      const [first, last] = [counter(), counter()]
      const clients = new Clients({ origin: 'http://127.0.0.1:9', connectMs: 100, idleMs: 1 })
      for (const visit of [first.visit, fail, last.visit]) {
        const connection = { destroyed: false, closed: false, destroy: async () => {} }
        connection.destroy = () => {
          visit()
          return Promise.resolve()
        }
        clients.giveBack(connection as never, performance.now())
      }
      return [() => first.count, () => last.count]
    },
  },
  {
    place: 'sessions of HTTP/2',
    ms: 2500,
    start: () => {
      const visits = [counter(), counter(), counter()]
      const sessions = visits.map(() => Object.assign(new EventEmitter(), { destroyed: false }))
      const probes = new SessionProbes({
        ask: session => {
          const at = sessions.indexOf(session as never)
          if (at === 1) fail()
          visits[at]!.visit()
          return true
        },
        isRepeated: true,
        end: () => {},
      })
      for (const session of sessions)
        probes.add(session as never, { bytesRead: 1, bytesWritten: 0, destroy() {} } as never)
      return [() => visits[0]!.count, () => visits[2]!.count]
    },
  },
  {
    place: 'watchers of health',
    ms: 1600,
    start: () => {
      let isBroken = false
      const sent = counter()
      const [, watch] = healthService([], () => {
        if (isBroken) fail()
        return sent.count % 2 === 0
      })
      if (watch?.kind !== 'stream') throw new Error('there is no watch')
      const signal = new AbortController().signal
      const open = watch.open({ send: sent.visit, signal: () => signal } as never)
      open.message(Buffer.alloc(0))
      isBroken = true
      setTimeout(() => {
        isBroken = false
      }, 700)
      return [() => sent.count]
    },
  },
  {
    place: 'large transfers',
    ms: 10,
    start: () => {
      const [first, last] = [counter(), counter()]
      const bulk = new BulkQueue()
      for (const goOn of [first.visit, fail, last.visit]) bulk.join(goOn)
      return [() => first.count, () => last.count]
    },
  },
  {
    place: 'slots of services',
    ms: 500,
    start: () => {
      const evicted = counter()
      const slots = new Slots({ max: 2, queueSize: 10, queueMs: 10_000 })
      const user = { onSlot: () => {}, onNoSlot: () => {}, stalledMs: () => 0, evict: () => {} }
      slots.take({ ...user, stalledMs: fail })
      slots.take({ ...user, stalledMs: () => 5000, evict: evicted.visit })
      slots.take({ ...user })
      slots.take({ ...user })
      return [() => evicted.count]
    },
  },
  {
    place: 'late answers',
    ms: 1000,
    start: () => {
      const [first, last] = [counter(), counter()]
      const deadline = new Deadline({ timeoutMs: 40, silentMs: 200, onSilent: fail })
      for (const late of [first.visit, fail, last.visit]) {
        deadline.add({ isAnswered: false, dueTick: 0, askedAt: 0, late, giveUp: late })
      }
      return [() => first.count, () => last.count]
    },
  },
  {
    place: 'counts in memory',
    ms: 2500,
    start: () => {
      const swept = counter()
      const store = new MemoryStore({ maxKeys: 10 })
      vi.spyOn(store, 'sweep').mockImplementation(() => {
        swept.visit()
        if (swept.count === 1) fail()
      })
      store.sweepEvery(1000, 10, () => 0)
      // sweeps begin with the first key
      const meter = fixedWindow.meter({ count: 1, periodMs: 1000 }, {})
      store.take([{ ...localCharge(store.createTable('a', [meter])), key: 'ann', cost: 1 }], 1, 1e15)
      return [() => swept.count - 1]
    },
  },
  {
    place: 'silent connections to Redis',
    ms: 2000,
    start: () => {
      const destroyed = counter()
      let calls = 0
      const socket = Object.assign(new EventEmitter(), { bytesRead: 0, bytesWritten: 10, destroy: destroyed.visit })
      endWhenSilent(socket as never, () => {
        if (++calls === 1) fail()
      })
      return [() => destroyed.count]
    },
  },
]

/** Places of one task each, which is not made of members: the function that repeats it is tested above. */
const singleTasks = ['the watchdog of systemd', 'connections to Redis', 'closing the store']

/**
 * The timers and pauses of each file. One that is set again by its own work is a loop and belongs in the table, where a member of it
 * throws; only then, or if it runs once, its file gets another number here.
 */
const timers: Readonly<Record<string, number>> = {
  'dashboard/figures/live.ts': 6,
  'dashboard/now/use-history.ts': 1,
  'dashboard/parts/settled.ts': 1,
  'gateway/admin/live.ts': 1,
  'gateway/admin/stream.ts': 1,
  'gateway/cli/top.ts': 2,
  'gateway/forwarding/answers/reply-sink.ts': 1,
  'gateway/forwarding/forwarding.ts': 1,
  'gateway/forwarding/messages/message-relay.ts': 2,
  'gateway/forwarding/tunnels.ts': 3,
  'gateway/gateway.ts': 1,
  'gateway/http/http2/session-probes.ts': 2,
  'gateway/inbound/connections/bulk-queue.ts': 1,
  'gateway/inbound/connections/caller-connections.ts': 1,
  'gateway/inbound/connections/lingering-close.ts': 2,
  'gateway/inbound/connections/proxy-headers.ts': 1,
  'gateway/inbound/http2/caller-sessions.ts': 2,
  'gateway/inbound/http2/http2-response.ts': 3,
  'gateway/inbound/http2/stream-resets.ts': 3,
  'gateway/inbound/server.ts': 2,
  'gateway/process/serve-program.ts': 1,
  'gateway/process/server-program.ts': 1,
  'gateway/process/successor.ts': 1,
  'gateway/process/workers/supervised-process.ts': 2,
  'gateway/process/workers/supervisor.ts': 3,
  'gateway/rehearsal/run/run-case.ts': 1,
  'gateway/rehearsal/watch-files.ts': 1,
  'gateway/serve/grpc/grpc-call.ts': 2,
  'gateway/serve/grpc/grpc-server.ts': 2,
  'gateway/serve/resp/resp-server.ts': 2,
  'gateway/serve/http/reservations.ts': 1,
  'gateway/serve/spoe/spoe-server.ts': 2,
  'gateway/services/health/health-checks.ts': 2,
  'gateway/services/http1/service-client.ts': 1,
  'gateway/services/http1/short-exchange.ts': 1,
  'gateway/services/http2/service-stream.ts': 2,
  'gateway/services/names.ts': 1,
  'gateway/services/slots.ts': 2,
  'gateway/services/upstream.ts': 1,
  'gateway/telemetry/http-measures.ts': 1,
  'gateway/telemetry/logging/line-sinks.ts': 1,
  'gateway/telemetry/logging/line-writer.ts': 2,
  'gateway/telemetry/tracing/span-exporter.ts': 2,
  'limiter/admin/documents.ts': 1,
  'limiter/client/client.ts': 1,
  'limiter/common/within.ts': 2,
  'limiter/create/start-limiter.ts': 1,
  'limiter/engine/engine.ts': 3,
  'limiter/filters/costs/peek-body.ts': 1,
  'limiter/filters/in-time.ts': 1,
  'limiter/filters/one-line/own-limiter.ts': 1,
  'limiter/jobs/job-queue.ts': 3,
  'limiter/limits/limit-cache.ts': 1,
  'limiter/messages/socket-io.ts': 1,
  'limiter/messages/ws.ts': 2,
  'limiter/metrics/prom-client.ts': 1,
  'limiter/overload/load-signal.ts': 1,
  'limiter/pacing/rate-limiter.ts': 2,
  'limiter/pacing/shared-pace.ts': 1,
  'limiter/queue/scheduled-calls.ts': 2,
  'limiter/queue/slot-queue.ts': 2,
  'limiter/queue/timers.ts': 5,
  'limiter/reload/document-thread.ts': 2,
  'limiter/reload/live-rules.ts': 2,
  'limiter/rule-jobs.ts': 1,
  'limiter/sources/apollo.ts': 1,
  'limiter/sources/client/fetch-lines.ts': 2,
  'limiter/sources/client/follow.ts': 1,
  'limiter/sources/client/pause.ts': 2,
  'limiter/sources/client/within.ts': 1,
  'limiter/sources/consul.ts': 1,
  'limiter/sources/etcd.ts': 1,
  'limiter/sources/file.ts': 1,
  'limiter/sources/http.ts': 1,
  'limiter/sources/nacos.ts': 2,
  'limiter/sources/redis.ts': 1,
  'limiter/stats/history/fleet-reporter.ts': 1,
  'limiter/stores/counting/granted-permits.ts': 1,
  'limiter/stores/counting/client.ts': 3,
  'limiter/stores/counting/server.ts': 1,
  'limiter/stores/credits.ts': 2,
  'limiter/stores/failover/deadline.ts': 2,
  'limiter/stores/failover/failover-store.ts': 1,
  'limiter/stores/failover/recovery.ts': 3,
  'limiter/stores/failover/settlements.ts': 1,
  'limiter/stores/held-slots.ts': 1,
  'limiter/stores/leases/lease-book.ts': 2,
  'limiter/stores/ledgers/ledger-store.ts': 2,
  'limiter/stores/membership/heartbeat.ts': 2,
  'limiter/stores/redis/connection/connector.ts': 2,
  'limiter/stores/redis/redis-store.ts': 2,
}

describe('the table of loops', () => {
  test('the table of loops has every place under which errors of the background are counted', () => {
    const named = /\b(?:repeat|visitAll|attempt|reportFault)\(\s*'([^']+)'|^const (?:PLACE|place) = '([^']+)'/gm
    const places = new Set(
      sources.flatMap(({ text }) => [...text.matchAll(named)].map(([, given, constant]) => given ?? constant)),
    )
    const tested = new Set([...loops.map(({ place }) => place), ...singleTasks])
    expect([...places].filter(place => !tested.has(place!))).toEqual([])
    expect([...tested].filter(place => !places.has(place))).toEqual([])
    // the test could not see a place that is computed
    const computed = /\b(?:repeat|visitAll|reportFault)\((?!\s*'|PLACE\b|place\b|\d)[^)]/
    const unseen = sources.filter(({ text }) => computed.test(text.replaceAll(/\.repeat\(|function \w+</g, '')))
    expect(unseen.map(({ file }) => file)).toEqual([])
  })

  test('the table of loops is looked at whenever a file gets another timer', () => {
    const timer = /(?<![.#\w])(?:setTimeout|setImmediate|queueMicrotask|pause)\(|[tT]imers\.(?:set|soon|pause)\(/g
    const found = sources.map(({ file, text }) => [file, [...text.matchAll(timer)].length] as const)
    expect(Object.fromEntries(found.filter(([, count]) => count > 0))).toEqual(timers)
  })
})

describe('a loop of the background goes on with the rest if one member throws:', () => {
  const rows = loops.map(loop => [loop.name ? `${loop.place}, ${loop.name}` : loop.place, loop] as const)
  test.each(rows)('%s', async (_, { place, ms, start }) => {
    const before = faultCounts()[place] ?? 0
    const counts = await start()
    await vi.advanceTimersByTimeAsync(ms)
    for (const count of counts) expect(count()).toBeGreaterThan(0)
    expect(faultCounts()[place]! - before).toBeGreaterThan(0)
    expect(warnings.filter(text => text.includes(`${place}: `)).length).toBeLessThanOrEqual(1)
  })
})
