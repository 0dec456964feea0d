import { Session } from 'node:inspector/promises'
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { TooLate, within } from '../../common/within.ts'
import { Deadline, type PendingAnswer } from './deadline.ts'

function start(timeoutMs: number, silentMs = timeoutMs * 5) {
  const told: string[] = []
  const deadline = new Deadline({ timeoutMs, silentMs, onSilent: () => told.push('silent') })
  const wait = (name: string): PendingAnswer => {
    const waiter = {
      isAnswered: false,
      dueTick: 0,
      askedAt: 0,
      late: () => told.push(`${name} is late`),
      giveUp: () => told.push(`${name} is given up`),
    }
    deadline.add(waiter)
    return waiter
  }
  const answer = (waiter: PendingAnswer): void => {
    waiter.isAnswered = true
    deadline.heard()
  }
  return { told, deadline, wait, answer }
}

function stall(ms: number): void {
  for (const until = performance.now() + ms; performance.now() < until; );
}

describe('a deadline', () => {
  it('a deadline reports every call whose answer is late, once, and no other', async () => {
    const { told, wait, answer } = start(20)
    const answered = wait('answered')
    const waiting = [wait('first'), wait('second')]
    answer(answered)
    await pause(5)
    expect(told).toEqual([])
    waiting.push(wait('third'))
    await expect.poll(() => told).toEqual(['first is late', 'second is late', 'third is late'])
    waiting.forEach(answer)
    await pause(40)
    expect(told).toHaveLength(3)
  })

  it('a deadline keeps only a few answered calls in memory', async () => {
    const { wait, answer } = start(60_000)
    const waiters = Array.from({ length: 2000 }, (_, i) => {
      const waiter = wait(`call ${i}`)
      answer(waiter)
      return new WeakRef(waiter)
    })
    await nextTurn()
    const session = new Session()
    session.connect()
    await session.post('HeapProfiler.collectGarbage')
    session.disconnect()
    expect(waiters.filter(waiter => waiter.deref() !== undefined).length).toBeLessThan(100)
  })

  it('a deadline reads an answer that has arrived while this process was busy before it counts the answer as late', async () => {
    const { told, wait, answer } = start(5)
    const waiter = wait('one')
    // the answer is there before the timer, and both are seen when the process has time again
    setTimeout(() => answer(waiter), 6)
    stall(20)
    await pause(30)
    await nextTurn()
    expect(told).toEqual([])
  })

  it('a deadline does not count the time in which this process was stalled', async () => {
    const { told, wait, answer } = start(40)
    const waiter = wait('one')
    stall(300)
    await pause(10)
    expect(told).toEqual([])
    answer(waiter)
    await expect(
      within(
        pause(10).then(() => stall(100)),
        40,
      ),
    ).resolves.toBeUndefined()
  })

  it('a deadline reports a store that answers nothing, and gives up all calls that wait for it', async () => {
    const { told, wait } = start(10, 40)
    wait('one')
    await pause(20)
    wait('other')
    await expect.poll(() => told).toContain('other is given up')
    expect(told.filter(word => word === 'silent')).toHaveLength(1)
    expect(told.slice(told.indexOf('silent'))).toEqual(['silent', 'one is given up', 'other is given up'])
  })

  it('a deadline gives up a call whose answer does not come, though other calls are answered', async () => {
    const { told, wait, deadline } = start(10, 40)
    wait('one')
    for (let i = 0; i < 40 && told.length < 2; i++) {
      deadline.heard()
      await pause(5)
    }
    expect(told).toEqual(['one is late', 'one is given up'])
  })

  it('a deadline for one answer rejects a late answer, and keeps one in time', async () => {
    await expect(within(new Promise(() => {}), 5)).rejects.toThrow(TooLate)
    await expect(within(Promise.resolve(7), 5)).resolves.toBe(7)
    await expect(within(Promise.reject(new Error('no')), 5)).rejects.toThrow('no')
  })
})
