import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { Deadline, TooLate, within } from './deadline.ts'

function waiterOf(told: string[], name: string) {
  return { isAnswered: false, late: () => told.push(name) }
}

describe('a deadline', () => {
  it('tells everybody who has waited in vain, once, and nobody else', async () => {
    const told: string[] = []
    const deadline = new Deadline(20)
    const answered = waiterOf(told, 'answered')
    for (const waiter of [answered, waiterOf(told, 'first'), waiterOf(told, 'second')]) deadline.add(waiter)
    answered.isAnswered = true
    await pause(10)
    expect(told).toEqual([])
    deadline.add(waiterOf(told, 'third'))
    await expect.poll(() => told).toEqual(['first', 'second', 'third'])
    await pause(40)
    expect(told).toHaveLength(3)
  })

  it('does not blame others for a process that was busy: an answer that has come is read first', async () => {
    const told: string[] = []
    const deadline = new Deadline(5)
    const waiter = waiterOf(told, 'late')
    deadline.add(waiter)
    // the answer is there before the timer, and both are seen when the process has time again
    setTimeout(() => {
      waiter.isAnswered = true
    }, 6)
    const until = performance.now() + 20
    while (performance.now() < until);
    await pause(30)
    await nextTurn()
    expect(told).toEqual([])
  })

  it('for one answer rejects what comes too late, and keeps what comes in time', async () => {
    await expect(within(new Promise(() => {}), 5)).rejects.toThrow(TooLate)
    await expect(within(Promise.resolve(7), 5)).resolves.toBe(7)
    await expect(within(Promise.reject(new Error('no')), 5)).rejects.toThrow('no')
  })
})
