import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { routeSchema } from '../settings/routes/route-settings.ts'
import { tagOf } from './balancing/sticky-cookie.ts'
import { Pool } from './pool.ts'
import type { SlotUser } from './slots.ts'
import type { Upstream } from './upstream.ts'
import { Upstreams } from './upstreams.ts'

const most = 2

function poolOf(words: object, weights: readonly number[]): Pool {
  const to = weights.map((weight, at) => ({ url: `http://10.0.0.${at}:3000`, weight }))
  const settings = {
    ...routeSchema.parse({ to, ...words }),
    timeouts: { connectMs: 1, headersMs: 1, bodyMs: 1 },
    bodyBytes: 1,
    connections: { max: most, queueSize: 100, queueMs: 1_000_000, idleMs: 1 },
  }
  const pool = new Pool(settings, new Upstreams())
  pool.start()
  return pool
}

class User implements SlotUser {
  onSlot(): void {}
  onNoSlot(): void {}
  stalledMs(): number {
    return 0
  }
  evict(): void {}
}

describe('the next address of a route', () => {
  const weights = fc
    .array(fc.integer({ min: 0, max: 5 }), { minLength: 2, maxLength: 5 })
    .filter(list => list.some(weight => weight > 0))
  const move = fc.record({
    what: fc.constantFrom('call', 'call', 'call', 'again', 'end', 'fail', 'succeed', 'wait'),
    which: fc.nat(40),
    caller: fc.nat(6),
  })

  test.each([{ balance: 'round-robin' }, { balance: 'least-connections' }, { sticky: { cookie: 'c' } }])(
    'the next address of a route is always allowed to have the call, with %o',
    words => {
      fc.assert(
        fc.property(weights, fc.array(move, { maxLength: 60 }), (list, moves) => {
          const pool = poolOf({ ...words, health: { failures: 2, rest: '100ms' }, slowStart: '50ms' }, list)
          const isSticky = 'sticky' in words
          const under: [Upstream, User][] = []
          const last = new Map<number, Upstream>()
          let now = 0
          for (const { what, which, caller } of moves) {
            const all = pool.upstreams
            const one = all[which % all.length]!
            if (what === 'wait') now += which * 5
            else if (what === 'fail') one.health.fail(now)
            else if (what === 'succeed') one.health.succeed(now)
            else if (what === 'end') {
              const [ended] = under.splice(which % Math.max(1, under.length), 1)
              if (ended) ended[0].slots.release(ended[1])
            } else {
              const before = last.get(caller)
              const affinity = isSticky ? { key: caller * 7919, tag: before && tagOf(before.name) } : undefined
              const tried = what === 'again' ? [one] : []
              const next = pool.next(now, affinity, tried)
              const open = all.filter((upstream, at) => !tried.includes(upstream) && list[at]! > 0)
              const healthy = open.filter(upstream => !upstream.health.isResting(now))
              const stays = isSticky && before !== undefined && !tried.includes(before) && !before.health.isResting(now)
              if (next === undefined) expect([open, stays]).toEqual([[], false])
              else if (stays) expect(next).toBe(before)
              else {
                expect(healthy.length > 0 ? healthy : open).toContain(next)
                const choices = healthy.length > 0 ? healthy : open
                const hasRoom = choices.some(upstream => upstream.slots.inUse < most)
                if (!isSticky && hasRoom) expect(next.slots.inUse).toBeLessThan(most)
              }
              if (next === undefined) continue
              const user = new User()
              next.slots.take(user)
              under.push([next, user])
              last.set(caller, next)
            }
          }
          for (const [upstream, user] of under) upstream.slots.release(user)
        }),
        { numRuns: 150 },
      )
    },
  )

  test('an address that came back gets more calls over time, and its whole share in the end', () => {
    const pool = poolOf({ slowStart: '10s', health: { failures: 1, rest: '1s' } }, [1, 1])
    const [slow] = pool.upstreams
    slow!.health.fail(0)
    slow!.health.succeed(1000)
    const counts = [1000, 3000, 6000, 9000, 11_000].map(now => {
      let count = 0
      for (let i = 0; i < 220; i++) if (pool.next(now) === slow) count++
      return count
    })
    // 1 of 11, then 2 of 12, 5 of 15, 8 of 18, and half
    expect(counts.map(count => Math.round(count / 22))).toEqual([1, 2, 3, 4, 5])
  })

  test('an address that is listed twice gets twice as many calls', () => {
    const settings = routeSchema.parse({ to: ['http://10.0.0.1', 'http://10.0.0.2', 'http://10.0.0.1'] })
    const rest = {
      timeouts: { connectMs: 1, headersMs: 1, bodyMs: 1 },
      bodyBytes: 1,
      connections: { max: 1, queueSize: 0, queueMs: 1, idleMs: 1 },
    }
    const pool = new Pool({ ...settings, ...rest }, new Upstreams())
    pool.start()
    const names = Array.from({ length: 6 }, () => pool.next(0)!.name)
    expect(names.filter(name => name === 'http://10.0.0.1')).toHaveLength(4)
  })
})
