import { AsyncLocalStorage } from 'node:async_hooks'
import { setImmediate as turn } from 'node:timers/promises'
import { randomRuns } from '@test/random-runs'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { RateLimiter } from '../pacing/rate-limiter.ts'
import { type Gate, JobQueue, type Passage } from './job-queue.ts'

const START = Date.UTC(2026, 0, 1)

beforeEach(() => {
  vi.useFakeTimers({ now: START, toFake: ['setTimeout', 'clearTimeout', 'Date'] })
})
afterEach(() => {
  vi.useRealTimers()
})

function rated(perSecond: number, concurrency?: number): RateLimiter {
  return RateLimiter.create(perSecond, { clock: Date.now, maxBurst: '1ms', concurrency })
}

/** A job that reports when it began. */
function noting(begun: string[], name: string): () => string {
  return () => {
    begun.push(`${name} ${Date.now() - START}`)
    return name
  }
}

describe('schedule', () => {
  it('jobs begin in order of priority, and of arrival within one priority', async () => {
    const limiter = rated(1)
    const begun: string[] = []
    const jobs = [
      limiter.schedule(noting(begun, 'first')),
      limiter.schedule(noting(begun, 'low'), { priority: -1 }),
      limiter.schedule(noting(begun, 'plain')),
      limiter.schedule(noting(begun, 'high'), { priority: 5 }),
      limiter.schedule(noting(begun, 'plain too'), { priority: 0 }),
      limiter.schedule(noting(begun, 'high too'), { priority: 5 }),
    ]
    await vi.advanceTimersByTimeAsync(10_000)
    await Promise.all(jobs)
    expect(begun).toEqual(['first 0', 'high 1000', 'high too 2000', 'plain 3000', 'plain too 4000', 'low 5000'])
  })

  it('100,000 jobs of random priorities all begin, sorted by priority and then by arrival', async () => {
    let isOpen = false
    const queue = new JobQueue({ take: () => (isOpen ? { end: () => {} } : Number.POSITIVE_INFINITY), width: 1 })
    const begun: (readonly [number, number])[] = []
    const jobs = Array.from({ length: 100_000 }, (_, i) => {
      const priority = (i * 7919) % 13
      return queue.schedule(() => void begun.push([priority, i]), { priority })
    })
    expect(queue.waiting).toBe(100_000)
    isOpen = true
    queue.reconsider()
    await Promise.all(jobs)
    const sorted = begun.toSorted((one, other) => other[0] - one[0] || one[1] - other[1])
    expect(begun.every((one, i) => one === sorted[i])).toBe(true)
    expect(queue.waiting).toBe(0)
  })

  it('a heavy job makes the next one wait for its weight', async () => {
    const limiter = rated(1)
    const begun: string[] = []
    void limiter.schedule(noting(begun, 'heavy'), { weight: 3 })
    void limiter.schedule(noting(begun, 'light'))
    await vi.advanceTimersByTimeAsync(3000)
    expect(begun).toEqual(['heavy 0', 'light 3000'])
  })

  it('a result, a thrown error and a rejection reach the caller, and the queue goes on', async () => {
    const limiter = rated(1000, 1)
    const results = Promise.allSettled([
      limiter.schedule(() => 1),
      limiter.schedule(() => {
        throw new Error('thrown')
      }),
      limiter.schedule(async () => {
        throw new Error('rejected')
      }),
      limiter.limit((one: number, two: number) => one + two, 1, 2),
    ])
    await vi.advanceTimersByTimeAsync(100)
    expect((await results).map(one => (one.status === 'fulfilled' ? one.value : String(one.reason)))).toEqual([
      1,
      'Error: thrown',
      'Error: rejected',
      3,
    ])
    expect([limiter.jobs.running, limiter.jobs.waiting]).toEqual([0, 0])
  })

  it('a job runs with the AsyncLocalStorage of its caller, also after a wait', async () => {
    const storage = new AsyncLocalStorage<string>()
    const limiter = rated(1)
    const seen: unknown[] = []
    for (const name of ['ann', 'bob']) void storage.run(name, () => limiter.limit(() => seen.push(storage.getStore())))
    await vi.advanceTimersByTimeAsync(2000)
    expect(seen).toEqual(['ann', 'bob'])
  })

  it('concurrency bounds the jobs that run, with a rate and without', async () => {
    for (const limiter of [rated(1e6, 2), RateLimiter.create(Number.POSITIVE_INFINITY, { concurrency: 2 })]) {
      let most = 0
      const work = async (): Promise<void> => {
        most = Math.max(most, limiter.jobs.running)
        await new Promise(resolve => setTimeout(resolve, 10))
      }
      const jobs = Array.from({ length: 9 }, () => limiter.limit(work))
      await vi.advanceTimersByTimeAsync(100)
      await Promise.all(jobs)
      expect(most).toBe(2)
    }
  })

  it('invalid jobs reject with a remedy', async () => {
    const limiter = rated(1)
    await expect(limiter.schedule(5 as never)).rejects.toThrow('a job must be a function')
    await expect(limiter.schedule(() => 1, { weight: 0 })).rejects.toThrow('weight must be a whole number of 1 or more')
    await expect(limiter.schedule(() => 1, { priority: Number.NaN })).rejects.toThrow('priority must be a number')
    await expect(limiter.schedule(() => 1, { signal: {} as never })).rejects.toThrow('signal must be an AbortSignal')
    expect(() => RateLimiter.create(1, { concurrency: 0 })).toThrow('concurrency must be a whole number')
    expect(() => RateLimiter.create(Number.POSITIVE_INFINITY)).toThrow('permits per second')
  })

  it('a new rate holds for the jobs that wait', async () => {
    const limiter = rated(0.001)
    const begun: string[] = []
    for (const name of ['a', 'b', 'c']) void limiter.schedule(noting(begun, name))
    limiter.setRate(10)
    // the permit of the first job is paid off at the old rate
    await vi.advanceTimersByTimeAsync(1_000_200)
    expect(begun).toEqual(['a 0', 'b 1000000', 'c 1000100'])
  })
})

