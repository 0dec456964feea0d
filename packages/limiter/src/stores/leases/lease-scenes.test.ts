import { overLimit, SimulatedFleet, type SimulatedRule } from '@test/fleet/simulated-fleet'
import { VirtualTime } from '@test/fleet/virtual-time'
import fc from 'fast-check'
import { afterEach, describe, expect, it, vi } from 'vitest'

vi.mock('node:timers/promises', async () => {
  const { virtualPause } = await import('@test/fleet/virtual-time')
  return { setTimeout: virtualPause }
})

/** More are played by `npm run long -- walk-fleet`. */
const SCENES = Number(process.env.FLEET_SCENES ?? 6)
const TIMEOUT_MS = 60_000 + SCENES * 5000

let time = new VirtualTime()
afterEach(() => time.uninstall())

async function simulate<T>(seed: number, play: () => Promise<T>): Promise<T> {
  time = new VirtualTime()
  time.install(seed)
  try {
    return await play()
  } finally {
    time.uninstall()
  }
}

interface Event {
  readonly what: 'cut' | 'silent' | 'die' | 'stall' | 'reload'
  readonly at: number
  readonly lastsMs: number
  /** Which process, unless it happens to the store. */
  readonly member?: number | undefined
}

interface Scene {
  readonly seed: number
  readonly rule: SimulatedRule
  readonly everyMs: readonly number[]
  readonly latencyMs: number
  readonly events: readonly Event[]
}

const RUNS_MS = 5000
/** Every process has noticed a silent store after this time. */
const NOTICED_MS = 1600

async function play({
  seed,
  rule,
  everyMs,
  latencyMs,
  events,
}: Scene): Promise<{ by: number; used: number; leased: number }> {
  return simulate(seed, async () => {
    const fleet = new SimulatedFleet(time, { ...rule, isLeased: true })
    const latency = (): number => 0.1 + Math.random() * latencyMs
    const members: Awaited<ReturnType<SimulatedFleet['join']>>[] = []
    for (const every of everyMs) {
      time.after(0, () => void fleet.join({ everyMs: every, latency }).then(member => void members.push(member)))
    }
    await time.runUntil(100)
    for (const event of events) {
      time.after(event.at, () => {
        if (event.what === 'cut' || event.what === 'silent') {
          fleet.cut(event.what === 'cut' ? 'refused' : 'silent')
          time.after(event.lastsMs + (event.what === 'silent' ? NOTICED_MS : 0), () => fleet.mend(200))
          return
        }
        const member = members[(event.member ?? 0) % members.length]!
        if (event.what === 'die') member.die()
        else if (event.what === 'reload') member.reconsider()
        else member.host.stalledUntil = time.now + event.lastsMs
      })
    }
    await time.runUntil(RUNS_MS)
    const leased = fleet.admitted.filter(({ by }) => by.startsWith('lease')).length
    const used = fleet.admitted.length / ((rule.count * RUNS_MS) / rule.periodMs)
    return { by: overLimit(fleet.admitted, rule), used, leased }
  })
}

const rule = fc.record({
  algorithm: fc.constantFrom('sliding-window', 'sliding-log', 'fixed-window', 'token-bucket', 'leaky-bucket'),
  count: fc.integer({ min: 200, max: 600 }),
  periodMs: fc.constantFrom(1000),
  burst: fc.integer({ min: 100, max: 300 }),
})
const everyMs = fc.array(fc.integer({ min: 3, max: 12 }), { minLength: 2, maxLength: 4 })
const member = fc.integer({ min: 0, max: 3 })
const at = fc.integer({ min: 500, max: 1800 })

describe('a fleet whose processes hold permits in advance', () => {
  it(
    'a fleet with leases is never over its limit, though processes die, stall for seconds or reload their rules',
    async () => {
      const what = fc.constantFrom('die' as const, 'stall' as const, 'reload' as const)
      const event = fc.record({ what, at, member, lastsMs: fc.integer({ min: 10, max: 1800 }) })
      const scene = fc.record({
        seed: fc.integer(),
        rule,
        everyMs,
        latencyMs: fc.constantFrom(0.5, 3, 20),
        events: fc.array(event, { minLength: 1, maxLength: 4 }),
      })
      let leased = 0
      await fc.assert(
        fc.asyncProperty(scene, async one => {
          const result = await play(one)
          leased += result.leased
          expect(result.by).toBe(0)
        }),
        { numRuns: SCENES },
      )
      expect(leased).toBeGreaterThan(0)
    },
    TIMEOUT_MS,
  )

  it(
    'a fleet with leases is rarely over its limit when the store goes away and comes back, by a few calls at most',
    async () => {
      let isOver = 0
      const what = fc.constantFrom('cut' as const, 'silent' as const)
      const scene = fc.record({
        seed: fc.integer(),
        rule,
        everyMs,
        latencyMs: fc.constantFrom(0.5, 3, 20),
        events: fc.tuple(fc.record({ what, at, lastsMs: fc.integer({ min: 100, max: 1500 }) })),
      })
      await fc.assert(
        fc.asyncProperty(scene, async one => {
          const { by } = await play(one)
          expect(by).toBeLessThanOrEqual(2 * one.everyMs.length)
          if (by > 0) isOver++
        }),
        { numRuns: SCENES },
      )
      expect(isOver).toBeLessThanOrEqual(Math.ceil(SCENES / 6))
    },
    TIMEOUT_MS,
  )

  it('a process that has got no permits for a while takes a share of the rest, not of the limit', async () => {
    const rule = { algorithm: 'token-bucket', count: 200, periodMs: 1000, burst: 100 }
    const events: Event[] = [{ what: 'cut', at: 1019, lastsMs: 100 }]
    const { by } = await play({ seed: 0, rule, everyMs: [3, 3, 3], latencyMs: 0.5, events })
    expect(by).toBe(0)
  })

  it('a fleet with leases uses its limit while the store is away for a moment, and no held permit is used twice', async () => {
    const rule = { algorithm: 'token-bucket', count: 400, periodMs: 1000, burst: 200 }
    const events: Event[] = [{ what: 'cut', at: 1500, lastsMs: 300 }]
    const { by, used, leased } = await play({ seed: 5, rule, everyMs: [4, 4, 5], latencyMs: 1, events })
    expect(by).toBe(0)
    expect(used).toBeGreaterThan(0.9)
    expect(leased).toBeGreaterThan(500)
  })
})
