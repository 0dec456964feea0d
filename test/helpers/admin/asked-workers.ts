import type { Limiter } from 'diana-limiter'
import type { WorkerAsking } from '../../../packages/gateway/src/admin/watch-workers.ts'
import { createWorkerAnswers } from '../../../packages/gateway/src/admin/worker-answers.ts'

/** Limiters of this process as the workers of a supervisor: as between processes, all that passes is text. */
export function askedWorkers(limiter: Limiter, workers: readonly Limiter[]): WorkerAsking {
  const answers = workers.map(createWorkerAnswers)
  const plain = (value: unknown) => JSON.parse(JSON.stringify(value))
  const askEach = async (about: string, details: unknown) => {
    if (about !== 'admin') return []
    return await Promise.all(
      answers.map(async (answer, at) => ({ pid: at + 1, answer: plain(await answer(plain(details))) })),
    )
  }
  return {
    workers: workers.length,
    limiter,
    pids: workers.map((_, at) => at + 1),
    askEach,
    ask: async (about, details) => (await askEach(about, details)).map(({ answer }) => answer),
  }
}
