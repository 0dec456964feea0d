import { overLimit, SimulatedFleet, type SimulatedRule } from '@test/fleet/simulated-fleet'
import { VirtualTime } from '@test/fleet/virtual-time'
import fc from 'fast-check'
import { afterEach, describe, expect, it, vi } from 'vitest'

vi.mock('node:timers/promises', async () => {
  const { virtualPause } = await import('@test/fleet/virtual-time')
  return { setTimeout: virtualPause }
})

/** More are played by `npm run long -- walk-fleet`. */
const SCENES = Number(process.env.FLEET_SCENES ?? 8)
const TIMEOUT_MS = 60_000 + SCENES * 3000
/** Every process has noticed a silent store after this time; one whose connection is dead for longer is cut off alone. */
const NOTICED_MS = 1600

interface Member {
  readonly joinsAt: number
  /** The time between two of its calls. */
  readonly everyMs: number
}

const rule = fc.record({
  algorithm: fc.constantFrom('sliding-window', 'sliding-log', 'token-bucket'),
  count: fc.integer({ min: 5, max: 80 }),
  periodMs: fc.constantFrom(500, 1000, 3_600_000),
  burst: fc.integer({ min: 5, max: 60 }),
})
const member = { joinsAt: fc.integer({ min: 0, max: 1000 }), everyMs: fc.integer({ min: 5, max: 60 }) }

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

interface OutageScene {
  readonly seed: number
  readonly rule: SimulatedRule
  readonly assumed?: number | undefined
  readonly members: readonly Member[]
  /** Questions and answers take up to so long. */
  readonly latencyMs: number
  readonly kind: 'silent' | 'refused'
  /** So long after the last process has started. */
  readonly awayAfterMs: number
  readonly lastsMs: number
}

const outageScene = fc.record({
  seed: fc.integer(),
  rule,
  assumed: fc.constantFrom(undefined, 3),
  members: fc.array(fc.record(member), { minLength: 2, maxLength: 8 }),
  latencyMs: fc.constantFrom(0.5, 3, 30),
  kind: fc.constantFrom('silent' as const, 'refused' as const),
  awayAfterMs: fc.integer({ min: 100, max: 1500 }),
  lastsMs: fc.integer({ min: 100, max: 2500 }),
})

/** By how much a fleet is over its limit whose processes have just started when its store goes away. */
function overInOutage({ seed, rule, assumed, members, latencyMs, ...outage }: OutageScene): Promise<number> {
  return simulate(seed, async () => {
    const fleet = new SimulatedFleet(time, rule, assumed)
    const latency = (): number => 0.1 + Math.random() * latencyMs
    for (const { joinsAt, everyMs } of members) time.after(joinsAt, () => void fleet.join({ everyMs, latency }))
    const awayAt = Math.max(...members.map(({ joinsAt }) => joinsAt)) + outage.awayAfterMs
    const endsAt = awayAt + outage.lastsMs + (outage.kind === 'silent' ? NOTICED_MS : 0)
    await time.runUntil(awayAt)
    fleet.cut(outage.kind)
    await time.runUntil(endsAt)
    fleet.mend(300)
    await time.runUntil(endsAt + 3000)
    return overLimit(fleet.admitted, rule)
  })
}

interface SlowMember extends Member {
  /** Its answers take longer and longer from then on, up to `peakMs`, and then less and less again. */
  readonly slowAt: number
  readonly slowForMs: number
  readonly peakMs: number
}

interface SlowScene {
  readonly seed: number
  readonly rule: SimulatedRule
  readonly members: readonly SlowMember[]
}

const slowMember = {
  ...member,
  slowAt: fc.integer({ min: -500, max: 1500 }),
  slowForMs: fc.integer({ min: 1500, max: 2500 }),
  peakMs: fc.constantFrom(0, 450, 600),
}
const slowScene = fc.record({
  seed: fc.integer(),
  rule,
  members: fc.array(fc.record(slowMember), { minLength: 2, maxLength: 6 }),
})

/** By how much a fleet that has just started is over its limit, and whether a process took the store for away. */
function overWhileSlow({ seed, rule, members }: SlowScene): Promise<{ by: number; isAway: boolean }> {
  return simulate(seed, async () => {
    const fleet = new SimulatedFleet(time, rule)
    for (const { joinsAt, everyMs, slowAt, slowForMs, peakMs } of members) {
      const latency = (): number => {
        const part = 1 - Math.abs((time.now - slowAt) / (slowForMs / 2) - 1)
        return 0.1 + Math.random() + (Math.max(0, part) * peakMs) / 2
      }
      time.after(joinsAt, () => void fleet.join({ everyMs, latency }))
    }
    await time.runUntil(4000)
    return { by: overLimit(fleet.admitted, rule), isAway: fleet.hasBeenAway }
  })
}

