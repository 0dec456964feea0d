// How far calls went over a limit. When Redis judged a call is known as a span [earliest, latest] of its own clock, in
// microseconds; only what no choice of moments within the spans can explain counts as over.

/** How many calls too many passed in the worst of the windows that begin at whole multiples of the period. */
export function overPerWindow(spans, { count, periodUs }) {
  const windowOf = moment => Math.floor(moment / periodUs)
  const taken = new Map()
  const add = window => taken.set(window, (taken.get(window) ?? 0) + 1)
  for (const { earliest, latest } of spans.filter(span => windowOf(span.earliest) === windowOf(span.latest))) {
    add(windowOf((earliest + latest) / 2))
  }
  // whoever may belong to more than one window is put where there is still room
  const straddling = spans.filter(span => windowOf(span.earliest) !== windowOf(span.latest))
  for (const { earliest, latest } of straddling.toSorted((a, b) => a.latest - b.latest)) {
    let window = windowOf(earliest)
    while (window < windowOf(latest) && (taken.get(window) ?? 0) >= count) window++
    add(window)
  }
  return Math.max(0, ...[...taken.values()].map(calls => calls - count))
}

/** How many calls too many passed in the worst interval shorter than the period. */
export function overInAnyWindow(spans, { count, periodUs }) {
  const { earliest, latest } = inOrder(spans)
  let over = 0
  let last = 0
  for (const [first, start] of earliest.entries()) {
    while (last < latest.length && latest[last] < start + periodUs) last++
    over = Math.max(over, last - first - count)
  }
  return over
}

/** How many calls more than `burst` + rate · t passed in the worst interval t. */
export function overBucket(spans, { count, periodUs, burst }) {
  const { earliest, latest } = inOrder(spans)
  const perUs = count / periodUs
  const origin = earliest[0] ?? 0
  let over = 0
  let best = Number.NEGATIVE_INFINITY
  for (const [i, start] of earliest.entries()) {
    best = Math.max(best, (start - origin) * perUs - i)
    over = Math.max(over, i + 1 - (latest[i] - origin) * perUs + best - burst)
  }
  // what is left of doubles at this size is far less than a millionth of a call
  return Math.max(0, Math.ceil(over - 1e-6))
}

/** How many calls too many were under way at the worst moment; each surely was from `from` to `to`. */
export function overAtOnce(stays, { count }) {
  const moves = stays
    .filter(({ from, to }) => to > from)
    .flatMap(({ from, to }) => [
      [from, 1],
      [to, -1],
    ])
  let [held, most] = [0, 0]
  for (const [, by] of moves.sort((a, b) => a[0] - b[0] || a[1] - b[1])) {
    held += by
    most = Math.max(most, held)
  }
  return Math.max(0, most - count)
}

/** The n-th call to pass did so no earlier than the n-th `earliest` and no later than the n-th `latest`. */
function inOrder(spans) {
  const sorted = side => Float64Array.from(spans, side).sort()
  return { earliest: sorted(span => span.earliest), latest: sorted(span => span.latest) }
}
