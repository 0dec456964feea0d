import fc from 'fast-check'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { overLimit, SimulatedFleet, type SimulatedRule } from './doubles/simulated-fleet.ts'
import { VirtualTime } from './doubles/virtual-time.ts'

vi.mock('node:timers/promises', async () => {
  const { virtualPause } = await import('./doubles/virtual-time.ts')
  return { setTimeout: virtualPause }
})

/** Every process has noticed a silent store after this time; one whose connection is dead longer is cut off alone. */
const NOTICED_MS = 1600

let time = new VirtualTime()
afterEach(() => time.uninstall())

interface Scene {
  readonly seed: number
  readonly rule: SimulatedRule
  readonly assumed: number | undefined
  /** When each process starts, and how often it calls. */
  readonly members: readonly { readonly joinsAt: number; readonly everyMs: number }[]
  /** Answers take up to so long. */
  readonly latencyMs: number
  readonly kind: 'silent' | 'refused'
  /** So long after the last start. */
  readonly awayAfterMs: number
  readonly lastsMs: number
}

async function play(scene: Scene) {
  const { seed, rule, members, latencyMs, kind, awayAfterMs, lastsMs } = scene
  time = new VirtualTime()
  time.install(seed)
  try {
    const fleet = new SimulatedFleet(time, rule, scene.assumed)
    const latency = (): number => 0.1 + Math.random() * latencyMs
    const joining = members.map(({ joinsAt, everyMs }) => {
      return new Promise<{ leave(): Promise<void> }>(resolve => {
        time.after(joinsAt, () => void fleet.join({ everyMs, latency }).then(resolve))
      })
    })
    const lastJoin = Math.max(...members.map(({ joinsAt }) => joinsAt))
    const awayAt = lastJoin + awayAfterMs
    await time.runUntil(awayAt)
    fleet.cut(kind)
    const endsAt = awayAt + lastsMs + (kind === 'silent' ? NOTICED_MS : 0)
    await time.runUntil(endsAt)
    fleet.mend(300)
    await time.runUntil(endsAt + 3000)
    const joined = await Promise.all(joining)
    for (const member of joined) void member.leave()
    await time.runUntil(time.now + 1000)
    return { admitted: fleet.admitted, events: fleet.events, awayAt, by: overLimit(fleet.admitted, rule) }
  } finally {
    time.uninstall()
  }
}

const rule = fc.record({
  algorithm: fc.constantFrom('sliding-window', 'sliding-log', 'token-bucket'),
  count: fc.integer({ min: 5, max: 80 }),
  periodMs: fc.constantFrom(500, 1000, 3_600_000),
  burst: fc.integer({ min: 5, max: 60 }),
})

const scene = fc.record({
  seed: fc.integer(),
  rule,
  assumed: fc.constantFrom(undefined, 3),
  members: fc.array(
    fc.record({ joinsAt: fc.integer({ min: 0, max: 1000 }), everyMs: fc.integer({ min: 5, max: 60 }) }),
    { minLength: 2, maxLength: 8 },
  ),
  latencyMs: fc.constantFrom(0.5, 3, 30),
  kind: fc.constantFrom('silent' as const, 'refused' as const),
  awayAfterMs: fc.integer({ min: 100, max: 1500 }),
  lastsMs: fc.integer({ min: 100, max: 2500 }),
})