describe('a fleet that has just started', () => {
  it(
    'a fleet that has just started is rarely over its limit when the store goes away and comes back, by about one call per process',
    async () => {
      let isOver = 0
      const check = async (scene: OutageScene): Promise<void> => {
        const by = await overInOutage(scene)
        expect(by).toBeLessThanOrEqual(scene.rule.algorithm === 'token-bucket' ? 0 : scene.members.length)
        if (by > 0) isOver++
      }
      await fc.assert(fc.asyncProperty(outageScene, check), { numRuns: SCENES })
      expect(isOver).toBeLessThanOrEqual(SCENES / 8)
    },
    TIMEOUT_MS,
  )

  it('a fleet reports all calls that it admits until every process can ask again', async () => {
    const rule = { algorithm: 'token-bucket', count: 200, periodMs: 1000, burst: 60 }
    const members = [29, 18, 18, 29, 29, 18, 29].map(everyMs => ({ joinsAt: 0, everyMs }))
    const outage = { kind: 'refused', awayAfterMs: 1138, lastsMs: 194 } as const
    for (const seed of [1, 2, 3]) expect(await overInOutage({ seed, rule, members, latencyMs: 1, ...outage })).toBe(0)
  })

  it('a fleet reports as much of a bucket as if all processes reported at one moment', async () => {
    const rule = { algorithm: 'token-bucket', count: 600, periodMs: 1000, burst: 60 }
    const members = [4, 4, 3, 4, 3, 4, 4, 3].map(everyMs => ({ joinsAt: 0, everyMs }))
    const outage = { kind: 'refused', awayAfterMs: 1250, lastsMs: 98 } as const
    for (const seed of [1, 2]) expect(await overInOutage({ seed, rule, members, latencyMs: 0.2, ...outage })).toBe(0)
  })

  it('a fleet admits no call beside the store while only some processes have reported to it', async () => {
    const rule = { algorithm: 'sliding-window', count: 60, periodMs: 1000, burst: 60 }
    const members = Array.from({ length: 8 }, (_, i) => ({ joinsAt: i * 5, everyMs: 20 + i }))
    const outage = { latencyMs: 0.5, kind: 'refused', awayAfterMs: 105, lastsMs: 2295 } as const
    for (let seed = 1; seed <= 4; seed++) {
      expect(await overInOutage({ seed, rule, assumed: 3, members, ...outage })).toBe(0)
    }
  })

  it('all processes of a fleet notice a short outage, also those that ask nothing meanwhile', async () => {
    const rule = { algorithm: 'sliding-log', count: 79, periodMs: 1000, burst: 59 }
    const everyMs = [9, 9, 10, 60, 43, 5, 55, 53]
    const members = [5, 0, 8, 350, 997, 901, 77, 1].map((joinsAt, i) => ({ joinsAt, everyMs: everyMs[i]! }))
    const outage = { latencyMs: 30, kind: 'refused', awayAfterMs: 2500, lastsMs: 411 } as const
    expect(await overInOutage({ seed: -2049971692, rule, members, ...outage })).toBe(0)
  })

  it(
    'a fleet is not over its limit while answers are late and no process counts the store as down',
    async () => {
      const check = async (scene: SlowScene): Promise<void> => {
        const { by, isAway } = await overWhileSlow(scene)
        expect(isAway ? 0 : by).toBe(0)
      }
      const examples: [SlowScene][] = SLOW_EXAMPLES.map(scene => [scene])
      await fc.assert(fc.asyncProperty(slowScene, check), { numRuns: SCENES + examples.length, examples })
    },
    TIMEOUT_MS,
  )
})

interface EvenLoad {
  readonly rule: SimulatedRule
  readonly everyMs: number
  /** When the store fails, and what happens to it from then on. */
  readonly failsAt: number
  readonly fail: (fleet: SimulatedFleet) => Promise<void>
}

/** Three processes that have been calling for seconds: what they were admitted while the store failed, and by how much in excess. */
function underEvenLoad(
  seed: number,
  { rule, everyMs, failsAt, fail }: EvenLoad,
): Promise<{ part: number; by: number }> {
  return simulate(seed, async () => {
    const fleet = new SimulatedFleet(time, rule)
    const latency = (): number => 0.1 + Math.random() * 2
    for (let i = 0; i < 3; i++) time.after(i * 5, () => void fleet.join({ everyMs: everyMs + i * 0.3, latency }))
    await time.runUntil(failsAt)
    await fail(fleet)
    const endedAt = time.now
    await time.runUntil(endedAt + 3000)
    const admitted = fleet.admitted.filter(({ end }) => end >= failsAt && end < endedAt).length
    const part = admitted / (((endedAt - failsAt) * rule.count) / rule.periodMs)
    return { part, by: overLimit(fleet.admitted, rule) }
  })
}

