import { expect, it } from 'vitest'
import { Sampler } from './sampler.ts'

/** Lets so many events pass in each second; returns how many were read, and what they stand for. */
function run(sampler: Sampler, perSecond: number, seconds: number, from = 0): { read: number; weight: number } {
  let [read, weight] = [0, 0]
  for (let second = 0; second < seconds; second++) {
    for (let event = 0; event < perSecond; event++) {
      if (!sampler.isNext()) continue
      read++
      weight += sampler.weigh((from + second) * 1000 + (event * 1000) / perSecond)
    }
  }
  return { read, weight }
}

it('every event is read as long as there are few', () => {
  const sampler = new Sampler(1000, 10_000)
  expect(run(sampler, 900, 5)).toEqual({ read: 4500, weight: 4500 })
  expect(sampler.coarsest(5000)).toBe(1)
})

it('of many events a bounded number is read, which stands for all of them', () => {
  const sampler = new Sampler(1000, 10_000)
  const { read, weight } = run(sampler, 100_000, 20)
  expect(read).toBeLessThan(20 * 2500)
  expect(Math.abs(weight / 2_000_000 - 1)).toBeLessThan(0.05)
  expect(sampler.coarsest(20_000)).toBeGreaterThanOrEqual(64)
})

it('after a flood every event is read again, and the coarse sample is remembered as long as it is shown', () => {
  const sampler = new Sampler(1000, 10_000)
  run(sampler, 50_000, 3)
  // one event in many is read until the next second
  run(sampler, 200, 4, 3)
  expect(run(sampler, 200, 1, 7)).toEqual({ read: 200, weight: 200 })
  expect([sampler.coarsest(8000) > 1, sampler.coarsest(14_000)]).toEqual([true, 1])
})
