/** The reports of a minute that are made; the others are counted. */
const mostReports = 10
const windowMs = 60_000

/** Makes at most ten reports a minute, each with the number of those that were left out before it. */
export function boundedReports<T>(
  report: (subject: T, leftOut: number) => void,
  now: () => number = performance.now.bind(performance),
): (subject: T) => void {
  let windowAt = Number.NEGATIVE_INFINITY
  let reports = 0
  let leftOut = 0
  return subject => {
    const at = now()
    if (at - windowAt >= windowMs) {
      windowAt = at
      reports = 0
    }
    if (++reports > mostReports) {
      leftOut++
      return
    }
    const before = leftOut
    leftOut = 0
    report(subject, before)
  }
}
