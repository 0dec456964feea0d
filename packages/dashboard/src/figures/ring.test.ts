import { describe, expect, it } from 'vitest'
import { Ring, SECONDS } from './ring.ts'

const counts = (allowed: number, refused = 0) => ({ allowed, refused, waited: 0, shadowRefused: 0 })
const now = 1_800_000_000

describe('a ring of seconds', () => {
  it('a ring of seconds returns what was written, and zeros for other seconds', () => {
    const ring = new Ring()
    ring.write(now, counts(3, 1))
    expect(ring.at(now, 'allowed')).toBe(3)
    expect(ring.at(now, 'refused')).toBe(1)
    expect(ring.at(now - 1, 'allowed')).toBe(0)
    expect(ring.at(now + 1, 'allowed')).toBe(0)
  })

  it('a ring of seconds has zeros for seconds without an event, also after it wrapped around', () => {
    const ring = new Ring()
    for (let second = now; second < now + SECONDS; second++) ring.write(second, counts(1))
    ring.write(now + SECONDS + 9, counts(5))
    const last = now + SECONDS + 9
    expect(ring.window(last, 12, 'allowed')).toEqual([1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5])
    expect(ring.sum(last, SECONDS, 'allowed')).toBe(SECONDS - 10 + 5)
  })

  it('a ring of seconds forgets what is older than it remembers', () => {
    const ring = new Ring()
    ring.write(now, counts(7))
    ring.write(now + 10 * SECONDS, counts(1))
    expect(ring.sum(now + 10 * SECONDS, SECONDS, 'allowed')).toBe(1)
    expect(ring.at(now, 'allowed')).toBe(0)
    ring.write(now, counts(9))
    expect(ring.sum(now + 10 * SECONDS, SECONDS, 'allowed')).toBe(1)
  })

  it('a ring of seconds takes a history, and a shorter one after a restart removes nothing', () => {
    const ring = new Ring()
    const series = (allowed: number[]) => {
      const zeros = allowed.map(() => 0)
      return { allowed, refused: zeros, waited: zeros, shadowRefused: zeros }
    }
    ring.fill(now, series([1, 2, 3]))
    expect(ring.window(now, 3, 'allowed')).toEqual([1, 2, 3])
    ring.fill(now + 2, series([0, 0, 0, 0, 4]))
    expect(ring.window(now + 2, 5, 'allowed')).toEqual([1, 2, 3, 0, 4])
  })

  it('a ring of seconds keeps the end of a history that is longer than it', () => {
    const ring = new Ring()
    const allowed = Array.from({ length: SECONDS + 50 }, (_, index) => index)
    const zeros = allowed.map(() => 0)
    ring.fill(now, { allowed, refused: zeros, waited: zeros, shadowRefused: zeros })
    expect(ring.window(now, 2, 'allowed')).toEqual([SECONDS + 48, SECONDS + 49])
    expect(ring.at(now - SECONDS, 'allowed')).toBe(0)
  })
})
