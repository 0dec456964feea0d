import { describe, expect, it } from 'vitest'
import type { Part } from '../../algorithms/algorithm.ts'
import { Fleet } from './fleet.ts'
import type { Membership, MembershipRegistry, SignOfLife } from './registry.ts'

function join(assumed = 1) {
  const told: Part[] = []
  const signs: SignOfLife[] = []
  let answer: Membership = { era: 'one', size: 1, rank: 0, heard: 1, back: 1 }
  const registry: MembershipRegistry = {
    register: async sign => {
      signs.push(sign)
      return answer
    },
    leave: async () => {},
  }
  const fleet = new Fleet(registry, { assumed, onChange: part => told.push(part) })
  const say = (next: Partial<Membership>): void => {
    answer = { ...answer, ...next }
  }
  return { fleet, told, signs, say }
}

describe('a fleet', () => {
  it('a fleet has its assumed size until the store answers, and meanwhile no process gets a remainder', () => {
    expect(join().fleet.part).toEqual({ rank: 0, size: 1 })
    expect(join(4).fleet).toMatchObject({ part: { rank: 4, size: 4 }, isKnown: false })
  })

  it('growth of a fleet is applied at once, and shrinking after 5 seconds', async () => {
    const { fleet, told, say } = join(9)
    say({ size: 3, rank: 1 })
    await fleet.register(0)
    expect(told).toEqual([{ rank: 1, size: 3 }])
    say({ size: 4 })
    await fleet.register(1000)
    say({ size: 2, rank: 0 })
    for (const now of [2000, 4000, 6999]) await fleet.register(now)
    expect(fleet.part).toEqual({ rank: 1, size: 4 })
    await fleet.register(7000)
    expect(fleet.part).toEqual({ rank: 0, size: 2 })
  })

  it('a fleet that was smaller for a moment keeps its size', async () => {
    const { fleet, say } = join()
    say({ size: 3, rank: 2 })
    await fleet.register(0)
    say({ size: 1, rank: 0 })
    await fleet.register(1000)
    say({ size: 3, rank: 2 })
    await fleet.register(2000)
    say({ size: 1, rank: 0 })
    await fleet.register(6500)
    expect(fleet.part).toEqual({ rank: 2, size: 3 })
  })

  it('a fleet is complete when all members have sent a heartbeat, and back when all of them report it', async () => {
    const { fleet, signs, say } = join()
    say({ size: 3 })
    await fleet.register(0)
    say({ size: 2, heard: 2, back: 1 })
    expect(await fleet.probeMembers(10)).toMatchObject({ isComplete: false, hasForgotten: false })
    expect(await fleet.return('one', 10)).toBe(false)
    say({ size: 3, heard: 3, back: 3 })
    expect(await fleet.probeMembers(10)).toMatchObject({ isComplete: true })
    expect(await fleet.return('one', 10)).toBe(true)
    expect(signs.map(({ isBack }) => isBack)).toEqual([true, false, true, false, true])
  })

  it('a fleet is not complete until processes that joined during an outage are back', async () => {
    const { fleet, say } = join()
    say({ size: 3 })
    await fleet.register(0)
    say({ size: 8, heard: 7, back: 7 })
    expect(await fleet.probeMembers(10)).toMatchObject({ isComplete: false })
    expect(await fleet.return('one', 10)).toBe(false)
    say({ heard: 8, back: 8 })
    expect(await fleet.probeMembers(10)).toMatchObject({ isComplete: true })
    expect(await fleet.return('one', 10)).toBe(true)
  })

  it('a fleet learns once that the store has lost its data', async () => {
    const { fleet, say } = join()
    await fleet.register(0)
    say({ era: 'two' })
    expect(await fleet.probeMembers(0)).toMatchObject({ era: 'two', hasForgotten: true })
    await fleet.return('two', 0)
    expect(await fleet.probeMembers(0)).toMatchObject({ hasForgotten: false })
  })

  it('a process reads the size of its fleet often after its start, and then once a second', async () => {
    const { fleet } = join()
    for (let beat = 0; beat < 10; beat++) {
      expect(fleet.beatMs).toBe(200)
      await fleet.register(beat * 200)
    }
    expect(fleet.beatMs).toBe(1000)
  })

  it('a large fleet sends heartbeats less often', async () => {
    const { fleet, say } = join()
    say({ size: 1000 })
    await fleet.register(0)
    expect(fleet.beatMs).toBe(2000)
    for (let beat = 1; beat < 10; beat++) await fleet.register(beat * 2000)
    expect(fleet.beatMs).toBe(10_000)
  })
})
