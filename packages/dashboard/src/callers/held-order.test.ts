import { describe, expect, it } from 'vitest'
import { holdOrder } from './held-order.ts'

const row = (id: string, calls = 0) => ({ id, calls })

describe('rows under the pointer', () => {
  it('rows keep their places and none disappears while the pointer is over them, with new numbers', () => {
    const before = [row('a', 1), row('b', 2), row('c', 3)]
    const rows = [row('c', 9), row('d', 8), row('a', 7)]
    expect(holdOrder(before, rows, true)).toEqual([row('a', 7), row('b', 2), row('c', 9), row('d', 8)])
  })

  it('rows follow their order when the pointer is elsewhere', () => {
    expect(holdOrder([row('a')], [row('b'), row('a')], false)).toEqual([row('b'), row('a')])
  })
})
