import fc from 'fast-check'
import { expect, it } from 'vitest'
import { Health } from '../address-state.ts'

const options = { failures: 2, restMs: 100 }

it('an address rests after so many failures in a row, and no sooner', () => {
  const health = new Health(options)
  health.fail(0)
  health.succeed(200)
  health.fail(1)
  expect(health.isResting(1)).toBe(false)
  health.fail(2)
  expect([health.isResting(2), health.isResting(101), health.isResting(102)]).toEqual([true, true, false])
})

it('one call tests a resting address, and no other is sent until it has ended', () => {
  const health = new Health(options)
  health.fail(0)
  health.fail(0)
  health.begin(100)
  expect(health.isResting(100)).toBe(true)
  health.succeed(200)
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
  health.succeed(200)
  health.fail(0)
  expect(health.isResting(0)).toBe(false)
})

it('health checks change the state of an address only after a number in a row, as a model predicts', () => {
  const bound = fc.integer({ min: 1, max: 4 })
  fc.assert(
    fc.property(bound, bound, fc.array(fc.boolean(), { maxLength: 60 }), (healthy, unhealthy, passes) => {
      const health = new Health({ ...options, check: { healthy, unhealthy } })
      let expected = true
      let changedAt = 0
      for (const [at, passed] of passes.entries()) {
        let changed = false
        health.onChange = () => {
          changed = true
        }
        health.check(at, passed ? undefined : 'status 500')
        const since = passes.slice(changedAt, at + 1)
        const last = since.slice(-(expected ? unhealthy : healthy))
        const isLong = last.length === (expected ? unhealthy : healthy)
        const changes = isLong && last.every(one => one !== expected)
        expect(changed).toBe(changes)
        if (changes) {
          expected = !expected
          changedAt = at + 1
        }
        expect(health.isResting(at)).toBe(!expected)
        expect(health.state(at).state).toBe(expected ? 'healthy' : 'unhealthy')
      }
    }),
  )
})

it('an address is new again when it has come back from a rest or from failed checks', () => {
  const health = new Health({ ...options, check: { healthy: 1, unhealthy: 1 } })
  expect(health.healthySince).toBe(Number.NEGATIVE_INFINITY)
  health.fail(0)
  health.succeed(10)
  expect(health.healthySince).toBe(Number.NEGATIVE_INFINITY)
  health.fail(20)
  health.fail(20, 'connect ECONNREFUSED')
  expect(health.state(50)).toEqual({ state: 'resting', forMs: 30, restMs: 70, why: 'connect ECONNREFUSED' })
  health.succeed(130)
  expect(health.healthySince).toBe(130)
  health.check(200, 'no answer')
  expect(health.state(200)).toEqual({ state: 'unhealthy', forMs: 0, why: 'no answer' })
  health.check(300, undefined)
  expect([health.healthySince, health.isResting(300)]).toEqual([300, false])
})

it('a change of state is reported once: when calls stay away, and when they come again', () => {
  const health = new Health({ ...options, check: { healthy: 1, unhealthy: 1 } })
  const states: string[] = []
  health.onChange = ({ state, why }) => states.push(why === undefined ? state : `${state}: ${why}`)
  for (let now = 0; now < 1000; now += 100) health.fail(now, 'reset')
  health.succeed(2000)
  health.succeed(2000)
  health.check(3000, undefined)
  health.check(3000, 'status 500')
  health.check(3000, 'status 500')
  health.check(3000, undefined)
  expect(states).toEqual(['resting: reset', 'healthy', 'unhealthy: status 500', 'healthy'])
})
