/** The clocks of a zone change in the same way every year. */
const LOOKED_AHEAD_US = 400 * 86_400e6
const known = new WeakMap<object, readonly number[]>()

/** Returns the moments at which the periods of a calendar begin from now on: those of more than a year, and at least four. */
export function startsFrom(startOf: (at: number) => number, longestUs: number, nowUs: number): readonly number[] {
  const found = known.get(startOf)
  if (found !== undefined) return found
  const starts = [startOf(nowUs)]
  const until = nowUs + Math.max(LOOKED_AHEAD_US, 4 * longestUs)
  // no period is shorter than a step
  for (let at = nowUs; at < until; at += longestUs * 0.4) {
    const start = startOf(Math.round(at))
    if (start !== starts.at(-1)) starts.push(start)
  }
  known.set(startOf, starts)
  return starts
}
