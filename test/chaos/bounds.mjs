/** How many calls too many passed a bound; `calls` have a `start`, an `end`, and if they hold a slot a `released`. */
export function overBound(calls, bound) {
  if (bound.held !== undefined) return mostHeld(calls) - bound.held
  if (bound.perMs !== undefined) return overRate(calls, bound)
  return mostWithin(calls, bound.periodMs) - bound.calls
}

const byStart = (a, b) => a.start - b.start

/** The most calls surely within one period: each was judged between its start and its end. */
function mostWithin(calls, periodMs) {
  const sorted = calls.toSorted(byStart)
  let most = 0
  for (let from = 0; from < sorted.length; from++) {
    const until = sorted[from].start + periodMs
    let inside = 0
    for (let at = from; at < sorted.length && sorted[at].start < until; at++) if (sorted[at].end <= until) inside++
    most = Math.max(most, inside)
  }
  return most
}

/** The most calls that surely held a slot at one moment: from when each knew of it until it gave it back. */
function mostHeld(calls) {
  const changes = calls.flatMap(({ end, released }) => [
    { at: end, by: 1 },
    { at: released, by: -1 },
  ])
  let held = 0
  let most = 0
  for (const { by } of changes.sort((a, b) => a.at - b.at || a.by - b.by)) {
    held += by
    most = Math.max(most, held)
  }
  return most
}

/** The most calls surely within any interval, less what a rate saves and brings meanwhile. */
export function overRate(calls, { perMs, burst }) {
  const byEnd = calls.toSorted((a, b) => a.end - b.end)
  let most = 0
  for (const { start } of calls) {
    let inside = 0
    for (const call of byEnd) {
      if (call.start < start) continue
      inside++
      most = Math.max(most, inside - burst - perMs * (call.end - start))
    }
  }
  return Math.floor(most + 1e-6)
}
