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
  it('is the one assumed until the store has told, and then nobody gets a remainder', () => {
    expect(join().fleet.part).toEqual({ rank: 0, size: 1 })
    expect(join(4).fleet).toMatchObject({ part: { rank: 4, size: 4 }, isKnown: false })
  })

  it('that grows is believed at once, one that shrinks after 5 seconds', async () => {
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

  it('that was smaller for a moment stays what it was', async () => {
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

  it('is complete when all that are remembered have been heard of, and back when they say so', async () => {
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

  it('is not complete until processes are back that have joined since this one last heard of the others', async () => {
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

  it('learns that the store has forgotten, once', async () => {
    const { fleet, say } = join()
    await fleet.register(0)
    say({ era: 'two' })
    expect(await fleet.probeMembers(0)).toMatchObject({ era: 'two', hasForgotten: true })
    await fleet.return('two', 0)
    expect(await fleet.probeMembers(0)).toMatchObject({ hasForgotten: false })
  })

  it('is asked about often by a process that has just started, and then once a second', async () => {
    const { fleet } = join()
    for (let beat = 0; beat < 10; beat++) {
      expect(fleet.beatMs).toBe(200)
      await fleet.register(beat * 200)
    }
    expect(fleet.beatMs).toBe(1000)
  })

  it('of many says less often that it is there', async () => {
    const { fleet, say } = join()
    say({ size: 1000 })
    await fleet.register(0)
    expect(fleet.beatMs).toBe(2000)
    for (let beat = 1; beat < 10; beat++) await fleet.register(beat * 2000)
    expect(fleet.beatMs).toBe(10_000)
  })
})