describe('a signal', () => {
  it('a signal that is aborted already rejects, and the job does not begin', async () => {
    const limiter = rated(1)
    await expect(limiter.schedule(() => 1, { signal: AbortSignal.abort('late') })).rejects.toBe('late')
    expect(limiter.jobs.waiting).toBe(0)
  })

  it('a job that waits leaves the queue, takes no permit, and those behind it move up', async () => {
    const limiter = rated(1)
    const begun: string[] = []
    const leaving = new AbortController()
    void limiter.schedule(noting(begun, 'first'))
    const gone = limiter.schedule(noting(begun, 'gone'), { signal: leaving.signal, weight: 50 })
    void limiter.schedule(noting(begun, 'behind'))
    leaving.abort('left')
    await expect(gone).rejects.toBe('left')
    await vi.advanceTimersByTimeAsync(1000)
    expect(begun).toEqual(['first 0', 'behind 1000'])
  })

  it('one signal ends the wait of a thousand jobs with one listener', async () => {
    const limiter = rated(1)
    const all = new AbortController()
    const added = vi.spyOn(all.signal, 'addEventListener')
    const jobs = Array.from({ length: 1000 }, () => limiter.schedule(() => 1, { signal: all.signal }))
    await jobs[0]
    all.abort('all')
    const ended = await Promise.allSettled(jobs)
    expect(ended.filter(({ status }) => status === 'rejected')).toHaveLength(999)
    expect(added).toHaveBeenCalledTimes(1)
    expect(limiter.jobs.waiting).toBe(0)
  })

  it('a job that has begun gets its signal, and ends as its function says', async () => {
    const limiter = rated(1)
    const leaving = new AbortController()
    const job = limiter.schedule(
      ({ signal }) => new Promise(resolve => signal?.addEventListener('abort', () => resolve('cleaned up'))),
      { signal: leaving.signal },
    )
    leaving.abort()
    expect(await job).toBe('cleaned up')
  })

  it('a job that is aborted while the gate is being asked does not run, and its place is freed', async () => {
    let answer: (passage: Passage) => void = () => {}
    const ended: boolean[] = []
    const gate: Gate = { take: () => new Promise(resolve => (answer = resolve)), width: 1 }
    const queue = new JobQueue(gate)
    const leaving = new AbortController()
    let ran = false
    const job = queue.schedule(
      () => {
        ran = true
      },
      { signal: leaving.signal },
    )
    leaving.abort('left')
    answer({ end: failed => void ended.push(failed) })
    await expect(job).rejects.toBe('left')
    expect([ran, ended, queue.waiting]).toEqual([false, [true], 0])
  })
})

describe('a gate that fails', () => {
  it('a gate that throws or rejects for one job rejects that job, and is asked for the next one', async () => {
    let asked = 0
    const gate: Gate = {
      take: () => {
        asked++
        if (asked === 1) throw new Error('thrown')
        if (asked === 2) return Promise.reject(new Error('rejected'))
        return { end: () => {} }
      },
      width: 1,
    }
    const queue = new JobQueue(gate)
    const ended = await Promise.allSettled([queue.limit(() => 1), queue.limit(() => 2), queue.limit(() => 3)])
    expect(ended.map(one => (one.status === 'fulfilled' ? one.value : String(one.reason)))).toEqual([
      'Error: thrown',
      'Error: rejected',
      3,
    ])
  })
})

