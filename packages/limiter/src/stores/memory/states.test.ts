import { randomRuns } from '@test/random-runs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Meter } from '../../algorithms/algorithm.ts'
import { tokenBucket } from '../../algorithms/token-bucket.ts'
import { localCharge, MemoryStore } from './memory-store.ts'
import { layOut } from './migrate-states.ts'
import { States } from './states.ts'

const NOON = 1_794_744_000_000_000

/** A meter that adds up into some of its numbers; the rest of the meter is not asked. */
function meterOf(slots: number, coreSlots: number | undefined): Meter {
  return { slots, memory: { coreSlots }, migrate: { scale: [slots] } } as unknown as Meter
}

describe('states of which some numbers are not always stored', () => {
  const levels = fc.array(fc.constantFrom(meterOf(4, 2), meterOf(3, undefined), meterOf(5, 1)), {
    minLength: 1,
    maxLength: 3,
  })
  const number = fc.constantFrom(0, 0, 1, 2.5, -7)
  const moves = fc.array(fc.tuple(fc.nat(40), fc.constantFrom('write', 'write', 'clear', 'copy', 'inherit'), number), {
    maxLength: 60,
  })

  it('states with optional numbers read like whole arrays, after any writes, copies and changes', () => {
    const property = fc.property(levels, moves, (meters, moves) => {
      const layout = layOut(meters)
      let states = new States(layout, 3)
      const plain = Array.from({ length: 41 }, () => new Float64Array(layout.stride))
      for (let slot = 0; slot < 41; slot++) if (!states.hasChunk(slot)) states.addChunk(slot)
      for (const [slot, move, value] of moves) {
        const other = (slot * 7) % 41
        if (move === 'clear') {
          states.clear(slot)
          plain[slot]!.fill(0)
        } else if (move === 'copy') {
          states.copy(slot, other)
          plain[other]!.set(plain[slot]!)
        } else if (move === 'inherit') {
          states = states.inherit(layOut([...meters]), NOON)
        } else {
          const state = states.state(slot)
          meters.forEach(({ slots, memory }, level) => {
            const coreSlots = memory?.coreSlots ?? slots
            for (let i = 0; i < slots; i++) {
              const isSpare = i >= coreSlots && value <= 0
              const at = layout.offsets[level]! + i
              plain[slot]![at] = isSpare ? 0 : value + i
              state[states.base(slot) + at] = plain[slot]![at]!
            }
          })
        }
        const seen = states.state(other).slice(states.base(other), states.base(other) + layout.stride)
        expect(seen).toEqual(plain[other])
      }
      plain.forEach((expected, slot) => {
        const base = states.base(slot)
        expect(states.state(slot).slice(base, base + layout.stride)).toEqual(expected)
      })
    })
    fc.assert(property, { numRuns: randomRuns(125) })
  })
})

describe('a bucket in memory', () => {
  const KEYS = 50_000
  // nothing is freed while memory is measured
  const kept: MemoryStore[] = []

  /** The bytes of typed arrays that a key takes after calls at these moments. */
  function bytesPerKey(moments: readonly number[]): number {
    const store = new MemoryStore()
    kept.push(store)
    const meter = tokenBucket.meter({ count: 60, periodMs: 60_000 }, {})
    const charge = { ...localCharge(store.createTable('rule', [meter])), cost: 1 }
    const before = process.memoryUsage().arrayBuffers
    for (const moment of moments) {
      for (let i = 0; i < KEYS; i++) {
        charge.key = `caller-${i}`
        store.take([charge], 1, moment)
      }
    }
    return (process.memoryUsage().arrayBuffers - before) / KEYS
  }

  it('a bucket in memory stores two numbers for a key that owes for one call', () => {
    expect(bytesPerKey([NOON])).toBeLessThan(24)
  })

  it('a bucket in memory stores two numbers for a key whose calls were paid before the next came', () => {
    expect(bytesPerKey([NOON, NOON + 1_000_000, NOON + 3_000_000])).toBeLessThan(24)
  })

  it('a bucket in memory stores low points beside them only while several calls are owed for', () => {
    expect(bytesPerKey([NOON, NOON + 500_000])).toBeGreaterThan(64)
  })
})
