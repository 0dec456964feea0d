import type { Call, Limiter, Verdict } from 'diana-limiter'

export interface DecideWithin {
  readonly cost?: number | undefined
  /** The call may wait for this long by its rules. */
  readonly waitMs: number
  /** Ends when the proxy asks no longer. */
  readonly signal?: (() => AbortSignal) | undefined
}

/** Decides a call for a proxy that waits only for a while: a call that would have to wait for longer is refused. */
export function decideWithin(
  limiter: Limiter,
  call: Call,
  { cost = 1, waitMs, signal }: DecideWithin,
): Verdict | Promise<Verdict> {
  const end = (): AbortSignal => {
    const late = AbortSignal.timeout(waitMs)
    return signal === undefined ? late : AbortSignal.any([signal(), late])
  }
  const verdict = limiter.decide(call, cost === 1 ? { signal: end } : { cost, signal: end })
  if (!(verdict instanceof Promise)) return verdict
  return verdict.catch(async error => {
    if (signal?.().aborted || !isAbort(error)) throw error
    const [refused] = await limiter.decideTogether([{ call, cost }])
    return refused!
  })
}

function isAbort(error: unknown): boolean {
  const { name } = error as Error
  return name === 'AbortError' || name === 'TimeoutError'
}
