/** A process may go by what the store said at most so long ago, as late-allowance.ts has it. */
const FRESH_MS = 5000
/** The moments of an event are read a little before or after what it is about. */
const SLACK_MS = 50

/**
 * Replays the events of one process against the rules of the model (model/README.md), whatever the sum of all calls is. Returns what no
 * rule allows, the earliest first. `limits` has for each rule what is admitted at once, for a bucket
 * how many calls a millisecond brings back, and whether its windows end while the processes run: their shares are not judged.
 */
export function checkTrace({ events }, limits) {
  const findings = []
  const callers = new Map()
  for (const event of events) {
    const limit = limits[event.caller.split(' ')[0]]
    if (!limit) continue
    const known = callers.get(event.caller) ?? { permits: 0, used: 0, late: 0, share: 0 }
    callers.set(event.caller, known)
    const finding = steps[event.what](known, event, limit)
    if (finding) findings.push(`${event.caller}: ${finding}, at ${Math.round(event.end)} ms`)
  }
  return findings
}

const steps = {
  /** Permits that are used from now on are not among those that the request reports. */
  ask(known) {
    known.used = 0
  },
  grant(known, { amount }) {
    known.permits = amount - known.used
  },
  use(known, { cost }) {
    known.used += cost
    known.permits -= cost
    return known.permits < 0 ? 'a call by permits that were not granted' : undefined
  },
  call(known, event, limit) {
    const { by, allowed } = event
    if (by === 'store') return heard(known, event, limit)
    if (!allowed) return undefined
    if (by === 'late') return usedLate(known, event)
    return by === 'share' ? usedShare(known, event, limit) : undefined
  },
}

/** What the store says is left: the process begins anew with its share and its allowance. */
function heard(known, { left, end }, limit) {
  if (!(left >= 0 && left <= limit.calls)) return `the store says that ${left} of ${limit.calls} are left`
  Object.assign(known, { left, heardAt: end, late: 0, share: 0, since: undefined })
  return undefined
}

function usedShare(known, { end, size }, { calls, perMs = 0, ends }) {
  known.share++
  known.since ??= end
  const refilled = Math.ceil((perMs * (end - (known.heardAt ?? known.since))) / size)
  const most = Math.ceil((known.left ?? calls) / size) + refilled
  return !ends && known.share > most ? `${known.share} calls by a share of ${most}` : undefined
}

function usedLate(known, { end, size, isKnown }) {
  known.late++
  if (size === 1 || !isKnown) return undefined
  const isLately = known.heardAt !== undefined && end - known.heardAt <= FRESH_MS + SLACK_MS
  if (!isLately) return 'a late call, and the store has said nothing lately'
  return known.late > Math.ceil(known.left / 2) ? `${known.late} late calls when ${known.left} were left` : undefined
}
