// What exact counting in one place would have admitted of the same calls, given when each was judged: spans of
// microseconds, in order. Where a span leaves open whether there was room, there was none. One boolean per call.

export function idealPerWindow(spans, { count, periodUs }) {
  let [window, taken] = [0, 0]
  return spans.map(({ earliest, latest }) => {
    const current = Math.floor(earliest / periodUs)
    if (current > window) [window, taken] = [current, 0]
    return Math.floor(latest / periodUs) === current && ++taken <= count
  })
}

export function idealInAnyWindow(spans, { count, periodUs }) {
  const admitted = []
  return spans.map(({ earliest, latest }) => {
    const allowed = admitted.length < count || earliest - admitted[admitted.length - count] >= periodUs
    if (allowed) admitted.push(latest)
    return allowed
  })
}

/** A bucket of `burst`; a call may wait for as long as `ahead` calls take. */
export function idealBucket(spans, { count, periodUs, burst, ahead = 0 }) {
  const gapUs = periodUs / count
  let emptyAt = 0
  return spans.map(({ earliest, latest }) => {
    const waitUs = Math.max(emptyAt - earliest, 0) + gapUs - burst * gapUs
    const allowed = waitUs <= ahead * gapUs
    if (allowed) emptyAt = Math.max(emptyAt, latest) + gapUs
    return allowed
  })
}
