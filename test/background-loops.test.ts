import { EventEmitter } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { attempt, faultCounts, repeat, visitAll } from 'diana-limiter/gateway'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { BulkQueue } from '../packages/gateway/src/connections/bulk-queue.ts'
import { Transfers } from '../packages/gateway/src/connections/transfers.ts'
import { SessionProbes } from '../packages/gateway/src/http2/session-probes.ts'
import { healthService } from '../packages/gateway/src/serve/grpc/health-service.ts'
import { Clients } from '../packages/gateway/src/upstreams/clients.ts'
import { Slots } from '../packages/gateway/src/upstreams/slots.ts'
import { fixedWindow } from '../packages/limiter/src/algorithms/fixed-window.ts'
import { Deadline } from '../packages/limiter/src/stores/failover/deadline.ts'
import { localCharge, MemoryStore } from '../packages/limiter/src/stores/memory/memory-store.ts'
import { endWhenSilent } from '../packages/limiter/src/stores/redis/connection/silence-watch.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const sources = ['limiter', 'gateway', 'dashboard'].flatMap(name => {
  const folder = join(root, 'packages', name, 'src')
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter(file => /\.tsx?$/.test(file) && !/\.test\.tsx?$|(^|\/)(fakes|servers|testing)\//.test(file))
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

const fail = (): never => {
  throw new Error('a bad member')
}

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

interface Loop {
  /** The name under which its errors are counted. */
  readonly place: string
  /** How long it takes until each member has been visited twice. */
  readonly ms: number
  /** Adds a good member, a bad one that throws, and another good one; returns how often the good ones have been visited. */
  start(): readonly (() => number)[]
}

const counter = (): { count: number; visit: () => void } => {
  const self = { count: 0, visit: () => void self.count++ }
  return self
}

const loops: readonly Loop[] = [
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

describe('a loop of the background goes on with the rest if one member throws:', () => {
  test.each(loops)('$place', async ({ place, ms, start }) => {
    const before = faultCounts()[place] ?? 0
    const counts = start()
    await vi.advanceTimersByTimeAsync(ms)
    for (const count of counts) expect(count()).toBeGreaterThan(0)
    expect(faultCounts()[place]! - before).toBeGreaterThan(0)
    expect(warnings.filter(text => text.includes(`${place}: `)).length).toBeLessThanOrEqual(1)
  })
})
