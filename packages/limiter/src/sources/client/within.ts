/** The time that a source may take to answer, beyond that of a long poll. */
export const TIMEOUT_MS = 10_000

/** Returns the result of `work`, or throws once `ms` have passed or the signal aborts, whichever comes first. */
export async function within<Result>(
  ms: number,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  signal.throwIfAborted()
  // AbortSignal.any would keep each call's signal alive as long as the outer one
  const controller = new AbortController()
  let timer: NodeJS.Timeout | undefined
  let stop = () => {}
  const stopped = new Promise<never>((_resolve, reject) => {
    stop = () => reject(new Error('ended by its signal'))
    timer = setTimeout(() => reject(new Error(`gave no answer within ${ms / 1000} s`)), ms)
    signal.addEventListener('abort', stop)
  })
  try {
    return await Promise.race([stopped, work(controller.signal)])
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', stop)
    controller.abort()
  }
}