describe('a process that reaches an empty store before others, and knows less than they do of what was counted', () => {
  it.each(['fixed-window', 'sliding-window', 'sliding-log'])(
    '%s: gets its calls counted beside what the others report',
    async algorithm => {
      const rule = { algorithm, count: 40, periodMs: 3_600_000, burst: 40 }
      const by = await simulate(1, async () => {
        const fleet = new SimulatedFleet(time, rule)
        const latency = (): number => 0.1 + Math.random()
        const joining = [1, 2].map(() => fleet.join({ everyMs: Number.POSITIVE_INFINITY, latency }))
        await time.runUntil(3000)
        const [first, second] = await Promise.all(joining)
        for (let call = 0; call < 15; call++) await advance(second!.call(1))
        fleet.cut('refused')
        await time.runUntil(3300)
        fleet.store.forget()
        first!.link.mend(0)
        for (const at of [3700, 3800, 3900, 4000]) {
          await time.runUntil(at)
          void first!.call(1)
          void first!.call(1)
        }
        second!.link.mend(0)
        await time.runUntil(8000)
        for (let call = 0; call < 40; call++) await advance(second!.call(1))
        return overLimit(fleet.admitted, rule)
      })
      expect(by).toBe(0)
    },
    TIMEOUT_MS,
  )
})

/** Lets time pass until a call is decided. */
async function advance(call: Promise<unknown>): Promise<void> {
  let isDecided = false
  void call.then(() => {
    isDecided = true
  })
  while (!isDecided) await time.runUntil(time.now + 1)
}

describe('a fleet under twice the load that its limit admits', () => {
  it.each(['sliding-window', 'sliding-log', 'token-bucket'])(
    '%s: admits 90 % of the limit in an outage of two seconds, and no call beyond it',
    async algorithm => {
      const rule = { algorithm, count: 60, periodMs: 1000, burst: 30 }
      const parts: number[] = []
      for (let seed = 1; seed <= 5; seed++) {
        const fail = async (fleet: SimulatedFleet): Promise<void> => {
          fleet.cut('refused')
          await time.runUntil(time.now + 2000)
          fleet.mend(100)
        }
        // outages begin at all moments of a period
        const { part, by } = await underEvenLoad(seed, { rule, everyMs: 25, failsAt: 3000 + seed * 200, fail })
        expect(by).toBe(0)
        parts.push(part)
      }
      expect(parts.reduce((sum, part) => sum + part, 0) / parts.length).toBeGreaterThan(0.9)
    },
    TIMEOUT_MS,
  )

  it(
    'a fleet under twice its load is rarely over a bucket whose store loses its counts three times a second',
    async () => {
      const rule = { algorithm: 'token-bucket', count: 60, periodMs: 1000, burst: 30 }
      let over = 0
      for (let seed = 1; seed <= 6; seed++) {
        const fail = async (fleet: SimulatedFleet): Promise<void> => {
          for (let flush = 0; flush < 6; flush++) {
            fleet.store.forget()
            await time.runUntil(time.now + 330)
          }
        }
        over += (await underEvenLoad(seed, { rule, everyMs: 20, failsAt: 3500 + seed * 37, fail })).by
      }
      // 36 times in all
      expect(over).toBeLessThan(8)
    },
    TIMEOUT_MS,
  )
})

const SLOW_EXAMPLES: readonly SlowScene[] = [
  {
    seed: -17,
    rule: { algorithm: 'sliding-window', count: 64, periodMs: 1000, burst: 55 },
    members: [
      { joinsAt: 368, everyMs: 5, slowAt: -39, slowForMs: 2499, peakMs: 450 },
      { joinsAt: 72, everyMs: 52, slowAt: 704, slowForMs: 1621, peakMs: 600 },
      { joinsAt: 602, everyMs: 33, slowAt: -494, slowForMs: 2411, peakMs: 0 },
    ],
  },
  {
    seed: 15548437,
    rule: { algorithm: 'sliding-window', count: 5, periodMs: 1000, burst: 57 },
    members: [
      { joinsAt: 769, everyMs: 11, slowAt: -292, slowForMs: 2300, peakMs: 0 },
      { joinsAt: 86, everyMs: 52, slowAt: 4, slowForMs: 1835, peakMs: 600 },
      { joinsAt: 608, everyMs: 25, slowAt: -322, slowForMs: 1528, peakMs: 600 },
    ],
  },
]
