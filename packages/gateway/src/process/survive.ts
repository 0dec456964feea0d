import { countFault, textOf } from 'diana-limiter/gateway'

/** The errors of a minute that are reported; the others are counted. */
const mostReports = 10
const windowMs = 60_000

export interface SurviveOptions {
  /** Reports an error as one text. */
  readonly report: (text: string) => void
  readonly now?: () => number
}

/**
 * Handles an error that no listener, timer or stream has caught: it is reported and counted, and costs the call it belongs to, not
 * the whole process.
 */
export function surviveErrors({ report, now = performance.now.bind(performance) }: SurviveOptions): () => void {
  let windowAt = Number.NEGATIVE_INFINITY
  let reports = 0
  let unreported = 0
  const survive = (error: unknown): void => {
    countFault('uncaught')
    const at = now()
    if (at - windowAt >= windowMs) {
      windowAt = at
      reports = 0
    }
    if (++reports > mostReports) {
      unreported++
      return
    }
    const more = unreported === 0 ? '' : ` (and ${unreported} others since the last report)`
    unreported = 0
    report(`an error that nothing has caught${more}: ${textOf(error)}`)
  }
  process.on('uncaughtException', survive)
  process.on('unhandledRejection', survive)
  return () => {
    process.off('uncaughtException', survive)
    process.off('unhandledRejection', survive)
  }
}
