import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { OpenReservations } from './open-reservations.ts'

const item = (holdUs: number, until: number) => ({ holdUs, until })

describe('open reservations', () => {
  it('open reservations end in the order of their ends, whatever their holds', () => {
    const times = fc.array(fc.record({ hold: fc.constantFrom(5, 50, 500), gap: fc.nat(20), settles: fc.boolean() }))
    fc.assert(
      fc.property(times, fc.nat(600), (made, later) => {
        const open = new OpenReservations<ReturnType<typeof item>>()
        let now = 0
        const kept = made.flatMap(({ hold, gap, settles }) => {
          now += gap
          const one = item(hold, now + hold)
          open.add(one)
          if (!settles) return [one]
          expect([open.delete(one), open.delete(one)]).toEqual([true, false])
          return []
        })
        const end = now + later
        const expected = kept.filter(({ until }) => until <= end).sort((a, b) => a.until - b.until)
        expect(open.dueAt).toBeLessThanOrEqual(Math.min(...kept.map(({ until }) => until)))
        expect(open.takeEnded(end)).toEqual(expected)
        expect(open.size).toBe(kept.length - expected.length)
        expect(open.takeEnded(end)).toEqual([])
      }),
    )
  })

  it('reservations with the same end expire in the order in which they were made', () => {
    const open = new OpenReservations<ReturnType<typeof item>>()
    const [short, first, second] = [item(5, 5), item(50, 50), item(5, 50)]
    for (const one of [short, first, second]) open.add(one)
    expect(open.takeEnded(50)).toEqual([short, first, second])
  })

  it('open reservations are bounded: of too many, the one that ends first is not followed any more', () => {
    const open = new OpenReservations<ReturnType<typeof item>>(2)
    const [late, early, last] = [item(100, 100), item(10, 11), item(100, 102)]
    expect([open.add(late), open.add(early), open.add(last)]).toEqual([undefined, undefined, early])
    expect(open.takeEnded(1000)).toEqual([late, last])
  })
})
