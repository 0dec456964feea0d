import { describe, expect, it } from 'vitest'
import { Throttle } from './throttle.ts'

const settings = { ratio: 2, windowMs: 10_000 }

describe('throttling of calls to a service in trouble', () => {
  it('the throttle refuses nothing while the service accepts at least half of the calls', () => {
    const throttle = new Throttle(settings)
    for (let i = 0; i < 1000; i++) {
      expect(throttle.refuses(i, 0)).toBe(false)
      if (i % 2 === 0) throttle.accepted(i)
    }
  })

  it('the throttle sends ever fewer calls to a service that accepts none, but some', () => {
    const throttle = new Throttle(settings)
    let sent = 0
    for (let i = 0; i < 10_000; i++) if (!throttle.refuses(1, (i * 0.6180339887) % 1)) sent++
    expect(sent).toBeGreaterThan(10)
    expect(sent).toBeLessThan(200)
  })

  it('the throttle opens again within the window once the service accepts calls', () => {
    const throttle = new Throttle(settings)
    for (let i = 0; i < 500; i++) throttle.refuses(1, 0.5)
    expect(throttle.chance(1)).toBeGreaterThan(0.9)
    expect(throttle.chance(10_100)).toBe(0)
  })

  it('the throttle is the formula of the SRE book beyond the first calls', () => {
    const throttle = new Throttle(settings)
    for (let i = 0; i < 110; i++) throttle.refuses(1, 1)
    for (let i = 0; i < 20; i++) throttle.accepted(1)
    expect(throttle.chance(1)).toBeCloseTo((110 - 2 * 20 - 10) / 111, 10)
  })
})
