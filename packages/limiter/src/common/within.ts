/** The most ticks that a timeout is divided into; a short one has fewer, since ticks of a busy machine are longer than asked for. */
const MOST_TICKS = 8
const LEAST_TICK_MS = 5

/** Returns the number of ticks of a timer after which an answer is late. */
export function ticksOf(ms: number): number {
  return Math.min(MOST_TICKS, Math.max(1, Math.floor(ms / LEAST_TICK_MS)))
}

/** An answer was not there in time. */
export class TooLate extends Error {
  constructor(ms: number) {
    super(`no answer within ${ms} ms`)
  }
}

/** Awaits an answer for `ms` of time in which this process could have read it. */
export async function within<T>(answer: Promise<T>, ms: number): Promise<T> {
  return await new Promise((resolve, reject) => {
    let left = ticksOf(ms)
    const tickMs = ms / left
    let timer: NodeJS.Timeout | undefined
    let isOver = false
    const arm = (): void => {
      timer = setTimeout(() => setImmediate(look), tickMs)
    }
    const look = (): void => {
      if (isOver) return
      if (--left > 0) arm()
      else reject(new TooLate(ms))
    }
    arm()
    void answer.then(resolve, reject).finally(() => {
      isOver = true
      clearTimeout(timer)
    })
  })
}