it('jobs begin in order although the answers of the gate come in another one, or refuse the first', async () => {
  const answers: ((passage: Passage) => void)[] = []
  const queue = new JobQueue({ take: () => new Promise(resolve => answers.push(resolve)), width: 3 })
  const begun: number[] = []
  const jobs = [0, 1, 2, 3].map(i => queue.schedule(() => void begun.push(i)))
  await turn()
  const granted = { end: () => {} }
  expect(answers).toHaveLength(3)
  answers[0]!(Number.POSITIVE_INFINITY)
  answers[2]!(granted)
  answers[1]!(granted)
  for (let i = 0; i < 10 && begun.length < 4; i++) {
    await turn()
    queue.reconsider()
    for (const answer of answers.splice(3)) answer(granted)
  }
  await Promise.all(jobs)
  expect(begun).toEqual([0, 1, 2, 3])
})

describe('the life of a queue', () => {
  it('drain resolves when no job waits or runs', async () => {
    const limiter = rated(1)
    let isDrained = false
    await limiter.drain()
    const jobs = [limiter.limit(() => 1), limiter.limit(() => new Promise(resolve => setTimeout(resolve, 500)))]
    void limiter.drain().then(() => {
      isDrained = true
    })
    await vi.advanceTimersByTimeAsync(1400)
    expect(isDrained).toBe(false)
    await vi.advanceTimersByTimeAsync(100)
    await Promise.all(jobs)
    await turn()
    expect(isDrained).toBe(true)
  })

  it('drain resolves when the last job is aborted', async () => {
    const queue = new JobQueue({ take: () => Number.POSITIVE_INFINITY, width: 1 })
    const leaving = new AbortController()
    const job = queue.schedule(() => 1, { signal: leaving.signal })
    const drained = queue.drain()
    leaving.abort('left')
    await expect(job).rejects.toBe('left')
    await drained
  })

  it('events report what happens to jobs', async () => {
    const limiter = rated(1)
    const seen: string[] = []
    for (const name of ['queued', 'started', 'done', 'failed', 'empty', 'idle'] as const) {
      limiter.events.on(name, () => seen.push(name))
    }
    const jobs = Promise.allSettled([limiter.limit(() => 1), limiter.limit(() => Promise.reject(new Error('no')))])
    await vi.advanceTimersByTimeAsync(1000)
    await jobs
    expect(seen).toEqual(['started', 'done', 'idle', 'queued', 'empty', 'started', 'failed', 'idle'])
  })

  it('close rejects the jobs that wait and those that come, and lets the others end', async () => {
    const limiter = rated(1)
    const running = limiter.limit(() => new Promise(resolve => setTimeout(() => resolve('ended'), 100)))
    const waiting = limiter.limit(() => 'never')
    await limiter.close()
    await expect(waiting).rejects.toMatchObject({ code: 'CLOSED' })
    await expect(limiter.limit(() => 1)).rejects.toMatchObject({ code: 'CLOSED' })
    await vi.advanceTimersByTimeAsync(100)
    expect(await running).toBe('ended')
  })

  it('pause holds jobs back, resume lets them begin, and clear rejects them', async () => {
    const limiter = RateLimiter.create(Number.POSITIVE_INFINITY, { concurrency: 5 })
    limiter.jobs.pause()
    const job = limiter.limit(() => 'ran')
    await turn()
    expect(limiter.jobs.waiting).toBe(1)
    limiter.jobs.resume()
    expect(await job).toBe('ran')
    limiter.jobs.pause()
    const removed = limiter.limit(() => 'never')
    expect(limiter.jobs.clear('removed')).toBe(1)
    await expect(removed).rejects.toBe('removed')
  })
})

