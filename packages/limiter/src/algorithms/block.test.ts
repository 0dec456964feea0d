import { describe, expect, it } from 'vitest'
import { blockMeter, firstBlockCost, growingBlockMeter } from './block.ts'

const SECOND = 1_000_000
const start = 1_794_712_345_678_901

describe('a block', () => {
  const state = new Float64Array(3)
  const at = 1
  const asked = (now: number) => [blockMeter.delay(state, at, now, 0), blockMeter.remaining(state, at, now)]

  it('a block refuses from when it is set until it ends, and a shorter one changes nothing', () => {
    expect(asked(start)).toEqual([0, 1])
    expect(blockMeter.idleAt(state, at)).toBe(0)
    expect(blockMeter.delay(state, at, start, 10_000)).toBe(0)
    blockMeter.take(state, at, start, 10_000, 0)
    expect(asked(start)).toEqual([10 * SECOND, 0])
    blockMeter.take(state, at, start + SECOND, 5000, 0)
    expect(asked(start + SECOND)).toEqual([9 * SECOND, 0])
    blockMeter.take(state, at, start + 2 * SECOND, 9000, 0)
    expect(asked(start + 2 * SECOND)).toEqual([9 * SECOND, 0])
    blockMeter.refund(state, at, start + 2 * SECOND, 9000, start)
    expect(asked(start + 11 * SECOND - 1)).toEqual([1, 0])
    expect(asked(start + 11 * SECOND)).toEqual([0, 1])
    expect(blockMeter.idleAt(state, at)).toBe(start + 11 * SECOND)
    expect([state[0], state[2]]).toEqual([0, 0])
  })

  it('blocks that are forgotten count no more when one is set by hand', () => {
    const meter = growingBlockMeter({ firstMs: 1000, factor: 2, maxMs: 60_000, forgetAfterMs: 10_000 })
    const fresh = new Float64Array(meter.slots)
    meter.take(fresh, 0, start, firstBlockCost(1000), 0)
    expect(meter.remaining(fresh, 0, start + SECOND)).toBe(2000)
    meter.take(fresh, 0, start + 11 * SECOND, 500, 0)
    expect(meter.remaining(fresh, 0, start + 12 * SECOND)).toBe(1000)
  })

  it('a conditional block leaves an active block unchanged, and begins once that has ended', () => {
    const fresh = new Float64Array(1)
    const left = (now: number) => blockMeter.delay(fresh, 0, now, 0)
    blockMeter.take(fresh, 0, start, firstBlockCost(6000), 0)
    blockMeter.take(fresh, 0, start + 5_999_999, firstBlockCost(6000), 0)
    expect(left(start + 5_999_999)).toBe(1)
    blockMeter.take(fresh, 0, start + 6 * SECOND, firstBlockCost(6000), 0)
    expect(left(start + 6 * SECOND)).toBe(6 * SECOND)
    blockMeter.take(fresh, 0, start + 6 * SECOND, 7000, 0)
    expect(left(start + 6 * SECOND)).toBe(7 * SECOND)
  })
})
