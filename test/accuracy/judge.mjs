import { CHANGED_AT } from './fleet.mjs'
import { kinds } from './kinds.mjs'
import { percent } from './report.mjs'

const LEAST_USED = 0.98
/** So many of the calls must come in time, which is to say this late at most, for a load to count as offered. */
const LEAST_OFFERED = 0.97
const IN_TIME_US = 100_000
/** All processes have a changed limit by then, and what was counted before fits it. */
const CHANGED_US = 500_000

/** Holds what a fleet did against the marks; `faults` says which were missed. */
export function judge(one, { startAt, calls, missed, slipped, failures }) {
  const { over: overBy, stay, countedFor, refundAfterMs, timesBefore = 1 } = kinds[one.kind]
  const isKnown = call => call.earliest <= call.latest && !(stay && call.allowed && !(call.granted <= call.ended))
  const seen = calls.filter(isKnown).sort((a, b) => middle(a) - middle(b))
  const admitted = seen.filter(({ allowed }) => allowed)
  const steady = steadyTime(one, startAt, seen)
  // a larger limit is no bound for what was admitted before
  const bound = timesBefore > 1 ? admitted.filter(call => call.earliest >= steady.from) : admitted
  const over = overBy(stay ? bound.map(stay) : bound, one.limit)
  const isSteady = at => at >= steady.from && at < steady.to
  const offered = seen.filter(call => isSteady(middle(call)))
  const due = calls.filter(call => isSteady(call.due))
  const inTime = due.filter(call => middle(call) - call.due <= IN_TIME_US).length
  const wasOffered = inTime >= (due.length + missed) * LEAST_OFFERED
  const used = stay ? heldShare(seen, one, steady) : admittedShare(seen, one, steady, isSteady)
  const faults = [
    over > 0 && `${over} over the limit`,
    refundAfterMs !== undefined &&
      wasOffered &&
      admitted.length < seen.length &&
      `${seen.length - admitted.length} refused, though none counts`,
    slipped > 0 && `${slipped} admitted, though another rule refuses them`,
    failures.length > 0 && `counted without Redis: ${failures[0]}`,
    seen.length < calls.length && `of ${calls.length - seen.length} calls it is not known when Redis judged them`,
    !wasOffered && `load not reached: ${inTime} of ${due.length + missed} calls came in time`,
    one.load >= 1 && !(used.used >= LEAST_USED) && `used only ${percent(used.used)}`,
  ]
  return {
    ...{ offered: offered.length, admitted: offered.filter(({ allowed }) => allowed).length },
    ...{ over, ...used, wasOffered, faults: faults.filter(Boolean) },
    widthUs: seen.map(({ earliest, latest }) => latest - earliest),
    lateUs: countedFor ? admitted.map(call => call.passed - countedFor(call, one.limit).latest) : [],
  }
}

function middle({ earliest, latest }) {
  return (earliest + latest) / 2
}

/**
 * The time in which the limit is all that decides: of windows, whole periods but the first; of buckets, from when one
 * has first been empty; of calls under way, when the first have ended.
 */
function steadyTime({ kind, limit: { periodUs }, endMs, load }, startAt, seen) {
  const endAt = startAt + endMs * 1000
  const { hasWindows, stay, timesBefore } = kinds[kind]
  if (timesBefore) {
    const from = startAt + endMs * 1000 * CHANGED_AT + CHANGED_US
    return { from: hasWindows ? startAt + Math.ceil((from - startAt) / periodUs) * periodUs : from, to: endAt }
  }
  if (hasWindows) return { from: startAt + periodUs, to: endAt }
  if (stay) return { from: startAt + 2 * periodUs, to: endAt }
  const firstRefused = seen.find(({ allowed }) => !allowed)
  return { from: load >= 1 && firstRefused ? firstRefused.latest : startAt + endMs * 250, to: endAt }
}

/** The share of the limit that was admitted, and the share of what there was room for when calls came. */
function admittedShare(seen, { kind, limit }, { from, to }, isSteady) {
  // where the limit was another one before, exact counting goes on from what was admitted until then
  const offered = kinds[kind].timesBefore ? seen.filter(call => call.allowed || middle(call) >= from) : seen
  const ideal = kinds[kind].ideal(offered, limit)
  const admitted = seen.filter(call => call.allowed && isSteady(middle(call))).length
  const possible = offered.filter((call, i) => ideal[i] && isSteady(middle(call))).length
  const most = (limit.count * (to - from)) / limit.periodUs
  return { ofLimit: admitted / most, used: admitted / Math.min(most, possible) }
}

/** The same of places: which share of the time they were taken. */
function heldShare(seen, { kind, limit }, steady) {
  const { stay, ideal } = kinds[kind]
  const stays = seen.filter(({ allowed }) => allowed).map(stay)
  const periodUs = median(stays.map(({ from, to }) => to - from))
  const allowed = ideal?.(seen, { ...limit, periodUs })
  const most = limit.count * (steady.to - steady.from)
  const idealStays =
    allowed && seen.filter((_, i) => allowed[i]).map(({ latest }) => ({ from: latest, to: latest + periodUs }))
  const possible = idealStays ? heldUs(idealStays, steady) : most
  const held = heldUs(stays, steady)
  return { ofLimit: held / most, used: held / Math.min(most, possible) }
}

function heldUs(stays, steady) {
  const parts = stays.map(({ from, to }) => Math.max(0, Math.min(to, steady.to) - Math.max(from, steady.from)))
  return parts.reduce((sum, us) => sum + us, 0)
}

function median(numbers) {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)]
}
