import type { Limiter } from 'diana-limiter'
import { ProcessReporter } from '../../admin/services/process-report.ts'
import { type AdminQuestion, createWorkerAnswers } from '../../admin/worker-answers.ts'
import { readUpstreams } from '../../telemetry/server-reports.ts'
import type { ServerProcess } from '../server-program.ts'

type AskedGateway = Pick<ServerProcess, 'limiter' | 'httpStats'>
type Answering = (question: AdminQuestion) => unknown

const answering = new WeakMap<Limiter, Answering>()
const reporters = new WeakMap<Limiter, ProcessReporter>()

/** The questions of a supervisor to a worker; an answer is plain values, and undefined if the question fails. */
export const questions: Readonly<Record<string, (gateway: AskedGateway, details: unknown) => unknown>> = {
  status: ({ limiter }) => limiter.status(),
  upstreams: ({ limiter }) => readUpstreams(limiter),
  http: gateway => gateway.httpStats(),
  /** Asked for the first time, a worker begins to measure itself. */
  process: ({ limiter }) => {
    const reporter = reporters.get(limiter) ?? new ProcessReporter(limiter)
    reporters.set(limiter, reporter)
    return reporter.read()
  },
  /** Asked for the first time, a worker begins to remember what it takes to answer. */
  admin: ({ limiter }, details) => {
    const answer = answering.get(limiter) ?? createWorkerAnswers(limiter)
    answering.set(limiter, answer)
    return answer(details as AdminQuestion)
  },
}

export async function answerQuestion(gateway: AskedGateway, about: string, details: unknown): Promise<unknown> {
  try {
    return await questions[about]?.(gateway, details)
  } catch {
    return undefined
  }
}