describe('no job is lost', () => {
  it('a listener that throws stops no job, and its error is thrown on its own', async () => {
    const queue = new JobQueue({ take: () => ({ end: () => {} }), width: 1 })
    const thrown: unknown[] = []
    const microtask = vi.spyOn(globalThis, 'queueMicrotask').mockImplementation(run => {
      try {
        run()
      } catch (error) {
        thrown.push((error as Error).message)
      }
    })
    for (const name of ['queued', 'started', 'done', 'failed', 'empty', 'idle'] as const) {
      queue.events.on(name, () => {
        throw new Error(name)
      })
    }
    queue.pause()
    const jobs = [1, 2].map(i => queue.limit(() => (i === 2 ? Promise.reject(new Error('two')) : i)))
    queue.resume()
    const ended = await Promise.allSettled(jobs)
    microtask.mockRestore()
    expect(ended.map(({ status }) => status)).toEqual(['fulfilled', 'rejected'])
    expect([queue.running, queue.waiting]).toEqual([0, 0])
    expect([...new Set(thrown)].sort()).toEqual(['done', 'empty', 'failed', 'idle', 'queued', 'started'])
  })

  it('clear and close reject jobs for which the gate is being asked, and their permits go to other jobs or back', async () => {
    const answers: ((passage: Passage) => void)[] = []
    const queue = new JobQueue({ take: () => new Promise(resolve => answers.push(resolve)), width: 2 })
    const ended = Promise.allSettled([1, 2, 3].map(i => queue.limit(() => i)))
    await turn()
    expect([answers.length, queue.waiting]).toEqual([2, 3])
    expect(queue.clear('gone')).toBe(3)
    const late = queue.limit(() => 'late')
    let refunds = 0
    const granted = { end: () => {}, cancel: () => void refunds++ }
    answers[0]!(granted)
    expect(await late).toBe('late')
    answers[1]!(granted)
    await queue.drain()
    await turn()
    expect(refunds).toBe(1)
    for (const one of await ended) expect(one).toEqual({ status: 'rejected', reason: 'gone' })
    expect([queue.running, queue.waiting]).toEqual([0, 0])
  })

  it('each job settles once, whatever happens at whatever moment, and only those that begin use permits', async () => {
    const event = fc.oneof(
      {
        weight: 6,
        arbitrary: fc.record({
          do: fc.constant('add' as const),
          priority: fc.nat(3),
          weight: fc.nat(1),
          how: fc.nat(3),
        }),
      },
      { weight: 6, arbitrary: fc.record({ do: fc.constant('answer' as const), which: fc.nat(5), how: fc.nat(5) }) },
      { weight: 3, arbitrary: fc.record({ do: fc.constant('abort' as const), which: fc.nat(20) }) },
      { weight: 3, arbitrary: fc.record({ do: fc.constant('end' as const), which: fc.nat(5) }) },
      {
        weight: 2,
        arbitrary: fc.record({
          do: fc.constantFrom('pause' as const, 'resume' as const, 'reconsider' as const, 'turn' as const),
        }),
      },
      { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('clear' as const, 'close' as const) }) },
    )
    await fc.assert(
      fc.asyncProperty(fc.array(event, { maxLength: 60 }), fc.integer({ min: 1, max: 4 }), async (events, width) => {
        let [granted, ended, refunded, begun] = [0, 0, 0, 0]
        const grant = () => {
          granted++
          return { end: () => void ended++, cancel: () => void refunded++ }
        }
        const asked: { answer(passage: Passage): void; fail(error: Error): void }[] = []
        const queue = new JobQueue({
          take: () => new Promise((answer, fail) => asked.push({ answer, fail })),
          width,
        })
        const running: (() => void)[] = []
        const jobs: Promise<unknown>[] = []
        const aborts: AbortController[] = []
        for (const one of events) {
          if (one.do === 'add') {
            const { signal } = aborts[aborts.push(new AbortController()) - 1]!
            const work = (): unknown => {
              begun++
              if (one.how === 0) throw new Error('thrown')
              return one.how === 1 ? 'done' : new Promise<void>(resolve => running.push(resolve))
            }
            const job = queue.schedule(work, { priority: one.priority, weight: one.weight + 1, signal })
            job.catch(() => {})
            jobs.push(job)
          } else if (one.do === 'answer' && asked.length > 0) {
            const [{ answer, fail }] = asked.splice(one.which % asked.length, 1) as [(typeof asked)[number]]
            if (one.how === 0) fail(new Error('store'))
            else answer(one.how === 1 ? 5 : one.how === 2 ? Number.POSITIVE_INFINITY : grant())
          } else if (one.do === 'abort') aborts[one.which % Math.max(1, aborts.length)]?.abort('left')
          else if (one.do === 'end') running.splice(one.which % Math.max(1, running.length), 1)[0]?.()
          else if (one.do === 'clear') queue.clear('cleared')
          else if (one.do === 'close') queue.close(new Error('closed'))
          else if (one.do === 'turn') await turn()
          else if (one.do !== 'answer') queue[one.do]()
        }
        // in the end the gate lets all pass, and all end
        queue.resume()
        for (let i = 0; i < 500 && queue.running + queue.waiting + asked.length > 0; i++) {
          for (const { answer } of asked.splice(0)) answer(grant())
          for (const end of running.splice(0)) end()
          queue.reconsider()
          await turn()
        }
        await Promise.all([queue.drain(), Promise.allSettled(jobs)])
        expect([queue.running, queue.waiting]).toEqual([0, 0])
        expect(granted).toBe(ended + refunded)
        expect(ended).toBe(begun)
      }),
      { numRuns: randomRuns(200) },
    )
  })
})
