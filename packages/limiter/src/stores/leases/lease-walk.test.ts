import { overLimit, type SimulatedCall, SimulatedFleet, type SimulatedRule } from '@test/fleet/simulated-fleet'
import { VirtualTime } from '@test/fleet/virtual-time'
import fc from 'fast-check'
import { afterEach, describe, expect, it, vi } from 'vitest'
import type { Meter } from '../../algorithms/algorithm.ts'
import { algorithms } from '../../algorithms/index.ts'
import { RETURNED_US } from '../memory/delay-beside.ts'

vi.mock('node:timers/promises', async () => {
  const { virtualPause } = await import('@test/fleet/virtual-time')
  return { setTimeout: virtualPause }
})

/** More are played by `npm run long -- walk-fleet`. */
const WALKS = Number(process.env.FLEET_SCENES ?? 6) * 2
const TIMEOUT_MS = 60_000 + WALKS * 3000
/** `npm test` makes the same walks each time, and `npm run long -- walk-fleet` many random ones. */
const RUNS = { numRuns: WALKS, endOnFailure: true, ...(process.env.FLEET_SCENES === undefined && { seed: 1 }) }
/** Requests take up to this time, there and back, and calls wait for the next one. */
const SLACK_MS = 60

let time = new VirtualTime()
afterEach(() => time.uninstall())

interface Step {
  readonly process: number
  readonly afterMs: number
  readonly calls: number
  readonly cost: number
  /** After this time the calls are refunded; undefined: never. */
  readonly refundedMs?: number | undefined
}

interface Walk {
  readonly seed: number
  readonly rule: SimulatedRule
  readonly latencyMs: number
  readonly steps: readonly Step[]
}

interface Outcome extends SimulatedCall {
  readonly process: number
  readonly cost: number
  readonly startedAt: number
}

class Play {
  readonly outcomes: Outcome[] = []
  readonly fleet: SimulatedFleet
  readonly members: Awaited<ReturnType<SimulatedFleet['join']>>[] = []
  readonly rule: SimulatedRule

  constructor(rule: SimulatedRule) {
    this.rule = rule
    this.fleet = new SimulatedFleet(time, { ...rule, isLeased: true })
  }

  async join(processes: number, latencyMs: number): Promise<void> {
    const latency = (): number => 0.1 + Math.random() * latencyMs
    for (let i = 0; i < processes; i++) {
      time.after(0, () => {
        void this.fleet.join({ everyMs: Number.POSITIVE_INFINITY, latency }).then(one => void this.members.push(one))
      })
    }
    await this.pass(200)
  }

  async pass(ms: number): Promise<void> {
    await time.runUntil(time.now + ms)
  }

  async step({ process, afterMs, calls, cost, refundedMs }: Step): Promise<void> {
    await this.pass(afterMs)
    const place = process % this.members.length
    const member = this.members[place]!
    const startedAt = time.now
    for (let i = 0; i < calls; i++) {
      void member.call(cost).then(outcome => {
        this.outcomes.push({ ...outcome, process: place, cost, startedAt })
        if (outcome.isAllowed && refundedMs !== undefined)
          time.as(member.host, () => time.after(refundedMs, outcome.refund))
      })
    }
  }
}

async function play({ seed, rule, latencyMs, steps }: Walk, processes: number): Promise<Play> {
  time = new VirtualTime()
  time.install(seed)
  const played = new Play(rule)
  await played.join(processes, latencyMs)
  for (const step of steps) await played.step(step)
  await played.pass(500)
  return played
}

function meterOf({ algorithm, count, periodMs, burst }: SimulatedRule): Meter {
  const options = algorithm === 'token-bucket' ? { burst } : algorithm === 'leaky-bucket' ? { burst: burst - 1 } : {}
  return algorithms.find(({ name }) => name === algorithm)!.meter({ count, periodMs }, options)
}

/** Refusals of one process though an exact count of what it was admitted has room for the call, and had it for a while. */
function falseRefusals(outcomes: readonly Outcome[], rule: SimulatedRule): Outcome[] {
  const meter = meterOf(rule)
  const state = new Float64Array(meter.slots)
  // uses are reported together, and counted a little later than they were
  const lateMs = SLACK_MS + Math.min(250, rule.periodMs * 0.02)
  const micros = (ms: number): number => Math.round(1e15 + ms * 1000)
  const refusals = new Map<string, Outcome>()
  for (const one of outcomes) if (!one.isAllowed) refusals.set(`${one.startedAt} ${one.cost}`, one)
  return [...refusals.values()].filter(({ startedAt, at, cost }) => {
    state.fill(0)
    const seenAt = startedAt - lateMs
    // permits that calls wait for beside this one are theirs
    const admitted = outcomes.filter(other => other.isAllowed && other.startedAt <= at)
    for (const other of admitted.sort((a, b) => a.at - b.at)) {
      meter.take(state, 0, micros(Math.min(seenAt, other.at)), other.cost, 0)
    }
    return meter.remaining(state, 0, micros(seenAt)) >= cost
  })
}

