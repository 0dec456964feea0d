/** How many unexpected errors a process outlives within a minute; beyond that its state cannot be trusted. */
const maxErrors = 100
const windowMs = 60_000

export interface SurviveOptions {
  /** Where each error is reported, as one text. */
  readonly report: (text: string) => void
  /** Ends the process when there are too many. */
  readonly giveUp: () => void
  readonly now?: () => number
}

/**
 * The last resort: an error that no listener, timer or stream has caught is reported and costs the call it belongs to, not the
 * whole process. A process in which they do not end is better started again.
 */
export function surviveErrors({ report, giveUp, now = performance.now.bind(performance) }: SurviveOptions): () => void {
  const moments: number[] = []
  const survive = (error: unknown): void => {
    const at = now()
    while (moments.length > 0 && at - moments[0]! > windowMs) moments.shift()
    moments.push(at)
    report(`an error that nothing has caught: ${textOf(error)}`)
    if (moments.length > maxErrors) giveUp()
  }
  process.on('uncaughtException', survive)
  process.on('unhandledRejection', survive)
  return () => {
    process.off('uncaughtException', survive)
    process.off('unhandledRejection', survive)
  }
}

function textOf(error: unknown): string {
  try {
    return error instanceof Error ? (error.stack ?? error.message) : String(error)
  } catch {
    return 'an error that cannot be printed'
  }
}
