import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { BulkQueue } from './bulk-queue.ts'

describe('the queue of large transfers', () => {
  test('the queue of large transfers continues each of 100 transfers in the order they joined, a few per turn of the event loop', async () => {
    const queue = new BulkQueue()
    const continued: number[] = []
    for (let at = 0; at < 100; at++) queue.join(() => continued.push(at))
    const perTurn: number[] = []
    while (continued.length < 100) {
      const before = continued.length
      await nextTurn()
      perTurn.push(continued.length - before)
    }
    expect(continued).toEqual(Array.from({ length: 100 }, (_, at) => at))
    expect(Math.max(...perTurn)).toBeLessThanOrEqual(16)
  })

  test('a transfer that joins again waits behind those that have not had their turn', async () => {
    const queue = new BulkQueue()
    const order: string[] = []
    queue.join(() => {
      order.push('first')
      queue.join(() => order.push('first again'))
    })
    queue.join(() => order.push('second'))
    for (let turn = 0; turn < 5; turn++) await nextTurn()
    expect(order).toEqual(['first', 'second', 'first again'])
  })

  test('a transfer that takes long leaves the rest of the turn to other work', async () => {
    const queue = new BulkQueue()
    let continued = 0
    const busy = (): void => {
      continued++
      const until = performance.now() + 5
      while (performance.now() < until);
    }
    for (let at = 0; at < 3; at++) queue.join(busy)
    await nextTurn()
    expect(continued).toBe(1)
  })
})
