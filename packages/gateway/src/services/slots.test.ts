import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { Slots, type SlotUser } from './slots.ts'

class User implements SlotUser {
  state: 'new' | 'waiting' | 'holding' | 'refused' | 'evicted' | 'done' = 'new'
  stalled = 0
  readonly #slots: Slots

  constructor(slots: Slots) {
    this.#slots = slots
  }

  take(): this {
    this.state = 'waiting'
    this.#slots.take(this)
    return this
  }

  leave(): void {
    this.state = 'done'
    this.#slots.release(this)
  }

  onSlot(): void {
    this.state = 'holding'
  }

  onNoSlot(): void {
    this.state = 'refused'
  }

  stalledMs(): number {
    return this.stalled
  }

  evict(): void {
    this.state = 'evicted'
    this.#slots.release(this)
  }
}

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

describe('slots of a service', () => {
  const settings = { max: 2, queueSize: 2, queueMs: 1000 }

  test('calls beyond the bound wait in order, calls beyond the queue are refused at once', () => {
    const slots = new Slots(settings)
    const users = Array.from({ length: 5 }, () => new User(slots).take())
    expect(users.map(user => user.state)).toEqual(['holding', 'holding', 'waiting', 'waiting', 'refused'])
    users[1]!.leave()
    expect(users.map(user => user.state)).toEqual(['holding', 'done', 'holding', 'waiting', 'refused'])
  })

  test('a call that waits too long is refused, and one that leaves the queue takes no slot', () => {
    const slots = new Slots(settings)
    const [first, , third, fourth] = Array.from({ length: 4 }, () => new User(slots).take())
    third!.leave()
    vi.advanceTimersByTime(999)
    expect(fourth!.state).toBe('waiting')
    vi.advanceTimersByTime(1)
    expect(fourth!.state).toBe('refused')
    first!.leave()
    expect([slots.inUse, slots.waiting]).toEqual([1, 0])
  })

  test('a call stalled by its caller gives its slot to a waiting one, the longest stalled first', () => {
    const slots = new Slots(settings)
    const [first, second] = [new User(slots).take(), new User(slots).take()]
    first.stalled = 1500
    second.stalled = 3000
    const third = new User(slots).take()
    vi.advanceTimersByTime(1)
    expect([first.state, second.state, third.state]).toEqual(['holding', 'evicted', 'holding'])
  })

  test('a call that is not stalled keeps its slot while others wait', () => {
    const slots = new Slots({ ...settings, queueMs: 5000 })
    const holders = [new User(slots).take(), new User(slots).take()]
    holders[0]!.stalled = 900
    const third = new User(slots).take()
    vi.advanceTimersByTime(900)
    expect(third.state).toBe('waiting')
    holders[0]!.stalled = 1000
    vi.advanceTimersByTime(101)
    expect(third.state).toBe('holding')
  })

  test('no order of moves lets more than the bound hold a slot, loses one, or leaves a free slot while calls wait', () => {
    const move = fc.record({
      what: fc.constantFrom('take', 'leave', 'stall', 'wait'),
      which: fc.nat(20),
      ms: fc.nat(600),
    })
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 4 }),
        fc.nat(3),
        fc.array(move, { maxLength: 80 }),
        (max, queueSize, moves) => {
          const slots = new Slots({ max, queueSize, queueMs: 700 })
          const users: User[] = []
          for (const { what, which, ms } of moves) {
            const user = users[which % Math.max(users.length, 1)]
            if (what === 'take') users.push(new User(slots).take())
            else if (what === 'leave' && user && ['holding', 'waiting'].includes(user.state)) user.leave()
            else if (what === 'stall' && user) user.stalled = ms * 4
            else if (what === 'wait') vi.advanceTimersByTime(ms)
            const holding = users.filter(one => one.state === 'holding').length
            const waiting = users.filter(one => one.state === 'waiting').length
            expect([slots.inUse, slots.waiting]).toEqual([holding, waiting])
            expect(holding).toBeLessThanOrEqual(max)
            expect(waiting === 0 || holding === max).toBe(true)
          }
          for (const user of users) if (['holding', 'waiting'].includes(user.state)) user.leave()
          expect([slots.inUse, slots.waiting]).toEqual([0, 0])
        },
      ),
      { numRuns: 200 },
    )
  })
})
