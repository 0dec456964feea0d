import { expect, it } from 'vitest'
import { Health } from './health.ts'

const options = { failures: 2, restMs: 100 }

it('an address rests after so many failures in a row, and no sooner', () => {
  const health = new Health(options)
  health.fail(0)
  health.succeed()
  health.fail(1)
  expect(health.isResting(1)).toBe(false)
  health.fail(2)
  expect([health.isResting(2), health.isResting(101), health.isResting(102)]).toEqual([true, true, false])
})

it('one call tries it, and the others stay away until that one has ended', () => {
  const health = new Health(options)
  health.fail(0)
  health.fail(0)
  health.begin(100)
  expect(health.isResting(100)).toBe(true)
  health.succeed()
  expect(health.isResting(100)).toBe(false)
})

it('rests grow to sixteen times the first, and success ends them', () => {
  const health = new Health(options)
  health.fail(0)
  const rests: number[] = []
  for (let now = 1, i = 0; i < 7; i++) {
    health.fail(now)
    let end = now
    while (health.isResting(end)) end += 100
    rests.push(end - now)
    now = end
  }
  expect(rests).toEqual([100, 200, 400, 800, 1600, 1600, 1600])
  health.succeed()
  health.fail(0)
  expect(health.isResting(0)).toBe(false)
})
