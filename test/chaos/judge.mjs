import { pace, rules } from './rules.mjs'

const WINDOW = { count: 120, periodMs: 1000 }
const BUCKET = { perMs: 60 / 1000, burst: 30 }
const QUOTA = 450
/** Of the levels, the one that no fault outlasts. */
const LEVELS = 60

/** What every fault is held to. */
export const marks = { failed: 0, p999Ms: 60, over: 0, recoverMs: 2000 }
/** Where the processes themselves were late by so much, the machine was measured and not Diana. */
const LAG_MS = 10

/**
 * What became of a fleet's calls. When a call was judged is known only to lie between its start and its end, so it
 * counts as inside an interval only if it surely was; what no choice of moments can explain is over.
 */
export function judge(reports, { deafSince, beganAt, endedAt, processes }) {
  const calls = reports.flatMap(rowsOf)
  const admitted = id => calls.filter(({ path, allowed }) => allowed && idOf(path) === id).sort(byStart)
  const overs = {
    window: overWindow,
    bucket: overBucket,
    quota: calls => calls.length - QUOTA,
    levels: calls => calls.length - LEVELS,
    // permits saved in 100 ms, one that is paid for afterward, and one for each process that takes its turn without Redis
    pace: permits => overRate(permits, { perMs: pace.perSecond / 1000, burst: pace.perSecond / 10 + 1 + processes }),
  }
  const lost = id => admitted(id).filter(({ end }) => deafSince && end >= deafSince && end <= beganAt).length
  const over = Object.entries(overs).map(([id, overOf]) => Math.max(0, overOf(admitted(id)) - lost(id)))
  const events = reports.map(report => report.events)
  const noticedAt = latest(events.map(list => list.find(({ at, healthy }) => !healthy && at >= beganAt)?.at))
  const recoveredAt = latest(events.map(list => list.findLast(({ healthy }) => healthy)?.at))
  return {
    calls: calls.length,
    failed: reports.reduce((sum, { failures, rejections }) => sum + failures.length + rejections, 0),
    p999Ms: percentile(
      calls.filter(({ path }) => idOf(path) !== 'pace').map(({ start, end }) => end - start),
      0.999,
    ),
    lagMs: percentile(
      reports.flatMap(({ lags }) => lags),
      0.999,
    ),
    over: Math.max(...over),
    lost: Math.max(...Object.keys(overs).map(lost)),
    under: underOf(admitted('window'), beganAt, Math.max(endedAt, recoveredAt ?? 0)),
    noticeMs: noticedAt && noticedAt - beganAt,
    recoverMs: recoveredAt && Math.max(0, recoveredAt - endedAt),
    isBack: events.every(list => list.length === 0 || list.at(-1).healthy),
    kinds: [...new Set(events.flat().flatMap(({ kind }) => kind ?? []))],
  }
}

/** In which ways a result misses the marks. */
export function findings({ failed, p999Ms, over, recoverMs = 0, isBack }) {
  return [
    failed > marks.failed && `${failed} calls failed`,
    p999Ms > marks.p999Ms && `1 in 1000 calls waited longer than ${Math.round(p999Ms)} ms`,
    over > marks.over && `${over} over the limit`,
    !isBack && 'not back',
    recoverMs > marks.recoverMs && `back only after ${Math.round(recoverMs)} ms`,
  ].filter(Boolean)
}

export function isDisturbed({ lagMs }) {
  return lagMs > LAG_MS
}

function idOf(path) {
  return rules[path]?.id ?? 'pace'
}

function rowsOf({ path, start, end, allowed }) {
  return path.map((_, i) => ({ path: path[i], start: start[i], end: end[i], allowed: allowed[i] === 1 }))
}

const byStart = (a, b) => a.start - b.start

function latest(moments) {
  const known = moments.filter(at => at !== undefined)
  return known.length === 0 ? undefined : Math.max(...known)
}

function percentile(numbers, part) {
  const sorted = numbers.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))]
}

/** The most calls surely within one period, less the limit. */
function overWindow(calls) {
  let most = 0
  for (let i = 0; i < calls.length; i++) {
    const until = calls[i].start + WINDOW.periodMs
    let inside = 0
    for (let j = i; j < calls.length && calls[j].start < until; j++) if (calls[j].end <= until) inside++
    most = Math.max(most, inside)
  }
  return most - WINDOW.count
}

function overBucket(calls) {
  return overRate(calls, BUCKET)
}

/** The most calls surely within any interval, less what a rate saves and brings meanwhile. */
function overRate(calls, { perMs, burst }) {
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

/** The part of the window's limit that was not admitted from `from` to `to`, though more was offered. */
function underOf(calls, from, to) {
  const limit = ((to - from) / WINDOW.periodMs) * WINDOW.count
  const inside = calls.filter(({ end }) => end >= from && end <= to).length
  return Math.max(0, 1 - inside / limit)
}
