/** A time without end: 30 years, which stores can count, and longer than any duration. */
export const FOREVER_MS: number = 30 * 365 * 86_400_000

/** The word for it. */
export const FOREVER = 'forever'

const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }
/** The text of a duration: a whole number and a unit. */
export const DURATION_PATTERN: RegExp = /^(\d{1,12})(ms|s|m|h|d)$/
const MAX_MS = 366 * 86_400_000

/** Reads `100ms`, `10s`, `5m`, `1h`, `7d` as milliseconds; undefined for anything else, and beyond 1ms to 366d. */
export function parseDuration(text: string): number | undefined {
  const [, digits, unit] = DURATION_PATTERN.exec(text) ?? []
  return inBounds(Number(digits) * unitMs[unit ?? '']!)
}

/** Writes milliseconds in the largest unit without a remainder: 60000 is `1m`, 1500 is `1500ms`. */
export function formatDuration(ms: number): string {
  const [unit, size] = Object.entries(unitMs).findLast(([, size]) => ms >= size && ms % size === 0) ?? ['ms', 1]
  return `${ms / size}${unit}`
}

const spellings: readonly (readonly [RegExp, number])[] = [
  [/^(?:ms|msecs?|millis|milliseconds?)$/i, 1],
  [/^(?:s|secs?|seconds?)$/i, 1000],
  [/^(?:m|mins?|minutes?)$/i, 60_000],
  [/^(?:h|hrs?|hours?)$/i, 3_600_000],
  [/^(?:d|days?)$/i, 86_400_000],
  [/^(?:w|weeks?)$/i, 7 * 86_400_000],
]

/** Guesses what a person meant by something close to a duration: `5 sec` is `5s`, `1.5s` is `1500ms`, `hour` is `1h`. */
export function guessDuration(text: string): string | undefined {
  const [, digits, word] = /^ {0,3}(\d{0,12}(?:\.\d{1,6})?) {0,3}([a-z]{1,12}) {0,3}$/i.exec(text) ?? []
  const [, size] = spellings.find(([spelling]) => spelling.test(word ?? '')) ?? []
  const ms = size === undefined ? undefined : inBounds(Math.round(Number(digits || 1) * size))
  return ms === undefined ? undefined : formatDuration(ms)
}

function inBounds(ms: number): number | undefined {
  return ms >= 1 && ms <= MAX_MS ? ms : undefined
}

/** Says what is wrong with a value that is not a duration. */
export function durationFault(input: unknown): string {
  const guess = typeof input === 'string' ? guessDuration(input) : undefined
  if (guess !== undefined) return `"${input}" is not a duration: did you mean ${guess}?`
  if (typeof input === 'number' && inBounds(input)) return `${input} has no unit: write ${input}ms or ${input}s`
  return 'must be a duration from 1ms to 366d, a whole number with a unit: 100ms, 10s, 5m, 1h or 7d'
}
