import type { Limiter } from 'diana-limiter'

/** What a supervisor may ask a worker about; the answer is plain values, and undefined where it fails. */
export const questions: Readonly<Record<string, (limiter: Limiter, details: unknown) => unknown>> = {
  status: limiter => limiter.status(),
}

export async function answerQuestion(limiter: Limiter, about: string, details: unknown): Promise<unknown> {
  try {
    return await questions[about]?.(limiter, details)
  } catch {
    return undefined
  }
}
