import { randomRuns } from '@test/random-runs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { deal } from '../../algorithms/part.ts'
import { Fleet } from './fleet.ts'
import type { MembershipRegistry } from './registry.ts'
import { ShareBook, type ShareGrant } from './shares.ts'

const COUNTS = [1, 2, 3, 5, 7, 10, 24, 60, 101, 500]
/** A process that is alive is heard of at least so often while the store can be reached. */
const HEARD_MS = 3500

type Outcome = 'answered' | 'request lost' | 'answer lost' | 'request late' | 'answer late'

interface Process {
  readonly fleet: Fleet
  readonly register: (outcome: Outcome) => Promise<void>
  reachedAt: number
}

/** Processes that claim shares from one book, over a network that loses, delays and reorders what they say. */
class World {
  now = 1_000_000
  readonly book = new ShareBook()
  readonly processes: Process[] = []
  readonly #late: (() => void)[] = []
  #ids = 0

  async join(assumed: number, outcome: Outcome): Promise<void> {
    const id = `process-${this.#ids++}`
    let next: Outcome = outcome
    const registry: MembershipRegistry = {
      register: async () => ({ era: 'one', size: 1, rank: 0, heard: 1, back: 1 }),
      share: claim =>
        new Promise((resolve, reject) => {
          const send = (): ShareGrant | undefined => {
            process.reachedAt = this.now
            return this.book.claim(id, claim, this.now)
          }
          const how = next
          // the claim that confirms a smaller share may get through or not, like any other
          next = how === 'answered' ? 'answered' : 'request lost'
          if (how === 'request lost') reject(new Error('lost'))
          else if (how === 'request late') this.#late.push(() => resolve(send()))
          else {
            const grant = send()
            if (how === 'answered') resolve(grant)
            else if (how === 'answer lost') reject(new Error('lost'))
            else this.#late.push(() => resolve(grant))
          }
        }),
      leave: async () => this.book.leave(id),
    }
    const fleet = new Fleet(registry, { assumed, onChange: () => {} })
    const process: Process = {
      fleet,
      reachedAt: this.now,
      register: async outcome => {
        next = outcome
        const registered = fleet.register(this.now).catch(() => {})
        if (outcome === 'answered') await registered
        else await settled()
      },
    }
    this.processes.push(process)
    await process.register(outcome)
  }

  async pass(ms: number): Promise<void> {
    this.now += ms
    for (const process of this.processes) {
      if (this.now - process.reachedAt > HEARD_MS) await process.register('answered')
    }
  }

  /** Time in which no process reaches the store. */
  cut(ms: number): void {
    this.now += ms
    for (const process of this.processes) process.reachedAt += ms
  }

  async deliver(which: number): Promise<void> {
    if (this.#late.length > 0) this.#late.splice(which % this.#late.length, 1)[0]!()
    await settled()
  }

  /** What all processes would admit if the store went away at this moment. */
  total(count: number): number {
    // a process that the store has never answered takes what was assumed for it
    const shares = this.processes.filter(({ fleet }) => fleet.isKnown && fleet.hasShare)
    return shares.reduce((sum, { fleet }) => sum + deal(count, fleet.part), 0)
  }
}

async function settled(): Promise<void> {
  for (let i = 0; i < 10; i++) await Promise.resolve()
}

const outcome = fc.constantFrom<Outcome[]>(
  'answered',
  'answered',
  'request lost',
  'answer lost',
  'request late',
  'answer late',
)
const which = fc.nat(1000)
const step = fc.oneof(
  { weight: 3, arbitrary: fc.record({ join: fc.constantFrom(1, 1, 1, 2, 3, 7), outcome }) },
  { weight: 12, arbitrary: fc.record({ beat: which, outcome }) },
  { weight: 1, arbitrary: fc.record({ leave: which }) },
  { weight: 1, arbitrary: fc.record({ kill: which }) },
  { weight: 3, arbitrary: fc.record({ deliver: which }) },
  { weight: 4, arbitrary: fc.record({ pass: fc.integer({ min: 1, max: 1500 }) }) },
  { weight: 1, arbitrary: fc.record({ cut: fc.integer({ min: 1, max: 60_000 }) }) },
  { weight: 1, arbitrary: fc.record({ start: fc.integer({ min: 1, max: 25 }) }) },
)
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never

async function take(world: World, step: Step): Promise<void> {
  const { processes } = world
  const pick = (n: number): number => n % processes.length
  if ('join' in step) {
    if (processes.length < 50) await world.join(step.join, step.outcome)
  } else if ('start' in step) {
    for (let i = 0; i < step.start && processes.length < 50; i++) await world.join(1, 'answered')
  } else if ('pass' in step) await world.pass(step.pass)
  else if ('cut' in step) world.cut(step.cut)
  else if ('deliver' in step) await world.deliver(step.deliver)
  else if (processes.length === 0) return
  else if ('beat' in step) await processes[pick(step.beat)]!.register(step.outcome)
  else if ('kill' in step) processes.splice(pick(step.kill), 1)
  else await processes.splice(pick(step.leave), 1)[0]!.fleet.leave()
}

async function beatAll(world: World, rounds: number): Promise<void> {
  for (let i = 0; i < rounds; i++) {
    for (const process of world.processes) await process.register('answered')
    await world.pass(1000)
  }
}

describe('the shares of a fleet', () => {
  it('the shares of a fleet never add up to more than the limit, whichever processes join, leave, die or miss an answer', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 120 }), async steps => {
        const world = new World()
        for (const step of steps) {
          await take(world, step)
          for (const count of COUNTS) expect(world.total(count)).toBeLessThanOrEqual(count)
        }
      }),
      { numRuns: randomRuns(100) },
    )
  })

  it('the shares of a fleet add up to the whole limit when the processes have heard of each other', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 60 }), async steps => {
        const world = new World()
        for (const step of steps) await take(world, step)
        if (world.processes.length === 0) return
        await beatAll(world, 25)
        for (const count of COUNTS) expect(world.total(count)).toBe(count)
      }),
      { numRuns: randomRuns(34) },
    )
  })

  it.each([5, 8, 50])(
    'the shares of a fleet of %i processes that start together are the limit at most, at once and a second later',
    async n => {
      const world = new World()
      for (let i = 0; i < n; i++) {
        await world.join(1, 'answered')
        expect(world.total(500)).toBe(500)
      }
      for (const process of world.processes) {
        await process.register('answered')
        expect(world.total(500)).toBeLessThanOrEqual(500)
      }
      await beatAll(world, 1)
      expect(world.total(500)).toBe(500)
      expect(world.processes.map(({ fleet }) => fleet.part.size)).toEqual(Array(n).fill(n))
    },
  )

  it('a process that replaces one that has left gets its share at once', async () => {
    const world = new World()
    for (let i = 0; i < 3; i++) await world.join(1, 'answered')
    await beatAll(world, 2)
    await world.processes.pop()!.fleet.leave()
    await world.join(1, 'answered')
    expect(world.processes.at(-1)!.fleet).toMatchObject({ hasShare: true, part: { size: 3 } })
    expect(world.total(10)).toBe(10)
  })

  it('a process gets its share at once if the size of the fleet is configured', async () => {
    const world = new World()
    for (let i = 0; i < 3; i++) await world.join(3, 'answered')
    expect(world.total(10)).toBe(10)
  })
})
