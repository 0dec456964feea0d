import { expect, it } from 'vitest'
import { StoreCalls } from './store-calls.ts'

function second(asked: number, decided: number, requests: number, decidedHere = 0) {
  return { asked, decidedHere, leases: { keys: 1, permits: 50, decided, requests } }
}

it('store calls per decision are those of the last minute, leases included', () => {
  const calls = new StoreCalls()
  expect(calls.perDecision).toBeUndefined()
  calls.write(1, second(0, 0, 0))
  expect(calls.perDecision).toBeUndefined()
  calls.write(2, second(10, 0, 0))
  expect(calls.perDecision).toBe(1)
  calls.write(3, second(5, 80, 4, 5))
  expect(calls.perDecision).toBeCloseTo(19 / 100)
  for (let i = 0; i < 60; i++) calls.write(4 + i, second(0, 100, 2))
  expect(calls.perDecision).toBeCloseTo(0.02)
})

it('store calls are forgotten when there is no store any more', () => {
  const calls = new StoreCalls()
  calls.write(1, second(10, 0, 0))
  expect(calls.newest?.leases.permits).toBe(50)
  calls.write(2, undefined)
  expect([calls.newest, calls.perDecision]).toEqual([undefined, undefined])
})
