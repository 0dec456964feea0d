import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { StepRing } from './step-ring.ts'

const now = 1_800_000_000
const create = (length = 4) => new StepRing(new Float64Array(length))

describe('a ring of steps', () => {
  it('a ring of steps returns what was written, and zeros for other steps', () => {
    const ring = create()
    ring.write(now, 3)
    expect([now - 1, now, now + 1].map(step => ring.at(step))).toEqual([0, 3, 0])
  })

  it('steps that were passed are empty, also after the ring wrapped around', () => {
    const ring = create()
    for (let step = now; step < now + 4; step++) ring.write(step, 1)
    ring.write(now + 5, 7)
    expect(ring.read(now + 5, 6)).toEqual([0, 0, 1, 1, 0, 7])
  })

  it('a step that is older than all that are kept is ignored', () => {
    const ring = create()
    ring.write(now, 1)
    ring.write(now - 3, 5)
    ring.write(now - 4, 9)
    expect(ring.read(now, 5)).toEqual([0, 5, 0, 0, 1])
  })

  it('an empty step may differ from 0, and adds nothing to sums', () => {
    const ring = new StepRing(new Float64Array(3), { empty: Number.NaN })
    ring.write(now, 0)
    ring.add(now + 2, 4)
    expect(ring.read(now + 2, 3)).toEqual([0, Number.NaN, 4])
    expect([ring.sum(now + 2, 3), ring.sum(now + 2, 1)]).toEqual([4, 4])
  })

  it('steps may be negative, and a cleared ring begins again at any step', () => {
    const ring = create()
    ring.write(-2, 1)
    ring.write(-1, 2)
    expect(ring.read(0, 4)).toEqual([0, 1, 2, 0])
    ring.clear()
    ring.write(-9, 5)
    expect([ring.sum(-9, 4), ring.at(-1)]).toEqual([5, 0])
  })

  it('a ring of steps equals a list of all that was added', () => {
    const move = fc.record({ step: fc.integer({ min: -3, max: 7 }), more: fc.integer({ min: 0, max: 9 }) })
    fc.assert(
      fc.property(fc.array(move), moves => {
        const ring = new StepRing(new Uint32Array(5))
        const added = new Map<number, number>()
        let newest = now
        for (const { step, more } of moves) {
          const at = newest + step
          ring.add(at, more)
          if (added.size === 0 || at > newest - 5) added.set(at, (added.get(at) ?? 0) + more)
          newest = added.size === 1 ? at : Math.max(newest, at)
        }
        const known = (at: number) => (at > newest - 5 ? (added.get(at) ?? 0) : 0)
        const expected = Array.from({ length: 8 }, (_, index) => known(newest - 7 + index))
        expect(ring.read(newest, 8)).toEqual(expected)
        expect(ring.sum(newest, 5)).toBe(expected.reduce((sum, one) => sum + one, 0))
      }),
    )
  })
})

it('a ring of seconds keeps its length over gaps and clocks that are set back', () => {
  const ring = new StepRing(new Float64Array(10))
  ring.write(100, 1)
  ring.write(105, 2)
  ring.write(101, 4)
  expect([ring.sum(105, 10), ring.at(103), ring.at(106)]).toEqual([7, 0, 0])
  ring.write(90, 100)
  ring.write(112, 8)
  expect([ring.sum(112, 10), ring.at(105), ring.at(101)]).toEqual([10, 2, 0])
  ring.write(5000, 1)
  expect(ring.sum(5000, 10)).toBe(1)
})
