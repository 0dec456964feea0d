import { overLimit, SimulatedFleet, type SimulatedRule } from '@test/fleet/simulated-fleet'
import { VirtualTime } from '@test/fleet/virtual-time'
import { afterEach, describe, expect, it, vi } from 'vitest'

vi.mock('node:timers/promises', async () => {
  const { virtualPause } = await import('@test/fleet/virtual-time')
  return { setTimeout: virtualPause }
})

let time = new VirtualTime()
afterEach(() => time.uninstall())

const rule: SimulatedRule = { algorithm: 'token-bucket', count: 4000, periodMs: 1000, burst: 1000, isLeased: true }

/** Two processes that hold permits in advance, and call so rarely that the bucket is full. */
async function leasingFleet(seed: number) {
  time = new VirtualTime()
  time.install(seed)
  const fleet = new SimulatedFleet(time, rule)
  const latency = (): number => 0.1 + Math.random()
  const joining = [2, 2.2].map(everyMs => fleet.join({ everyMs, latency }))
  await time.runUntil(1500)
  const members = await Promise.all(joining)
  expect(members.map(({ shared }) => shared.stats.leases.permits > 20)).toEqual([true, true])
  const burst = (calls: number): void => {
    for (const member of members) for (let i = 0; i < calls; i++) void member.call(1)
  }
  return { fleet, members, burst }
}

describe('a fleet that holds permits of a bucket in advance', () => {
  it.each([1, 2, 3])('admits no permit beside its shares while the store is away, with seed %i', async seed => {
    const { fleet, burst } = await leasingFleet(seed)
    fleet.cut('refused')
    // the shares are nearly full again by then, and the permits could still be used
    await time.runUntil(1540)
    burst(700)
    await time.runUntil(2500)
    fleet.mend(100)
    await time.runUntil(5000)
    expect(overLimit(fleet.admitted, rule)).toBe(0)
  })

  it.each([1, 2, 3])('forgets no permit that was used when the store loses its counts, with seed %i', async seed => {
    const { fleet, members, burst } = await leasingFleet(seed)
    burst(Math.min(...members.map(({ shared }) => shared.stats.leases.permits)))
    fleet.store.forget()
    for (let moment = 1510; moment < 2500; moment += 10) {
      await time.runUntil(moment)
      burst(40)
    }
    expect(overLimit(fleet.admitted, rule)).toBe(0)
  })
})
