import { countFault, textOf } from 'diana-limiter/gateway'
import { boundedReports } from '../telemetry/logging/bounded-reports.ts'

export interface SurviveOptions {
  /** Reports an error as one text. */
  readonly report: (text: string) => void
  readonly now?: () => number
}

/**
 * Handles an error that no listener, timer or stream has caught: it is reported and counted, and costs the call it belongs to, not
 * the whole process.
 */
export function surviveErrors({ report, now }: SurviveOptions): () => void {
  const reportBounded = boundedReports((error: unknown, leftOut) => {
    const more = leftOut === 0 ? '' : ` (and ${leftOut} others since the last report)`
    report(`an error that nothing has caught${more}: ${textOf(error)}`)
  }, now)
  const survive = (error: unknown): void => {
    countFault('uncaught')
    reportBounded(error)
  }
  process.on('uncaughtException', survive)
  process.on('unhandledRejection', survive)
  return () => {
    process.off('uncaughtException', survive)
    process.off('unhandledRejection', survive)
  }
}
