import { describe, expect, it } from 'vitest'
import { FreeSlots } from './free-slots.ts'

describe('free slots', () => {
  it('free slots are reused once each, the last first', () => {
    const free = new FreeSlots()
    for (let slot = 1; slot <= 5000; slot++) free.push(slot)
    for (let slot = 5000; slot > 2000; slot--) expect(free.pop()).toBe(slot)
    free.push(7777)
    expect(free.pop()).toBe(7777)
    for (let slot = 2000; slot >= 1; slot--) expect(free.pop()).toBe(slot)
    expect([free.pop(), free.pop()]).toEqual([undefined, undefined])
  })
})
