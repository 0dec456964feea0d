import { createLimiter, type Limiter } from 'diana-limiter'
import { adminOf } from 'diana-limiter/admin'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { watchWorkers } from './watch-workers.ts'
import { type AdminQuestion, createWorkerAnswers } from './worker-answers.ts'

const rules = [{ id: 'each', by: 'ip', limit: '2/m' }] as const

let supervisor: Limiter
let workers: Limiter[]
let answers: ((question: AdminQuestion) => unknown)[]
let pids: number[]
let silent: Set<number>
beforeEach(async () => {
  supervisor = await createLimiter({ rules })
  workers = [await createLimiter({ rules }), await createLimiter({ rules })]
  answers = workers.map(createWorkerAnswers)
  pids = [101, 102]
  silent = new Set()
})
afterEach(async () => {
  for (const limiter of [supervisor, ...workers]) await limiter.close()
})

/** As between processes: all that passes is text. */
const plain = (value: unknown) => JSON.parse(JSON.stringify(value)) as never
/** Those that are silent do not answer in time. */
const asked = async (about: string, details: unknown): Promise<{ pid: number; answer: unknown }[]> =>
  answers
    .map((answer, at) => ({ pid: pids[at]!, answer: plain(about === 'admin' ? answer(plain(details)) : undefined) }))
    .filter(({ pid }) => !silent.has(pid))
const watch = () =>
  watchWorkers({
    workers: 2,
    limiter: supervisor,
    ask: async (about, details) => (await asked(about, details)).map(({ answer }) => answer),
    askEach: async (about, details) => await asked(about, details),
    get pids() {
      return pids
    },
  })

const call = (worker: number, ip: string) => workers[worker]!.check({ method: 'GET', path: '/', ip })

describe('the workers of a supervisor', () => {
  it('the workers of a supervisor are reported as one process', async () => {
    const processes = watch()
    await processes.figures()
    for (let i = 0; i < 4; i++) await call(0, '203.0.113.1')
    for (let i = 0; i < 3; i++) await call(1, '203.0.113.1')
    await call(1, '203.0.113.2')
    const { total, rules } = await processes.figures()
    expect(total).toMatchObject({ allowed: 5, refused: 3 })
    expect(rules).toMatchObject([{ id: 'each', allowed: 5, refused: 3 }])
    expect(await processes.takeLoads()).toEqual(new Map([['each', 1]]))
    expect(await processes.callers({ count: 5, refused: true })).toMatchObject([
      { key: '203.0.113.1', refused: 3, missed: 0 },
    ])
    expect(await processes.refusals({ count: 5 })).toHaveLength(3)
    expect(await processes.recentCalls()).toHaveLength(8)
  })

  it('the workers of a supervisor run its trials, and so does a new worker', async () => {
    const processes = watch()
    adminOf(supervisor).startTrial('each', 'id: each\nby: ip\nlimit: 1/m')
    await processes.figures()
    await call(0, '203.0.113.1')
    await call(0, '203.0.113.1')
    workers[1] = await createLimiter({ rules })
    answers[1] = createWorkerAnswers(workers[1])
    pids = [101, 103]
    const trial = (await processes.figures()).rules.find(({ id }) => id === 'each~trial')
    expect(trial).toMatchObject({ allowed: 2, shadowRefused: 1 })
    expect(adminOf(workers[1]).trials).toHaveLength(1)
    adminOf(supervisor).endTrial('each~trial')
    await processes.figures()
    expect(workers.map(worker => adminOf(worker).trials.length)).toEqual([0, 0])
  })

  it('counts do not decrease when a worker is late, is replaced, or another one gets its number', async () => {
    const processes = watch()
    const total = async () => (await processes.figures()).total.allowed
    for (const ip of ['203.0.113.1', '203.0.113.2', '203.0.113.3']) await call(0, ip)
    await call(1, '203.0.113.1')
    expect(await total()).toBe(4)
    silent.add(101)
    await call(1, '203.0.113.2')
    expect(await total()).toBe(5)
    silent.clear()
    expect(await total()).toBe(5)
    const replace = async (pid: number) => {
      await workers[0]!.close()
      workers[0] = await createLimiter({ rules })
      answers[0] = createWorkerAnswers(workers[0])
      pids = [pid, 102]
    }
    await replace(103)
    await call(0, '203.0.113.1')
    expect(await total()).toBe(6)
    await call(0, '203.0.113.2')
    expect(await total()).toBe(7)
    await replace(103)
    await call(0, '203.0.113.1')
    expect(await total()).toBe(8)
    expect((await processes.figures()).rules).toMatchObject([{ id: 'each', allowed: 8, waiting: 0 }])
  })
})