/** Calls that passed before the Retry-After of a call that was refused before they began. */
function early(outcomes: readonly Outcome[], isTold: (refusal: Outcome) => boolean): Outcome[] {
  const refusals = new Map<number, number>()
  for (const one of outcomes) {
    if (one.isAllowed || one.cost > 1 || !isTold(one)) continue
    refusals.set(one.at, Math.max(refusals.get(one.at) ?? 0, one.startedAt + one.waitMs))
  }
  return outcomes.filter(({ isAllowed, startedAt, at }) => {
    return isAllowed && [...refusals].some(([refusedAt, until]) => refusedAt < startedAt && at < until - SLACK_MS)
  })
}

const rule: fc.Arbitrary<SimulatedRule> = fc
  .record({
    algorithm: fc.constantFrom('sliding-window', 'sliding-log', 'fixed-window', 'token-bucket', 'leaky-bucket'),
    count: fc.constantFrom(20, 40, 100, 119, 200, 400, 900, 3000, 20_000),
    periodMs: fc.constantFrom(1000, 10_000, 60_000, 3_600_000, 86_400_000),
  })
  .map(one => {
    const count = one.algorithm === 'sliding-log' ? Math.min(900, one.count) : one.count
    return { ...one, count, burst: count }
  })

/** Bursts from a few calls to more than the limit, and steady calls between them. */
const walkOf = (processes: number, costs: readonly number[], refunds: boolean): fc.Arbitrary<Walk> =>
  fc.record({ seed: fc.integer(), rule, latencyMs: fc.constantFrom(0.3, 2, 8) }).chain(one => {
    const most = Math.min(400, one.rule.count * 2)
    const step = fc.record({
      process: fc.integer({ min: 0, max: processes - 1 }),
      afterMs: fc.constantFrom(0, 0, 1, 5, 20, 50, 200, 700, 1500),
      calls: fc.oneof(fc.constantFrom(1, 2, 5, 13, 30), fc.integer({ min: 1, max: most })),
      cost: fc.constantFrom(...costs),
      refundedMs: refunds ? fc.constantFrom(1, 20, 90, 400) : fc.constant(undefined),
    })
    return fc.array(step, { minLength: 4, maxLength: 12 }).map(steps => ({ ...one, steps }))
  })

/** Calls of cost 1 were refused although five permits were left that calls of cost 7 could not use. */
const usedUpByLargeCosts: Walk = {
  seed: 239_189_468,
  rule: { algorithm: 'sliding-window', count: 400, periodMs: 60_000, burst: 400 },
  latencyMs: 8,
  steps: [
    [700, 1, 1],
    [50, 30, 7],
    [200, 2, 1],
    [20, 66, 7],
    [20, 5, 1],
    [5, 2, 1],
  ].map(([afterMs, calls, cost]) => ({
    process: 0,
    afterMs: afterMs!,
    calls: calls!,
    cost: cost!,
    refundedMs: undefined,
  })),
}

describe('bursts and steady calls of processes that lease permits', () => {
  it(
    'calls of one process with leases are refused only if nothing is left, for as long as Retry-After says, and never exceed the limit',
    async () => {
      await fc.assert(
        fc.asyncProperty(walkOf(1, [1, 1, 1, 2, 7], false), async walk => {
          const { outcomes, fleet } = await play(walk, 1)
          expect(outcomes.length).toBe(walk.steps.reduce((sum, { calls }) => sum + calls, 0))
          expect(falseRefusals(outcomes, walk.rule)).toEqual([])
          if (walk.steps.every(({ cost }) => cost === 1)) {
            expect(overLimit(fleet.admitted, walk.rule)).toBe(0)
            expect(early(outcomes, () => true)).toEqual([])
          }
        }),
        { ...RUNS, examples: [[usedUpByLargeCosts]] },
      )
    },
    TIMEOUT_MS,
  )

  it(
    'calls of several processes with leases never exceed the limit, and a refusal that names a long time is true',
    async () => {
      await fc.assert(
        fc.asyncProperty(walkOf(4, [1], false), fc.integer({ min: 2, max: 4 }), async (walk, processes) => {
          const { outcomes, fleet } = await play(walk, processes)
          expect(overLimit(fleet.admitted, walk.rule)).toBe(0)
          expect(early(outcomes, ({ waitMs }) => waitMs * 1000 > RETURNED_US)).toEqual([])
        }),
        RUNS,
      )
    },
    TIMEOUT_MS,
  )

  it(
    'refunded calls of processes with leases leave nothing behind',
    async () => {
      await fc.assert(
        fc.asyncProperty(walkOf(3, [1, 1, 3], true), fc.integer({ min: 1, max: 3 }), async (walk, processes) => {
          const played = await play(walk, processes)
          await played.pass(2500)
          const { count, algorithm } = walk.rule
          const before = played.outcomes.length
          // all is free again: as many calls pass as the limit has, or as a test can make
          await played.step({ process: 0, afterMs: 0, calls: Math.min(count, 400), cost: 1 })
          await played.pass(1000)
          const refused = played.outcomes.slice(before).filter(({ isAllowed }) => !isAllowed)
          expect({ algorithm, refused: refused.length }).toEqual({ algorithm, refused: 0 })
        }),
        RUNS,
      )
    },
    TIMEOUT_MS,
  )
})