if (process.env.SCENE) {
  it('prints a scene', async () => {
    const one = JSON.parse(process.env.SCENE!)
    const ids = new Map()
    if (process.env.SAY) (globalThis as any).__say = (who: any, ...w: any[]) => {
      if (!ids.has(who)) ids.set(who, ids.size)
      if (ids.get(who) === Number(process.env.SAY)) console.log(((w[1] - 1e15) / 1000).toFixed(1), w[0], w[2], 'left', String(w[3]), 'seen used', String(w[4]))
    }
    const { by, admitted, awayAt, events } = await (one.kind ? play(one) : playLate(one))
    console.log('by', by, 'away', awayAt, 'to', awayAt + one.lastsMs)
    console.log(events.join('\n'))
    const { algorithm, periodMs, count, burst } = one.rule
    let best = { m: -1, from: 0, to: 0 }
    const byEnd = admitted.toSorted((a: any, b: any) => a.end - b.end)
    for (const { start } of byEnd) {
      let n = 0
      for (const c of byEnd) {
        if (c.start < start) continue
        if (algorithm !== 'token-bucket' && c.end >= start + periodMs) break
        n++
        const m = n - (algorithm === 'token-bucket' ? burst + (count * (c.end - start)) / periodMs : count)
        if (m > best.m) best = { m, from: start, to: c.end }
      }
    }
    console.log(best)
    const g: any = {}
    for (const c of byEnd) if (c.start >= best.from && c.end <= best.to) (g[`p${c.process} ${c.by}`] ??= []).push(`${c.start.toFixed(0)}-${c.end.toFixed(0)}`)
    for (const k of Object.keys(g).sort()) console.log(k, g[k].length, g[k].join(' ').slice(0, 300))
  })
}

interface LateScene {
  readonly seed: number
  readonly rule: SimulatedRule
  readonly members: readonly {
    readonly joinsAt: number
    readonly everyMs: number
    /** Its answers take longer and longer, up to `peakMs`, and then less and less again. */
    readonly slowAt: number
    readonly slowForMs: number
    readonly peakMs: number
  }[]
}

async function playLate({ seed, rule, members }: LateScene) {
  time = new VirtualTime()
  time.install(seed)
  try {
    const fleet = new SimulatedFleet(time, rule, undefined)
    for (const { joinsAt, everyMs, slowAt, slowForMs, peakMs } of members) {
      const latency = (): number => {
        const part = 1 - Math.abs((time.now - slowAt) / (slowForMs / 2) - 1)
        return 0.1 + Math.random() + (Math.max(0, part) * peakMs) / 2
      }
      time.after(joinsAt, () => void fleet.join({ everyMs, latency }))
    }
    await time.runUntil(4000)
    return { admitted: fleet.admitted, events: fleet.events, awayAt: 0, by: overLimit(fleet.admitted, rule) }
  } finally {
    time.uninstall()
  }
}

const lateScene = fc.record({
  seed: fc.integer(),
  rule,
  members: fc.array(
    fc.record({
      joinsAt: fc.integer({ min: 0, max: 1000 }),
      everyMs: fc.integer({ min: 5, max: 60 }),
      slowAt: fc.integer({ min: -500, max: 1500 }),
      slowForMs: fc.integer({ min: 1500, max: 2500 }),
      peakMs: fc.constantFrom(0, 450, 600),
    }),
    { minLength: 2, maxLength: 6 },
  ),
})

describe('a fleet that has just started when its store goes away', () => {
  it('is not over its limit before, during and after the outage', async () => {
    const found: string[] = []
    const runs = Number(process.env.RUNS ?? 50)
    await fc.assert(
      fc.asyncProperty(scene, async one => {
        const { by } = await play(one)
        if (by > 0) found.push(`${by}: ${JSON.stringify(one)}`)
      }),
      { numRuns: runs },
    )
    console.log(found.length, 'of', runs)
    for (const f of found.slice(0, 12)) console.log(f)
    expect(found).toEqual([])
  }, 600_000)

  it('late', async () => {
    const found: string[] = []
    const runs = Number(process.env.RUNS ?? 50)
    await fc.assert(
      fc.asyncProperty(lateScene, async one => {
        const { by, events } = await playLate(one)
        if (by > 0 && !events.some(e => e.includes('away'))) found.push(`${by} ${events.some(e => e.includes('away'))}: ${JSON.stringify(one)}`)
      }),
      { numRuns: runs },
    )
    console.log(found.length, 'of', runs)
    for (const f of found.slice(0, 12)) console.log(f)
    expect(found).toEqual([])
  }, 600_000)
})
