import { describe, expect, it } from 'vitest'
import { ClockSteps } from './clock-steps.ts'

describe('the clock of a store', () => {
  it('a clock has not stepped as long as one difference between the clocks explains all answers', () => {
    const steps = new ClockSteps()
    expect(steps.observe(1_000_000, 100, 101)).toBe(0)
    expect(steps.observe(1_000_050, 149, 152)).toBe(0)
    // an answer that this process has read 4 s late
    expect(steps.observe(1_000_100, 200, 4200)).toBe(0)
    expect(steps.observe(1_004_200, 4299, 4301)).toBe(0)
  })

  it('a clock has stepped if no difference explains two answers in a row', () => {
    const steps = new ClockSteps()
    steps.observe(10_000_000, 100, 101)
    expect(steps.observe(10_000_000 - 3_600_000, 200, 202)).toBe(-3_600_099)
    expect(steps.observe(10_000_100 - 3_600_000, 300, 301)).toBe(0)
    expect(steps.observe(10_000_200, 400, 401)).toBe(3_599_999)
  })

  it('a clock may drift by a thousandth while nothing is asked', () => {
    const steps = new ClockSteps()
    steps.observe(0, 0, 1)
    expect(steps.observe(3_600_000 + 3000, 3_600_000, 3_600_001)).toBe(0)
    expect(steps.observe(3_600_000 + 9000, 3_600_100, 3_600_101)).toBeGreaterThan(5000)
  })
})
