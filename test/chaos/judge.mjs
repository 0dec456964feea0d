import { overBound, overRate } from './bounds.mjs'
import { checkTrace } from './check-trace.mjs'
import { pace, subjects, traceLimits } from './rules.mjs'

/** What every fault is held to. */
export const marks = { failed: 0, p999Ms: 450, over: 0, recoverMs: 1000 }
/** Where the processes themselves were late by so much, the machine was measured and not Diana. */
const LAG_MS = 10

/**
 * What became of a fleet's calls. When a call was judged is known only to lie between its start and its end, so it
 * counts as inside an interval only if it surely was; what no choice of moments can explain is over.
 */
export function judge(reports, { deafSince, beganAt, endedAt, processes, allowance = {} }) {
  const calls = reports.flatMap(rowsOf)
  const lost = list => list.filter(({ end }) => deafSince && end >= deafSince && end <= beganAt).length
  const overs = subjects.map(({ rule: { id }, bound }, path) => {
    const admitted = calls.filter(call => call.allowed && call.path === path)
    const over = byCaller(admitted).map(list => overBound(list, bound) - lost(list))
    return { id, over: Math.max(0, ...over), lost: lost(admitted) }
  })
  const permits = calls.filter(({ path }) => path === subjects.length)
  // permits saved in 100 ms, one that is paid for afterward, and one for each process that takes its turn without Redis
  const paceBound = { perMs: pace.perSecond / 1000, burst: pace.perSecond / 10 + 1 + processes }
  overs.push({ id: 'pace', over: Math.max(0, overRate(permits, paceBound)), lost: 0 })
  const events = reports.map(report => report.events)
  const noticedAt = latest(events.map(list => list.find(({ at, healthy }) => !healthy && at >= beganAt)?.at))
  const recoveredAt = latest(events.map(list => list.findLast(({ healthy }) => healthy)?.at))
  const worst = overs.toSorted((a, b) => b.over - a.over)[0]
  const traces = reports.map(({ trace }) => trace)
  return {
    traced: traces.reduce((sum, { events: list }) => sum + list.length, 0),
    rejected: traces.flatMap(trace => checkTrace(trace, traceLimits)),
    calls: calls.length,
    failed: reports.reduce((sum, { failures, rejections }) => sum + failures.length + rejections, 0),
    p999Ms: percentile(
      calls.filter(({ path }) => path < subjects.length).map(({ start, end }) => end - start),
      0.999,
    ),
    lagMs: percentile(
      reports.flatMap(({ lags }) => lags),
      0.999,
    ),
    over: worst.over,
    overs: overs.map(({ id, over }) => ({ id, over })),
    overRules: overs.filter(({ over }) => over > 0).map(({ id, over }) => `${id} ${over}`),
    beyond: overs.filter(({ id, over }) => over > (allowance[id] ?? 0)).map(({ id, over }) => `${id} by ${over}`),
    beyondBy: Math.max(...overs.map(({ id, over }) => over - (allowance[id] ?? 0))),
    lost: Math.max(...overs.map(one => one.lost)),
    under: underOf(
      calls.filter(({ allowed, path }) => allowed && path === 0),
      beganAt,
      Math.max(endedAt, recoveredAt ?? 0),
    ),
    noticeMs: noticedAt && noticedAt - beganAt,
    recoverMs: recoveredAt && Math.max(0, recoveredAt - endedAt),
    isBack: events.every(list => list.length === 0 || list.at(-1).healthy),
    kinds: [...new Set(events.flat().flatMap(({ kind }) => kind ?? []))],
  }
}

/** In which ways a result misses the marks. */
export function findings({ failed, p999Ms, beyond, rejected, recoverMs = 0, isBack }, { judgesTimes = true } = {}) {
  return [
    failed > marks.failed && `${failed} calls failed`,
    judgesTimes && p999Ms > marks.p999Ms && `1 in 1000 calls waited longer than ${Math.round(p999Ms)} ms`,
    beyond.length > 0 && `over the limit: ${beyond.join(', ')}`,
    rejected.length > 0 && `${rejected.length} events that the model does not allow, the first: ${rejected[0]}`,
    !isBack && 'not back',
    judgesTimes && recoverMs > marks.recoverMs && `back only after ${Math.round(recoverMs)} ms`,
  ].filter(Boolean)
}

export function isDisturbed({ lagMs }) {
  return lagMs > LAG_MS
}

function rowsOf({ path, caller, start, end, released, allowed }) {
  return path.map((_, i) => ({
    path: path[i],
    caller: caller[i],
    start: start[i],
    end: end[i],
    released: released[i],
    allowed: allowed[i] === 1,
  }))
}

function byCaller(calls) {
  const lists = new Map()
  for (const call of calls) lists.set(call.caller, [...(lists.get(call.caller) ?? []), call])
  return [...lists.values()]
}

function latest(moments) {
  const known = moments.filter(at => at !== undefined)
  return known.length === 0 ? undefined : Math.max(...known)
}

function percentile(numbers, part) {
  const sorted = numbers.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))]
}

/** The part of the window's limit that was not admitted from `from` to `to`, though more was offered. */
function underOf(calls, from, to) {
  const { calls: limit, periodMs } = subjects[0].bound
  const inside = calls.filter(({ end }) => end >= from && end <= to).length
  return Math.max(0, 1 - inside / (((to - from) / periodMs) * limit))
}
