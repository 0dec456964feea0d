import { warnOnce } from './warn-once.ts'

/** The number of places that are counted by name; they are named in the code, never by a caller. */
const MOST_PLACES = 200

const counts = new Map<string, number>()

/**
 * Counts an error of Diana's own that was caught in the background, and reports the first one of each place. `place` is a fixed name:
 * one for each object would let a caller fill the log.
 */
export function reportFault(place: string, error: unknown): void {
  countFault(place)
  warnOnce('DIANA_BACKGROUND_FAILED', `${place}: ${textOf(error)}`, place)
}

/** Counts an error that is reported elsewhere. */
export function countFault(place: string): void {
  if (counts.has(place) || counts.size < MOST_PLACES) counts.set(place, (counts.get(place) ?? 0) + 1)
}

/** Returns the errors of this process since its start, by place. */
export function faultCounts(): Readonly<Record<string, number>> {
  return Object.fromEntries(counts)
}

/** Returns the stack of an error, or the text of whatever was thrown. */
export function textOf(error: unknown): string {
  try {
    return error instanceof Error ? (error.stack ?? error.message) : String(error)
  } catch {
    return 'an error that cannot be printed'
  }
}
