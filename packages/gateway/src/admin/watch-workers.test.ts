import { createLimiter, type Limiter } from 'diana-limiter'
import { adminOf } from 'diana-limiter/admin'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { watchWorkers } from './watch-workers.ts'
import { type AdminQuestion, createWorkerAnswers } from './worker-answers.ts'

const rules = [{ id: 'each', by: 'ip', limit: '2/m' }] as const

let supervisor: Limiter
let workers: Limiter[]
let answers: ((question: AdminQuestion) => unknown)[]
beforeEach(async () => {
  supervisor = await createLimiter({ rules })
  workers = [await createLimiter({ rules }), await createLimiter({ rules })]
  answers = workers.map(createWorkerAnswers)
})
afterEach(async () => {
  for (const limiter of [supervisor, ...workers]) await limiter.close()
})

/** As between processes: all that passes is text. */
const plain = (value: unknown) => JSON.parse(JSON.stringify(value)) as never
const watch = () =>
  watchWorkers({
    workers: 2,
    limiter: supervisor,
    ask: (about, details) =>
      Promise.all(answers.map(async answer => plain(about === 'admin' ? await answer(plain(details)) : undefined))),
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
    const trial = (await processes.figures()).rules.find(({ id }) => id === 'each~trial')
    expect(trial).toMatchObject({ allowed: 2, shadowRefused: 1 })
    expect(adminOf(workers[1]).trials).toHaveLength(1)
    adminOf(supervisor).endTrial('each~trial')
    await processes.figures()
    expect(workers.map(worker => adminOf(worker).trials.length)).toEqual([0, 0])
  })
})
