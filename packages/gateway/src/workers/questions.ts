import type { Limiter } from 'diana-limiter'
import { type AdminQuestion, createWorkerAnswers } from '../admin/worker-answers.ts'
import { readUpstreams } from '../upstreams/reports.ts'

type Answering = (question: AdminQuestion) => unknown

const answering = new WeakMap<Limiter, Answering>()

/** What a supervisor may ask a worker about; the answer is plain values, and undefined where it fails. */
export const questions: Readonly<Record<string, (limiter: Limiter, details: unknown) => unknown>> = {
  status: limiter => limiter.status(),
  upstreams: limiter => readUpstreams(limiter),
  /** Asked for the first time, a worker begins to remember what it takes to answer. */
  admin: (limiter, details) => {
    const answer = answering.get(limiter) ?? createWorkerAnswers(limiter)
    answering.set(limiter, answer)
    return answer(details as AdminQuestion)
  },
}

export async function answerQuestion(limiter: Limiter, about: string, details: unknown): Promise<unknown> {
  try {
    return await questions[about]?.(limiter, details)
  } catch {
    return undefined
  }
}
